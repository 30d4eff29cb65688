"""nbval runs every exercise and every solution; each cell's outcome is what the course designed."""

from importlib.metadata import version

import pytest
from judge import Outcome, judge, vector
from lessons import (
    EVERY,
    ONCE,
    ROOT,
    answered,
    code_cells,
    load,
    todo_numbers,
)

pytestmark = pytest.mark.slow
COURSE = pytest.mark.parametrize(("lesson", "language"), EVERY)
IN_TURN = pytest.mark.parametrize(("lesson", "language"), ONCE)


def on_the_pinned_set() -> bool:
    """Whether what decides the outputs is installed in the pinned versions."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = {line.partition(";")[0].strip() for line in lines}
    names = ("torch", "numpy", "matplotlib", "ipython", "ipykernel")
    return all(f"{name}=={version(name).partition('+')[0]}" in pins for name in names)


def assert_not_done(outcomes: list[Outcome], numbers: list[int]) -> None:
    """Exactly these checks fail, each with its own ⏳ line and nothing else."""
    assert vector(outcomes) == {f"check-{number}": "failed" for number in numbers}
    for number in numbers:
        (check,) = [item for item in outcomes if item.id == f"check-{number}"]
        assert len(check.error) == 1, check.error
        assert check.error[0].startswith(f"⏳ TODO {number} · "), check.error


@COURSE
def test_the_exercise_fails_at_its_three_checks_only(lesson: str, language: str) -> None:
    exercise = load("notebooks", lesson, language)
    assert todo_numbers(exercise) == [1, 2, 3]
    assert_not_done(judge(exercise), [1, 2, 3])


@COURSE
def test_the_solution_prints_what_is_committed(lesson: str, language: str) -> None:
    outcomes = judge(load("solutions", lesson, language), strict=on_the_pinned_set())
    assert vector(outcomes) == {}, [item.text for item in outcomes if item.text]


@IN_TURN
def test_with_the_answers_every_cell_passes_and_passes_again(lesson: str, language: str) -> None:
    notebook = answered(lesson, language, [1, 2, 3])
    twice = []
    for item in code_cells(notebook):
        again = item.copy()
        again["id"] = f"{item.id}-again"
        twice += [item, again]
    notebook.cells = twice
    assert vector(judge(notebook)) == {}
