"""What a twin carries packed: found, cut down, the same every time, and unpacked where it runs."""

import base64
import bz2
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from author_fixtures.course import BODY, NAME, SOURCE, make_course, read

from parlab.author.bundle import pack
from parlab.author.notebooks import compose
from parlab.author.problems import Refused

CARRIES = BODY.replace(
    "# SETUP\n", "# SETUP\n# CARRY parlab/bench data/*.txt\n# CARRY solutions/*.py\n"
)
FILES = {
    "parlab/bench/__init__.py": "",
    "parlab/bench/run.py": "from parlab.lesson.deep import depth\n\nprint('run', depth())\n",
    "parlab/bench/schema.json": "{}",
    "parlab/bench/__pycache__/run.py": "broken(",
    "parlab/lesson/deep.py": "from . import unused\n\n\ndef depth():\n    return 3\n",
    "data/text.txt": "Grüße, 你好\n",
    "data/other.bin": "no",
}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    make_course(tmp_path, CARRIES)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
    return tmp_path


def unpacked(lines: str) -> dict[str, str]:
    return dict(json.loads(bz2.decompress(base64.b64decode(lines))))


def packed(root: Path) -> tuple[str, str]:
    setup = CARRIES[CARRIES.index("# SETUP") : CARRIES.index("# %% lang", CARRIES.index("# SETUP"))]
    found = pack(setup, root, SOURCE)
    assert found
    return found


def test_what_is_carried(course: Path) -> None:
    lines, digest = packed(course)
    files = unpacked(lines)
    assert set(files) == {
        "parlab/__init__.py", "parlab/bench/__init__.py", "parlab/bench/run.py",
        "parlab/bench/schema.json", "parlab/lesson/__init__.py", "parlab/lesson/deep.py",
        "parlab/lesson/unused.py", "data/text.txt", SOURCE,
    }  # fmt: skip
    assert files["data/text.txt"] == FILES["data/text.txt"]
    assert (lines, digest) == packed(course)
    assert max(map(len, lines.splitlines())) <= 96


def test_of_a_lesson_only_what_the_loader_needs(course: Path) -> None:
    text = unpacked(packed(course)[0])[SOURCE]
    assert text.startswith("# %%\n# SETUP\n") and "# CARRY" not in text
    assert text.count("# TODO 1 · double") == 1 and "return 2 * x" in text
    assert "CHECK" not in text and "demo" not in text and "小课" not in text


def test_a_lesson_named_in_full_brings_what_its_checks_import(course: Path) -> None:
    source = (course / SOURCE).read_text("utf-8")
    more = source.replace("# CHECK 1\n", "# CHECK 1\nfrom parlab.lesson.unused import x\n")
    (course / SOURCE).write_text(more, encoding="utf-8")
    for words, there in ((f"# CARRY {SOURCE}\n", True), ("# CARRY solutions/*.py\n", False)):
        found = pack(f"# SETUP\n{words}", course, SOURCE)
        assert found and ("parlab/lesson/unused.py" in unpacked(found[0])) is there


def test_a_path_that_matches_nothing_is_refused(course: Path) -> None:
    with pytest.raises(Refused) as caught:
        pack("# SETUP\n# CARRY data/*.txt data/nothing.txt\n", course, SOURCE)
    assert "data/nothing.txt: no such file" in str(caught.value)


def test_a_lesson_without_carry_carries_nothing(course: Path) -> None:
    assert pack("# SETUP\nimport torch\n", course, SOURCE) is None


def setups(course: Path) -> dict[str, str]:
    from parlab.author.repository import find_repository

    repository = find_repository(course)
    made = compose(read(repository), repository)
    return {
        path: next(cell.source for cell in notebook.cells if cell.id == "setup")
        for path, notebook in made.items()
    }


def test_no_notebook_shows_the_carry_lines(course: Path) -> None:
    assert not [path for path, cell in setups(course).items() if "# CARRY" in cell]


def test_a_twin_unpacks_and_another_process_runs_it(course: Path, tmp_path: Path) -> None:
    cell = setups(course)[f"colab/en/{NAME}.ipynb"]
    assert "github.com/OWNER/small-course/tree/main/parlab/bench" in cell
    assert "return 2 * x" not in cell and "depth():" not in cell
    script = f"""
import subprocess, sys
exec(compile({cell!r}, "cell", "exec"))
import parlab, parlab.lesson
home = parlab.__path__[0].removesuffix("/parlab")
command = [sys.executable, "-m", "parlab.bench.run"]
assert subprocess.run(command, cwd=home, env={{"PYTHONPATH": home}}).returncode == 0
from parlab.lesson.deep import depth  # what is no readable source here is found there
print(depth(), open(home + "/data/text.txt", encoding="utf-8").read(), end="")
print(home)
"""
    place = tmp_path / "elsewhere"
    place.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=place, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[:4] == ["✅ Ready.", "run 3", "3 Grüße, 你好", lines[3]]
    assert not Path(lines[3]).exists()  # gone with its process


def test_a_damaged_twin_says_so(course: Path) -> None:
    cell = setups(course)[f"colab/{NAME}.ipynb"]
    line = re.search(r"_BUNDLE = '''\n(.)", cell)
    assert line
    at = line.start(1)
    broken = cell[:at] + ("B" if cell[at] == "A" else "A") + cell[at + 1 :]
    done = subprocess.run([sys.executable, "-c", broken], capture_output=True, text=True)
    assert done.returncode == 1 and "重新下载" in done.stderr.splitlines()[-1]
