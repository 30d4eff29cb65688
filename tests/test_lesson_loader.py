"""The loader: a finished notebook's functions, else the solution's, and it says which."""

import json
from pathlib import Path

import pytest
from lessons import ROOT, answered

from parlab.lesson.loader import LessonUnusable, load_lesson, load_notebook, load_solution

LESSON = "04_model_internal_parallel"
NAMES = {
    "validate_mesh_layout",
    "evaluate_internal_parallel_candidate",
    "select_internal_parallel_candidate",
}


def notebook(folder: Path, todos: list[int], change: tuple[str, str] = ("", "")) -> Path:
    path = folder / "mine.ipynb"
    cells = answered(LESSON, "zh", todos)
    for cell in cells.cells:
        if change[0] and cell.cell_type == "code" and cell.source.startswith("# TODO"):
            cell.source = cell.source.replace(*change)
    path.write_text(json.dumps(cells), encoding="utf-8")
    return path


def test_unfinished_course_gives_the_solution() -> None:
    loaded = load_lesson(ROOT, LESSON)
    assert set(loaded.functions) == NAMES
    assert loaded.origin == "solution" and loaded.source == f"solutions/{LESSON}.py"
    assert "TODO 1 is open" in loaded.note
    assert len(loaded.sha256) == 64


def test_finished_notebook_is_the_learners(tmp_path: Path) -> None:
    loaded = load_lesson(ROOT, LESSON, notebook(tmp_path, [1, 2, 3]))
    assert loaded.origin == "learner" and loaded.source == "mine.ipynb" and not loaded.note
    assert loaded["select_internal_parallel_candidate"]([])["decision"] == "reject"
    assert loaded.sha256 == load_lesson(ROOT, LESSON).sha256  # the same cells, so the same hash
    other = load_lesson(ROOT, LESSON, notebook(tmp_path, [1, 2, 3], ("errors = []", "errors=[]")))
    assert other.origin == "learner" and other.sha256 != loaded.sha256


@pytest.mark.parametrize("done", [[1], [1, 3], [2, 3]])
def test_one_open_todo_is_named(tmp_path: Path, done: list[int]) -> None:
    (open_todo,) = {1, 2, 3} - set(done) if len(done) == 2 else (2,)
    with pytest.raises(LessonUnusable, match=f"mine.ipynb .* TODO {open_todo} is open"):
        load_lesson(ROOT, LESSON, notebook(tmp_path, done))


WRONG = ("> limits['memory_mb']", ">= limits['memory_mb']")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (WRONG, "CHECK 2 raised Wrong"),
        (("def validate", "import nowhere_at_all\ndef validate"), "ModuleNotFoundError"),
        (("def validate", "import sys; sys.exit(0)\ndef validate"), "SystemExit: 0"),
    ],
)
def test_answer_that_is_wrong_or_breaks_is_refused(
    tmp_path: Path, change: tuple[str, str], why: str
) -> None:
    with pytest.raises(LessonUnusable, match=why):
        load_lesson(ROOT, LESSON, notebook(tmp_path, [1, 2, 3], change))


def test_wrong_answer_in_the_courses_own_notebook_gives_the_solution(tmp_path: Path) -> None:
    (tmp_path / "solutions").symlink_to(ROOT / "solutions")
    (tmp_path / "notebooks").mkdir()
    wrong = notebook(tmp_path, [1, 2, 3], WRONG)
    wrong.rename(tmp_path / "notebooks" / f"{LESSON}.ipynb")
    loaded = load_lesson(tmp_path, LESSON)
    assert loaded.origin == "solution" and "CHECK 2 raised Wrong" in loaded.note


@pytest.mark.parametrize(
    "text", ["", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}', "[" * 100_000]
)
def test_damaged_notebook_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.ipynb"
    path.write_text(text)
    with pytest.raises(LessonUnusable, match="cannot be read"):
        load_lesson(ROOT, LESSON, path)


def test_a_check_that_is_gone_is_named(tmp_path: Path) -> None:
    path = notebook(tmp_path, [1, 2, 3])
    path.write_text(path.read_text("utf-8").replace("# CHECK 2", "# mine"), "utf-8")
    with pytest.raises(LessonUnusable, match="no CHECK 2 cell"):
        load_notebook(path)


def test_neither_is_an_error_that_names_both(tmp_path: Path) -> None:
    with pytest.raises(LessonUnusable, match="solutions/x.py cannot be read .*no notebook"):
        load_lesson(tmp_path, "x")
    (tmp_path / "mine.ipynb").write_text('{"cells": []}')
    with pytest.raises(LessonUnusable, match="no TODO cell"):
        load_notebook(tmp_path / "mine.ipynb")


def test_a_solution_gets_the_imports_of_its_set_up_that_it_uses(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text(
        "# %%\n# SETUP\nimport math, nowhere_at_all\nfrom json import dumps as word, nothing\n\n"
        "# %%\n# TODO 1 · area\ndef area(r):\n    return word(math.floor(math.pi * r))\n"
    )
    assert load_solution(path)["area"](1) == "3"
    path.write_text("# %%\n# SETUP\nimport math\n\n# %%\n# TODO 1 · area\ndef area(r):\nreturn 3\n")
    with pytest.raises(LessonUnusable, match="TODO 1 · area raised IndentationError"):
        load_solution(path)
