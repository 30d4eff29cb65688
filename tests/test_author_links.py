"""Links into the repository: in the sources, and on the pages when the repository moves."""

import json
from pathlib import Path

import pytest
from author_fixtures.course import BODY, NAME, assert_refused, changed, make_course, read, refusals
from nbformat.v4 import new_output

from parlab.author.build import check, rewrite_links
from parlab.author.notebooks import compose, serialize
from parlab.author.problems import Refused
from parlab.author.repository import find_repository

ZH_LINK, EN_LINK = "repo:solutions/01_small.ipynb#top", "repo:solutions/en/01_small.ipynb#top"
TABLE = "[tool.parlab.repository]"
BLOB = "https://github.com/OWNER/small-course/blob/main"


def both(zh: str, en: str) -> str:
    return changed(EN_LINK, en, BODY.replace(ZH_LINK, zh))


@pytest.mark.parametrize(
    ("zh", "en", "passage"),
    [
        ("repo:docs/x.md", "repo:docs/x.md", "no such file"),
        ("repo:", "repo:", "no such file"),
        ("repo:../x", "repo:../x", "no such file"),
        ("repo:/etc/passwd", "repo:/etc/passwd", "no such file"),
        ("repo:solutions/01_smal.ipynb", "repo:solutions/01_smal.ipynb", "mend the path"),
    ],
)
def test_a_link_leads_somewhere(zh: str, en: str, passage: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, both(zh, en).replace("# 有", "»# 有"), passage, f"'{zh}'")


def test_an_english_link_leads_to_english(tmp_path: Path) -> None:
    source = both(ZH_LINK, ZH_LINK).replace("# There", "»# There")
    assert_refused(tmp_path, source, f"write '{EN_LINK}'")


@pytest.mark.parametrize(
    "code",
    ["`(repo:nothing)`", "``a ` (repo:nothing)``", "\n#\n# ```\n# (repo:nothing)\n# ```\n#"],
)
def test_a_link_in_code_is_no_link(code: str, tmp_path: Path) -> None:
    source = both(ZH_LINK, EN_LINK).replace("# 有", f"# 写 {code} 有")
    source = source.replace("# There", f"# Write {code} There")
    assert refusals(tmp_path, source) == []
    repository = find_repository(tmp_path)
    made = compose(read(repository), repository)
    text = made[f"notebooks/{NAME}.ipynb"].cells[1].source
    assert "(repo:nothing)" in text and "(../solutions/01_small.ipynb#top)" in text


def test_another_way_to_write_a_link_is_refused(tmp_path: Path) -> None:
    source = both(ZH_LINK, EN_LINK).replace("(repo:", "[k](", 1)
    source = source.replace("# 有", "# [k]: repo:pyproject.toml\n#\n# 有")
    found = refusals(tmp_path, source.replace("见[答案]", "见[k]"))
    assert any("'repo:pyproject.toml' is not understood: write it as (repo:" in p for p in found)


@pytest.mark.parametrize("target", ["repo:pyproject.toml", "repo:parlab/lesson", "repo:solutions/"])
def test_files_and_folders_are_targets(target: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, both(target, target)) == []


def test_links_lead_there_from_every_notebook(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    made = compose(read(repository), repository)
    wanted = {
        "solutions": ("../solutions/01_small.ipynb#top", "../../solutions/en/01_small.ipynb#top"),
        "notebooks": ("../solutions/01_small.ipynb#top", "../../solutions/en/01_small.ipynb#top"),
        "colab": (f"{BLOB}/{ZH_LINK[5:]}", f"{BLOB}/{EN_LINK[5:]}"),
    }
    for folder, (zh, en) in wanted.items():
        for path, target in {f"{folder}/{NAME}": zh, f"{folder}/en/{NAME}": en}.items():
            text = "\n".join(cell.source for cell in made[f"{path}.ipynb"].cells)
            link = target.replace("../solutions/", "") if folder == "solutions" else target
            link = link.replace("../en/", "") if folder == "solutions" else link
            assert f"]({link})" in text, path
            assert "repo:" not in text


def test_badges_open_the_twin_in_the_same_language(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    made = compose(read(repository), repository)
    for folder in ("notebooks", "colab"):
        for part in ("", "en/"):
            badge = made[f"{folder}/{part}{NAME}.ipynb"].cells[0]
            assert badge.id == "badges"
            twin = f"OWNER/small-course/blob/main/colab/{part}{NAME}.ipynb"
            assert f"](https://colab.research.google.com/github/{twin})" in badge.source
            assert (
                f"](https://kaggle.com/kernels/welcome?src=https://github.com/{twin})"
                in badge.source
            )
            guide = "modelscope-english" if part else "modelscope"
            assert f"]({BLOB}/colab/README.md#{guide})" in badge.source
            other = "" if part else "en/"
            relative = f"../{NAME}.ipynb" if part else f"en/{NAME}.ipynb"
            address = f"{BLOB}/colab/{other}{NAME}.ipynb"
            assert f"]({address if folder == 'colab' else relative})" in badge.source
            save = "Save a copy in Drive" if part else "在云端硬盘中保存"
            assert (save in badge.source) == (folder == "colab")
    assert made[f"solutions/{NAME}.ipynb"].cells[0].id != "badges"


PAGE = """\
[![Colab](https://colab.research.google.com/assets/colab-badge.svg)](https://colab.research.google.com/github/OWNER/small-course/blob/main/colab/01_small.ipynb)
[k](https://kaggle.com/kernels/welcome?src=https://github.com/OWNER/small-course/blob/main/colab/en/01_small.ipynb)
[s](https://github.com/OWNER/small-course/blob/main/solutions/01_small.ipynb#top), <https://github.com/OWNER/small-course/tree/main/parlab>
![ci](https://github.com/OWNER/small-course/actions/workflows/ci.yml/badge.svg)
https://raw.githubusercontent.com/OWNER/small-course/main/pyproject.toml
git clone https://github.com/OWNER/small-course.git
See https://github.com/OWNER/small-course/issues or https://github.com/OWNER/small-course.
"""
FOREIGN = """\
https://github.com/pytorch/pytorch/blob/main/pyproject.toml and https://github.com/pytorch/pytorch
https://github.com/OWNER/small-course-2/blob/main/pyproject.toml
https://github.com/other/small-course/actions/workflows/ci.yml
https://colab.research.google.com/github/pytorch/tutorials/blob/main/pyproject.toml
git clone https://github.com/pytorch/pytorch.git
"""


def moved(root: Path, page: str) -> Path:
    """A course whose README is ``page`` and whose pyproject.toml names another address."""
    make_course(root)
    for path in (".github/workflows/ci.yml", "README.md"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(page if path == "README.md" else "")
    project = root / "pyproject.toml"
    text = project.read_text().replace('"OWNER"', '"new-owner"').replace("small-course", "renamed")
    project.write_text(text.replace('"main"', '"release/v1"'))
    return root / "README.md"


def test_own_links_move_and_foreign_ones_stay(tmp_path: Path) -> None:
    readme = moved(tmp_path, PAGE + FOREIGN)
    said: list[str] = []
    rewrite_links(find_repository(tmp_path), said.append)
    expected = PAGE.replace("OWNER/small-course", "new-owner/renamed")
    expected = expected.replace("/main/", "/release/v1/")
    assert readme.read_text() == expected + FOREIGN
    assert "README.md: written" in said
    # And back again: the branch's slash does not get in the way.
    project = tmp_path / "pyproject.toml"
    project.write_text(project.read_text().replace("release/v1", "main"))
    rewrite_links(find_repository(tmp_path), said.append)
    assert readme.read_text() == PAGE.replace("OWNER/small-course", "new-owner/renamed") + FOREIGN


@pytest.mark.parametrize("owner", ["a_b", "A-b"])
@pytest.mark.parametrize("name", ["course.v2", "-x_", ".github"])
@pytest.mark.parametrize("branch", ["v1.0", "release/2026/colab"])
def test_every_allowed_address_is_recognised(
    owner: str, name: str, branch: str, tmp_path: Path
) -> None:
    readme = moved(tmp_path, PAGE)
    project = tmp_path / "pyproject.toml"
    back = project.read_text()
    there = back.replace("new-owner", owner).replace('"renamed"', f'"{name}"')
    project.write_text(there.replace("release/v1", branch))
    rewrite_links(find_repository(tmp_path), print)
    assert readme.read_text().count(f"/{owner}/{name}") == PAGE.count("/OWNER/small-course")
    project.write_text(back)
    rewrite_links(find_repository(tmp_path), print)
    assert readme.read_text().count("/new-owner/renamed") == PAGE.count("/OWNER/small-course")


def test_an_own_link_that_leads_nowhere_is_named(tmp_path: Path) -> None:
    link = "https://github.com/OWNER/small-course/blob/main/docs/gone.md"
    readme = moved(tmp_path, f"{PAGE}{link}\n")
    said: list[str] = []
    assert not rewrite_links(find_repository(tmp_path), said.append)
    assert link in readme.read_text()
    assert any("README.md: github.com" in line and "docs/gone.md" in line for line in said)


def test_notebooks_move_and_keep_their_outputs(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    made = compose(read(repository), repository)
    for path, notebook in made.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        if path.startswith("solutions/"):
            for count, cell in enumerate(c for c in notebook.cells if c.cell_type == "code"):
                cell.execution_count = count + 1
                cell.outputs = [new_output("stream", text="x")]
        (tmp_path / path).write_bytes(serialize(notebook))
    moved(tmp_path, PAGE)
    here = find_repository(tmp_path)
    said: list[str] = []
    assert not check(here, (), said.append)
    assert any(
        line.startswith("README.md: links lead elsewhere; run parlab links") for line in said
    )
    assert rewrite_links(here, said.append)
    assert check(here, (), said.append), said
    solution = json.loads((tmp_path / f"solutions/{NAME}.ipynb").read_text("utf-8"))
    counts = [c["execution_count"] for c in solution["cells"] if c["cell_type"] == "code"]
    assert counts == [1, 2, 3, 4]
    twin = (tmp_path / f"colab/{NAME}.ipynb").read_text("utf-8")
    assert "new-owner/renamed/blob/release/v1/colab" in twin
    assert "OWNER" not in twin


def test_a_solution_with_other_code_is_left_alone(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    said: list[str] = []
    assert not rewrite_links(repository, said.append)
    assert f"solutions/{NAME}.ipynb: left alone, for its code has changed; run parlab build" in said
    assert not (tmp_path / f"solutions/{NAME}.ipynb").exists()
    assert (tmp_path / f"notebooks/{NAME}.ipynb").exists()


@pytest.mark.parametrize(
    ("old", "new", "passage"),
    [
        ('owner = "OWNER"\n', "", 'owner = None: write owner = "..." (letters, digits, - and _)'),
        ('"OWNER"', '"a/b"', "owner = 'a/b'"),
        ("[tool", "[tol", "owner = None"),
        ("= ", "", "not valid TOML"),
        ("[tool.parlab.repository]", "[x]\ny = 3\n[y]", "owner = None"),
        (TABLE, "tool = 3", "owner = None"),
        (TABLE, "tool.parlab = 3", "owner = None"),
        (TABLE, 'tool.parlab.repository = "x"', "owner = None"),
        ('"OWNER"', "3", "owner = 3:"),
        ('"OWNER"', "true", "owner = True:"),
        ('"OWNER"', '"my.org"', "owner = 'my.org'"),
        ('"small-course"\nbranch', '"a.git"\nbranch', "name = 'a.git'"),
        ('"small-course"\nbranch', '"a."\nbranch', "name = 'a.'"),
        ('"main"', '"main/"', "branch = 'main/'"),
        ('"main"', '"../main"', "branch = '../main'"),
        ('"main"', '"a..b"', "branch = 'a..b'"),
        ('"main"', '"a//b"', "branch = 'a//b'"),
        ('"main"', '"a.lock/b"', "branch = 'a.lock/b'"),
        ('"OWNER"', '"\udce9"', "save the file as UTF-8"),
    ],
)
def test_an_incomplete_address_is_refused(old: str, new: str, passage: str, tmp_path: Path) -> None:
    make_course(tmp_path)
    project = tmp_path / "pyproject.toml"
    text = project.read_text()
    text = f"{new}\n{text.partition(TABLE)[0]}" if old == TABLE else text.replace(old, new)
    project.write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(Refused) as refused:
        find_repository(tmp_path / "parlab")
    assert str(refused.value).startswith("pyproject.toml:")
    assert passage in str(refused.value)
