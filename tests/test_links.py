"""Badges and links of the committed files: they lead to this repository and to files that exist."""

import re
from collections import Counter
from pathlib import Path

import pytest
from lessons import EVERY, ROOT, load

from parlab.author.repository import find_repository

PAGES = ("README.md", "CONTRIBUTING.md", "colab/README.md")
ADDRESS = re.compile(
    r"(?:colab\.research\.google\.com/github|github\.com)/([\w.-]+)/([\w.-]+)(/[^\s)#?>\"'`]+)?"
)
RELATIVE = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
# Other people's repositories that our pages link.
OTHERS = {"computationalmodelling/nbval"}
OPENERS = ("https://colab.research.google.com/github/", "https://kaggle.com/kernels/welcome?src=")


def texts() -> dict[Path, str]:
    """What readers see, by file: the pages, and the markdown of every notebook."""
    found = {ROOT / page: (ROOT / page).read_text(encoding="utf-8") for page in PAGES}
    for folder in ("notebooks", "solutions", "colab"):
        for lesson, language in EVERY:
            cells = load(folder, lesson, language).cells
            path = ROOT / folder / ("en" if language == "en" else "") / f"{lesson}.ipynb"
            found[path] = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    return found


def test_every_address_of_a_file_is_ours_and_exists() -> None:
    repository = find_repository(ROOT)
    kinds: Counter[str] = Counter()
    for path, text in texts().items():
        for owner, name, rest in ADDRESS.findall(text):
            if f"{owner}/{name}" in OTHERS:
                continue
            name, clone = re.fullmatch(r"(.*?)(\.git)?", name).groups()
            assert (owner, name) == (repository.owner, repository.name), f"{path}: {owner}/{name}"
            kind, _, where = rest.lstrip("/").partition("/")
            kinds[kind or (clone or "")] += 1
            if kind in ("blob", "tree"):
                branch, file = f"{repository.branch}/", where.removeprefix(f"{repository.branch}/")
                assert where.startswith(branch), f"{path}: {where} is not on {branch}"
                assert (ROOT / file).is_dir() if kind == "tree" else (ROOT / file).is_file(), file
            elif kind == "actions":
                workflow = where.removeprefix("workflows/").partition("/")[0]
                assert (ROOT / ".github" / "workflows" / workflow).is_file(), where
            else:
                assert not rest, f"{path}: {rest} is a kind of address that this test cannot judge"
    assert kinds["blob"] > 10 and kinds[".git"] == 3 and kinds["actions"] == 2, kinds


def test_a_clone_lies_in_the_folder_that_the_pages_name() -> None:
    commands = [line for path in PAGES for line in clone_commands(ROOT / path)]
    assert len(commands) == 3
    for command in commands:
        found = re.fullmatch(r"git clone \S+\.git ([\w-]+)(?: && cd ([\w-]+))?", command)
        assert found and found[2] in (None, found[1]), f"{command!r}: name the folder, and enter it"


def clone_commands(page: Path) -> list[str]:
    return re.findall(r"^git clone .*$", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("lesson", "language"), EVERY)
def test_the_table_of_lessons_opens_the_lesson_in_the_table_s_language(
    lesson: str, language: str
) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    zh, _, en = readme.partition("\n## English\n")
    (row,) = [
        line for line in (en if language == "en" else zh).splitlines() if f"[`{lesson}`](" in line
    ]
    part = "en/" if language == "en" else ""
    assert f"[`{lesson}`](notebooks/{part}{lesson}.ipynb)" in row
    twins = re.findall(r"/(colab/[\w/]*\.ipynb)\)", row)
    assert twins == [f"colab/{part}{lesson}.ipynb"] * len(OPENERS)
    assert f"(colab/README.md#modelscope{'-english' if part else ''})" in row


def test_every_relative_link_leads_somewhere() -> None:
    seen = 0
    for path, text in texts().items():
        for target in RELATIVE.findall(text):
            assert "colab" not in path.parts or path.name == "README.md", f"{path}: {target}"
            assert (path.parent / target).exists(), f"{path}: {target}"
            seen += 1
    assert seen > 10


@pytest.mark.parametrize(("lesson", "language"), EVERY)
@pytest.mark.parametrize("folder", ["notebooks", "colab"])
def test_exercises_start_with_badges_for_their_own_twin(
    folder: str, lesson: str, language: str
) -> None:
    twin = f"/colab/{'en/' if language == 'en' else ''}{lesson}.ipynb)"
    badges = load(folder, lesson, language).cells[0].source
    for opener in OPENERS:
        (line,) = [line for line in badges.splitlines() if f"]({opener}" in line]
        assert line.endswith(twin)
    (line,) = [line for line in badges.splitlines() if "badge/ModelScope" in line]
    heading = "### ModelScope" if language == "zh" else "### ModelScope (English)"
    anchor = heading.lower().removeprefix("### ").translate({32: "-", 40: None, 41: None})
    assert line.endswith(f"/colab/README.md#{anchor})")
    assert f"\n{heading}\n" in (ROOT / "colab" / "README.md").read_text(encoding="utf-8")
