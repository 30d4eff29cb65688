"""What else of a student's notebook an answer needs: functions, constants, imports, settings.

The rule: a statement is a *helper* where it binds a name that an answer uses, directly or through
other helpers, or changes such a value in place, itself or through what it calls; imports and
library settings (``torch.manual_seed(0)``) count too. It stands before the first TODO that needs
it, in the student's own order. Of an edited course cell only what the pristine cell does not have
can be a helper. Everything else of the student's own cells is *scratch*: it stays where it was, and
nothing that is scored depends on it.
"""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from parlab.grade.clean import parse_code
from parlab.grade.course import Course
from parlab.grade.names import ANY, BUILTINS, Definition, Piece, effects, joined, pieces
from parlab.grade.reading import CodeCell
from parlab.grade.todos import Answer, without_marker


@dataclass(frozen=True)
class Loose:
    """A statement that an answer may need.

    Attributes:
        piece: the statement.
        cell: index of its cell.
        answer: the number of the TODO whose answer it is a part of already; None for others.
    """

    piece: Piece
    cell: int
    answer: int | None = None


def loose_statements(
    cells: Sequence[CodeCell], answers: Sequence[Answer], course: Course, language: str
) -> list[Loose]:
    """Every statement that may be a helper, in the notebook's order."""
    functions = set(course.functions)
    owner = {id(piece): answer.todo.number for answer in answers for piece in answer.pieces}
    pristine = _pristine_pieces(course, language)
    found = []
    for cell in cells:
        if cell.pristine and not _is_task(cell):
            continue
        shipped = {} if _is_task(cell) else pristine.get(cell.course_id or "", {})
        own = {_code(piece): piece for piece in cell.pieces} if shipped else {}
        edited = {name for text, names in shipped.items() if text not in own for name in names}
        for text, piece in own.items() if shipped else ((None, piece) for piece in cell.pieces):
            if piece.binds & functions or text in shipped:
                continue
            if piece.binds and piece.binds <= edited:  # restored: the pristine value counts
                continue
            found.append(Loose(piece, cell.index, owner.get(id(piece))))
    return found


def needed(
    wanted: Iterable[str], pool: Sequence[Loose], functions: Iterable[str], todo: int | None
) -> list[Loose]:
    """The statements of the pool that these names need, in order.

    Args:
        wanted: names that an answer takes from around it.
        functions: the TODOs' functions: what only calls them is a try-out.
        todo: the TODO whose answer has its own statements; they are not listed again.
    """
    usable = [item for item in pool if item.answer != todo or todo is None]
    tasks = frozenset(functions)
    reach = _reach(usable)
    hidden = BUILTINS - reach.keys()  # what the student has defined anew is the student's own
    imported = {name for item in usable if item.piece.is_import for name in item.piece.binds}
    chosen: set[int] = set()
    names = set(wanted) - hidden
    data: set[str] = set()
    while True:
        before = len(chosen)
        for number, item in enumerate(usable):
            piece = item.piece
            if number in chosen or not _serves(piece, names, data, tasks, imported, reach):
                continue
            chosen.add(number)
            names |= piece.takes - hidden
            data |= piece.binds - imported
        if len(chosen) == before:
            return [usable[number] for number in sorted(chosen)]


def _reach(pool: Sequence[Loose]) -> dict[str, set[str]]:
    """Function or class → what calling it may bind or change, through what it calls as well."""
    found: dict[str, set[str]] = {}
    calls: dict[str, set[str]] = {}
    for item in pool:
        for node in item.piece.nodes:
            if isinstance(node, Definition):
                found.setdefault(node.name, set()).update(effects(node))
                calls.setdefault(node.name, set()).update(item.piece.takes)
    while True:
        before = sum(map(len, found.values()))
        for name, own in found.items():
            for other in calls[name] & found.keys():
                own |= found[other]
        if sum(map(len, found.values())) == before:
            return found


def source_of(found: Sequence[Loose]) -> list[str]:
    """The statements as cells: those of one cell together, course markers neutralised."""
    groups: list[list[Loose]] = []
    for item in found:
        if groups and groups[-1][0].cell == item.cell:
            groups[-1].append(item)
        else:
            groups.append([item])
    return [without_marker(joined([item.piece for item in group])) for group in groups]


def _is_task(cell: CodeCell) -> bool:
    """Whether learners write in it: a TODO's cell or the optional one."""
    return str(cell.course_id or "").startswith(("todo-", "extra"))


def _serves(
    piece: Piece,
    names: set[str],
    data: set[str],
    tasks: frozenset[str],
    imported: set[str],
    reach: Mapping[str, set[str]],
) -> bool:
    if piece.binds & names:
        return True
    if piece.is_import:
        return ANY in piece.binds or _is_future(piece)
    if piece.at_once & tasks:
        return False
    if any(reach.get(name, set()) & (names | data) for name in piece.at_once):
        return True
    if piece.is_setting:
        return bool(piece.changes) and piece.changes <= imported | _MODULES
    return bool(piece.changes & data)


def _is_future(piece: Piece) -> bool:
    """``from __future__ import …``, which counts for every cell below it."""
    return any(getattr(node, "module", "") == "__future__" for node in piece.nodes)


# What a lesson's set-up cell, or everyone's habit, has imported under these names.
_MODULES = frozenset({"torch", "np", "numpy", "random", "sys", "math", "warnings"})


@lru_cache(maxsize=8)
def _pristine_pieces(course: Course, language: str) -> dict[str, dict[str, frozenset[str]]]:
    """Cell id → its statements, and the names that each binds."""
    found = {}
    for cell in course.exercise[language].cells:
        if cell.cell_type == "code":
            tree, _ = parse_code(cell.source)
            cut = pieces(cell.source, tree) if tree else []
            found[str(cell.id)] = {_code(piece): piece.binds for piece in cut}
    return found


def _code(piece: Piece) -> str:
    """The statement without comments and layout."""
    try:
        return "\n".join(ast.dump(node) for node in piece.nodes)
    except RecursionError:
        return piece.source
