"""Puts a student's answers and helpers into the lesson's pristine exercise. Nothing is executed."""

# mypy: untyped-calls-exclude=nbformat

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from parlab.grade.course import Course
from parlab.grade.damaged import NotANotebook, Parsed, parse
from parlab.grade.helpers import Loose, loose_statements, needed, source_of
from parlab.grade.markers import marker_of
from parlab.grade.names import from_outside, joined
from parlab.grade.reading import (
    CodeCell,
    known_count,
    language_of_cells,
    read_cells,
    read_hidden,
)
from parlab.grade.restored import dropped_notes, restored_notes
from parlab.grade.todos import MISSING, Answer, find_answer, same_code, without_marker
from parlab.grade.types import Note, Rebuilt

_KNOWN_CELLS = 3  # unchanged course cells that make a notebook this lesson's, without any answer


def rebuild(content: bytes, course: Course) -> Rebuilt:
    """The lesson's exercise with the answers that a notebook holds.

    Args:
        content: the bytes of a notebook, as handed in or as ``collect`` gives them.
        course: the lesson.
    """
    try:
        parsed = parse(content)
    except NotANotebook as reason:
        return _without_notebook(course, "unreadable", reason.note)
    elsewhere = belongs_to(parsed, course)
    if elsewhere is not None:
        return _without_notebook(course, "wrong_lesson", elsewhere, parsed.notes)
    language = language_of_cells(parsed.cells, course)
    cells = read_cells(parsed.cells, course)
    hidden = read_hidden(parsed.cells, course)
    answers = [find_answer(todo, cells, hidden, course, language) for todo in course.todos]
    pool = loose_statements(cells, answers, course, language)
    blocks = _helper_blocks(answers, pool, course)
    notebook = _compose(course, language, answers, blocks, _scratch(cells, answers, blocks, course))
    _put_extra(notebook, cells)
    notes = [
        *parsed.notes,
        *(note for answer in answers for note in answer.notes),
        *restored_notes(cells, hidden, course, language),
        *dropped_notes(parsed, cells),
    ]
    is_solution = _is_solution(answers, course)
    if is_solution:
        notes.append(("is_solution", {}))
    missing = any(answer.state == MISSING for answer in answers)
    return Rebuilt(
        notebook,
        {answer.todo.number: answer.source for answer in answers},
        tuple(source_of([item for block in blocks.values() for item in block])),
        {answer.todo.number: answer.state for answer in answers},
        tuple(notes),
        "missing_answers" if missing else None,
        is_solution,
    )


def belongs_to(parsed: Parsed, course: Course) -> Note | None:
    """None where the notebook is this lesson's, else the note that says whose it is.

    A lesson's function is there where a TODO's marker names it or a cell defines it; the notebook
    is the lesson's most of whose functions are there, this one's where several have as many, or
    where it holds a few of its cells unchanged and no function at all. An empty notebook counts as
    this lesson's, without answers.
    """
    if not any(cell.source.strip() for cell in parsed.cells):
        return None
    texts = [cell.source for cell in parsed.cells]
    named = Counter({course.name: _named(texts, course.functions)})
    for name, lesson in course.functions_elsewhere.items():
        named[lesson] += _named(texts, [name])
    lesson, most = named.most_common(1)[0]  # of equal ones the first: this lesson
    if most:
        own = lesson == course.name
        return None if own else ("other_lesson", {"found": lesson, "wanted": course.name})
    if known_count(parsed.cells, course) >= _KNOWN_CELLS:
        return None
    return ("no_lesson", {"wanted": course.name})


def _named(texts: Sequence[str], functions: Iterable[str]) -> int:
    return sum(any(_mentions(text, name) for text in texts) for name in functions)


def _mentions(text: str, function: str) -> bool:
    """Whether a cell defines the function or is marked as its TODO's."""
    if function not in text:
        return False
    marker = marker_of(text)
    if marker and marker.function == function:
        return True
    starts = (f"def {function}", f"async def {function}", f"{function} =", f"class {function}")
    return any(
        line.strip().startswith(starts)
        and not line.strip()[line.strip().index(function) + len(function) :][:1].isidentifier()
        for line in text.split("\n")
        if function in line
    )


def _helper_blocks(
    answers: Sequence[Answer], pool: Sequence[Loose], course: Course
) -> dict[int, list[Loose]]:
    """TODO number → the helpers that stand before it: those it is the first to need."""
    blocks: dict[int, list[Loose]] = {}
    placed: set[int] = set()
    for answer in answers:
        number = answer.todo.number
        found = needed(from_outside(answer.pieces), pool, course.functions, number)
        blocks[number] = [item for item in found if id(item) not in placed]
        placed |= {id(item) for item in found}
    return blocks


def _scratch(
    cells: Sequence[CodeCell],
    answers: Sequence[Answer],
    blocks: Mapping[int, Sequence[Loose]],
    course: Course,
) -> dict[str | None, list[str]]:
    """Course cell id → the sources of the student's own cells that stood after it; None: before."""
    used = {id(item.piece) for block in blocks.values() for item in block}
    used |= {id(piece) for answer in answers for piece in answer.pieces}
    taken = {index for answer in answers for index in answer.cells}
    places: dict[str | None, list[str]] = {}
    place: str | None = None
    for cell in cells:
        if cell.course_id is not None and not cell.course_id.startswith("todo-"):
            place = cell.course_id
            continue
        if cell.course_id is not None:
            place = cell.course_id
        source = _left_over(cell, used, taken, course)
        if source.strip():
            places.setdefault(place, []).append(without_marker(source))
    return places


def _left_over(cell: CodeCell, used: set[int], taken: set[int], course: Course) -> str:
    """What of a student's cell is neither an answer nor a helper nor another answer's rival."""
    if not cell.pieces:
        empty = cell.cleaned.tree is not None or cell.index in taken
        return "" if empty else cell.cleaned.source
    left = [
        piece
        for piece in cell.pieces
        if id(piece) not in used and not piece.binds & set(course.functions)
    ]
    if len(left) == len(cell.pieces):
        return cell.cleaned.source
    return joined(left)


def _compose(
    course: Course,
    language: str,
    answers: Sequence[Answer],
    blocks: Mapping[int, Sequence[Loose]],
    scratch: Mapping[str | None, Sequence[str]],
) -> NotebookNode:
    notebook = deepcopy(course.exercise[language])
    notebook.metadata["parlab"] = nbformat.from_dict({"lesson": course.name, "language": language})
    by_id = {f"todo-{answer.todo.number}": answer for answer in answers}
    own: list[NotebookNode] = []
    first_code = next(cell.id for cell in notebook.cells if cell.cell_type == "code")
    for cell in notebook.cells:
        if cell.id == first_code:
            own += _added("scratch", scratch.get(None, ()), len(own))
        if cell.id in by_id:
            answer = by_id[cell.id]
            number = answer.todo.number
            before = source_of([i for i in blocks[number] if (i.answer or number) >= number])
            own += _added("helper", before, len(own))
            cell.source = answer.source
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            cell.metadata["parlab"] = nbformat.from_dict(_role(cell))
        own.append(cell)
        own += _added("scratch", scratch.get(cell.id, ()), len(own))
    notebook.cells = own
    return notebook


def _put_extra(notebook: NotebookNode, cells: Sequence[CodeCell]) -> None:
    """The student's answer to the optional task, which is run and not scored."""
    written = [c for c in cells if c.course_id == "extra" and not c.pristine and c.cleaned.tree]
    for cell in notebook.cells:
        if cell.id == "extra" and written:
            cell.source = written[-1].cleaned.source


def _role(cell: NotebookNode) -> dict[str, Any]:
    kind, _, number = str(cell.id).partition("-")
    if kind == "setup":
        return {"role": "setup"}
    if kind in ("todo", "check") and number.isdigit():
        return {"role": "answer" if kind == "todo" else "check", "todo": int(number)}
    return {"role": "course"}


def _added(role: str, sources: Sequence[str], number: int) -> list[NotebookNode]:
    return [
        new_code_cell(source, id=f"{role}-{number + i}", metadata={"parlab": {"role": role}})
        for i, source in enumerate(sources)
    ]


def _is_solution(answers: Sequence[Answer], course: Course) -> bool:
    """Whether every answer is the solution's own code, comments and docstrings aside."""
    return all(
        any(same_code(answer.source, source) for source in answer.todo.solution.values())
        for answer in answers
    )


def _without_notebook(
    course: Course, status: str, note: Note, notes: Sequence[Note] = ()
) -> Rebuilt:
    state = {todo.number: MISSING for todo in course.todos}
    return Rebuilt(None, {}, (), state, (*notes, note), status)
