"""The set-up cell: guarded beside parlab, self-contained in a twin."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from author_fixtures.course import NAME, make_course, read

from parlab.author.notebooks import compose
from parlab.author.problems import Refused

# Stands in front of each script: a process in which no parlab can be imported.
NO_PARLAB = """\
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "parlab":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
"""

READY = {"zh": "✅ 准备好了。\n", "en": "✅ Ready.\n"}


def setup_cells(root: Path) -> dict[str, str]:
    """The set-up cell's source in each of the six notebooks."""
    repository = make_course(root)
    made = compose(read(repository), repository)
    return {
        path: next(cell.source for cell in notebook.cells if cell.id == "setup")
        for path, notebook in made.items()
    }


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    ("folder", "passages"),
    [
        ("", ["parlab", "make lab", "colab/"]),
        ("en/", ["not installed", "make lab", "colab/"]),
    ],
)
@pytest.mark.parametrize("kind", ["notebooks", "solutions"])
def test_without_parlab_one_line_says_how_to_get_it(
    kind: str, folder: str, passages: list[str], tmp_path: Path
) -> None:
    cell = setup_cells(tmp_path / "course")[f"{kind}/{folder}{NAME}.ipynb"]
    assert cell.startswith("# SETUP\n")
    script = f"""{NO_PARLAB}
from IPython.core.interactiveshell import InteractiveShell
result = InteractiveShell.instance().run_cell({cell!r})
assert isinstance(result.error_in_exec, ImportError)
"""
    shown = run(script, tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert len(shown.stdout.splitlines()) == 1, shown.stdout
    assert all(passage in shown.stdout for passage in passages), shown.stdout


@pytest.mark.parametrize("language", ["zh", "en"])
def test_with_parlab_the_cell_speaks_the_notebooks_language(language: str, tmp_path: Path) -> None:
    folder = "en/" if language == "en" else ""
    cell = setup_cells(tmp_path)[f"notebooks/{folder}{NAME}.ipynb"]
    shown = run(f"{cell}\ncheck(1)", tmp_path)
    assert shown.stdout == f"{READY[language]}{language} check 1\n", shown.stderr


TWICE = """
for _ in range(2):
    scope = {"__name__": "__main__"}
    exec(compile(CELL, "cell", "exec"), scope)
    scope["check"](7)
"""
SHOWS_ITS_LINES = """
import inspect, traceback
try:
    scope["fail"]()
except RuntimeError:
    assert 'raise RuntimeError("from a carried module")' in traceback.format_exc()
assert "language.spoken" in inspect.getsource(scope["check"])
import parlab.lesson.language
assert parlab.lesson.checks.__file__ == "<parlab.lesson.checks>"
assert parlab.lesson.checks is sys.modules["parlab.lesson.checks"]
assert "parlab.lesson.unused" not in sys.modules
"""


@pytest.mark.parametrize("installed", [False, True])
def test_a_twin_carries_its_modules(installed: bool, tmp_path: Path) -> None:
    cell = setup_cells(tmp_path / "course")[f"colab/en/{NAME}.ipynb"]
    # An installed parlab that has been imported already must not shine through.
    start = "import sys, parlab.lesson.checks" if installed else NO_PARLAB
    script = f"{start}\nCELL = {cell!r}\n{TWICE}\n{SHOWS_ITS_LINES}"
    place = tmp_path / "course" if installed else tmp_path
    shown = run(script, place)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == f"{READY['en']}en check 7\n" * 2


def test_a_twin_shows_readable_sources_and_folds(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    made = compose(read(repository), repository)
    for path, title in {f"colab/{NAME}.ipynb": "准备", f"colab/en/{NAME}.ipynb": "Set-up"}.items():
        cell = next(cell for cell in made[path].cells if cell.id == "setup")
        first, second, *_ = cell.source.split("\n")
        assert first.startswith("#@title") and title in first
        assert second == "# SETUP"
        assert (tmp_path / "parlab/lesson/checks.py").read_text() in cell.source
        assert "unused" not in cell.source
        assert cell.metadata == {"cellView": "form", "jupyter": {"source_hidden": True}}
        assert made[path].metadata.colab == {"provenance": [], "toc_visible": True}
    assert "colab" not in json.dumps(made[f"notebooks/{NAME}.ipynb"].metadata)


@pytest.mark.parametrize(
    ("module", "text", "refusal"),
    [
        ("checks", "'''doc'''\n", "parlab/lesson/checks.py:1: ''' would end the copy in a twin"),
        (
            "checks",
            "x = 1\nimport parlab.plan\n",
            "parlab/lesson/checks.py:2: import of parlab.plan",
        ),
        (
            "checks",
            "\nimport parlab.lesson.no\n",
            "checks.py:2: import of parlab.lesson.no",
        ),
        (
            "language",
            "from parlab.lesson.checks import check\n",
            "circle: parlab.lesson.language → parlab.lesson.checks → parlab.lesson.language",
        ),
    ],
)
def test_what_a_twin_cannot_carry(module: str, text: str, refusal: str, tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    (tmp_path / f"parlab/lesson/{module}.py").write_text(text)
    with pytest.raises(Refused) as refused:
        compose(read(repository), repository)
    assert refusal in str(refused.value)


def test_a_module_may_import_lazily_and_hold_quotes(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    lazy = "from parlab.lesson import unused"
    text = f'def check(n):\n    {lazy}\n    return "\'\'", \'"""\'\n\nfail = 1\n'
    (tmp_path / "parlab/lesson/checks.py").write_text(text)
    made = compose(read(repository), repository)
    cell = next(cell for cell in made[f"colab/{NAME}.ipynb"].cells if cell.id == "setup")
    shown = run(f"{NO_PARLAB}\n{cell.source}\nprint(*check(1))", tmp_path.parent)
    assert shown.stdout == READY["zh"] + '\'\' """\n', shown.stderr


def test_a_set_up_that_cannot_be_wrapped_is_refused(tmp_path: Path) -> None:
    repository = make_course(tmp_path)
    source = tmp_path / "solutions" / f"{NAME}.py"
    text = source.read_text("utf-8")
    future = "# SETUP\nfrom __future__ import annotations\n"
    source.write_text(text.replace("# SETUP\n", future), encoding="utf-8")
    with pytest.raises(Refused, match=r"01_small\.py:\d+: the set-up cell is not Python once"):
        compose(read(repository), repository)
