"""Badges and links of the committed files: they lead to this repository and to files that exist."""

import re
from pathlib import Path

import pytest
from lessons import EVERY, ROOT, load

from parlab.author.repository import find_repository

PAGES = ("README.md", "CONTRIBUTING.md", "colab/README.md")
ADDRESS = re.compile(
    r"(?:colab\.research\.google\.com/github|github\.com)/([\w.-]+)/([\w.-]+)/blob/([\w.-]+)/([^\s)#?]+)"
)
RELATIVE = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(?:#[^)]*)?\)")
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
    ours = (repository.owner, repository.name, repository.branch)
    seen = 0
    for path, text in texts().items():
        for owner, name, branch, file in ADDRESS.findall(text):
            assert (owner, name, branch) == ours, f"{path}: {owner}/{name}/{branch}"
            assert (ROOT / file).exists(), f"{path}: {file}"
            seen += 1
    assert seen > 10


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
