"""nbval runs every exercise and every solution; each cell's outcome is what the course designed."""

from importlib.metadata import version

import pytest
from judge import Outcome, judge, vector
from lessons import (
    EVERY,
    LANGUAGES,
    LESSONS,
    ONCE,
    ROOT,
    answered,
    code_cells,
    load,
    needed,
    todo_numbers,
)

pytestmark = pytest.mark.slow
COURSE = pytest.mark.parametrize(("lesson", "language"), EVERY)
IN_TURN = pytest.mark.parametrize(("lesson", "language"), ONCE)
OPEN = [
    (lesson, LANGUAGES[(place + number) % 2], number)
    for place, lesson in enumerate(LESSONS)
    for number in (1, 2, 3)
]


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
def test_the_exercise_with_the_answers_passes_every_cell(lesson: str, language: str) -> None:
    assert vector(judge(answered(lesson, language, [1, 2, 3]))) == {}


@pytest.mark.parametrize(("lesson", "language", "number"), OPEN)
def test_one_open_todo_fails_at_its_own_check(lesson: str, language: str, number: int) -> None:
    """And at those of TODOs that call its function, which say what to finish first."""
    done = [other for other in (1, 2, 3) if other != number]
    exercise = answered(lesson, language, done)
    callers = [other for other in done if number in needed(exercise, other)]
    assert_not_done(judge(exercise), sorted([number, *callers]))


@IN_TURN
def test_every_cell_can_run_twice_in_one_kernel(lesson: str, language: str) -> None:
    notebook = load("solutions", lesson, language)
    twice = []
    for item in code_cells(notebook):
        again = item.copy()
        again["id"] = f"{item.id}-again"
        twice += [item, again]
    notebook.cells = twice
    assert vector(judge(notebook)) == {}
