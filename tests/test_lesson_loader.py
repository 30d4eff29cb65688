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
def test_one_open_todo_gives_the_solution(tmp_path: Path, done: list[int]) -> None:
    loaded = load_lesson(ROOT, LESSON, notebook(tmp_path, done))
    assert loaded.origin == "solution"
    (open_todo,) = {1, 2, 3} - set(done) if len(done) == 2 else (2,)
    assert f"TODO {open_todo} is open" in loaded.note


def test_wrong_answer_gives_the_solution(tmp_path: Path) -> None:
    path = notebook(tmp_path, [1, 2, 3], ("> limits['memory_mb']", ">= limits['memory_mb']"))
    loaded = load_lesson(ROOT, LESSON, path)
    assert loaded.origin == "solution" and "CHECK 2 raised Wrong" in loaded.note


def test_answer_that_breaks_gives_the_solution(tmp_path: Path) -> None:
    path = notebook(tmp_path, [1, 2, 3], ("def validate", "import nowhere_at_all\ndef validate"))
    loaded = load_lesson(ROOT, LESSON, path)
    assert loaded.origin == "solution" and "ModuleNotFoundError" in loaded.note


@pytest.mark.parametrize("text", ["", "{}", '{"cells": 3}', '{"cells": [{"cell_type": "code"}]}'])
def test_damaged_notebook_gives_the_solution(tmp_path: Path, text: str) -> None:
    path = tmp_path / "mine.ipynb"
    path.write_text(text)
    loaded = load_lesson(ROOT, LESSON, path)
    assert loaded.origin == "solution" and "cannot be read" in loaded.note


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
