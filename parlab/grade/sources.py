"""What has to run before one answer can be called by itself: the set-up, course cells, helpers."""

from collections.abc import Sequence
from functools import lru_cache

from parlab.grade.clean import clean
from parlab.grade.course import Course
from parlab.grade.helpers import Loose, needed, source_of
from parlab.grade.names import Piece, from_outside, pieces
from parlab.grade.types import Rebuilt

_PLACED = 1_000_000  # where the student's statements stand: after all of the course's


def call_sources(rebuilt: Rebuilt, course: Course, todo: int) -> tuple[str, tuple[str, ...]]:
    """A student's answer to ``todo``, and the cells to run before it, each a source.

    First the pristine set-up cell, then the course's own cells whose names the answer uses, then
    the student's helpers, of which only those that this answer uses.
    """
    language = str(rebuilt.notebook.metadata["parlab"]["language"]) if rebuilt.notebook else "zh"
    helpers = [
        Loose(piece, _PLACED + number)
        for number, source in enumerate(rebuilt.helpers)
        for piece in _pieces(source)
    ]
    answer = rebuilt.answers.get(todo, "")
    return answer, _before(answer, helpers, course, language)


def solution_sources(
    course: Course, todo: int, language: str = "zh"
) -> tuple[str, tuple[str, ...]]:
    """The same of the solution's answer."""
    (answer,) = [item.solution[language] for item in course.todos if item.number == todo]
    helpers = [
        Loose(piece, _PLACED + item.number)
        for item in course.todos
        if item.number != todo
        for piece in _pieces(item.solution[language])
        if not piece.binds & set(course.functions)
    ]
    return answer, _before(answer, helpers, course, language)


def _before(
    answer: str, helpers: Sequence[Loose], course: Course, language: str
) -> tuple[str, ...]:
    own = _course_statements(course, language)
    bound = {name for item in helpers for name in item.piece.binds}
    pool = [*(item for item in own if not item.piece.binds & bound), *helpers]
    wanted = from_outside(_pieces(answer))
    return (course.setup(language), *source_of(needed(wanted, pool, course.functions, None)))


@lru_cache(maxsize=8)
def _course_statements(course: Course, language: str) -> list[Loose]:
    """Statements of the course's cells between its tasks, checks and drawings."""
    found = []
    for number, cell in enumerate(course.exercise[language].cells):
        kind = str(cell.id).partition("-")[0]
        if cell.cell_type != "code" or kind in ("setup", "todo", "check", "extra"):
            continue
        for piece in _pieces(cell.source):
            if piece.binds and not piece.at_once & set(course.functions):
                found.append(Loose(piece, number))
    return found


def _pieces(source: str) -> list[Piece]:
    cleaned = clean(source)
    return pieces(cleaned.source, cleaned.tree) if cleaned.tree else []
