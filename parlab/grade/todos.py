"""Finds a student's answer to each TODO.

A TODO's answer is the last cell, in the notebook's order (which is how *Run All* runs it), that
defines its function and is no stub, wherever it stands and whatever its marker says. Where nothing
defines the function, the cell with the TODO's marker, then the one with its id, is looked at: its
code may be broken, renamed, or turned into prose.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from parlab.grade.course import Course, Todo
from parlab.grade.markers import marker_of
from parlab.grade.names import Definition, Piece, definitions, joined
from parlab.grade.reading import CodeCell
from parlab.grade.types import Note

ANSWERED, STUB, MISSING = "answered", "stub", "missing"
_WRAPPED = 5  # `f = cache(f)` in a later cell: how many definitions back are kept


@dataclass(frozen=True)
class Answer:
    """What a student wrote for one TODO.

    Attributes:
        todo: the TODO.
        state: ``answered``, ``stub`` or ``missing``.
        source: its cell, from the TODO's marker on; the shipped stub where nothing was found.
        cells: indices of the student's cells that it comes from.
        pieces: its statements; empty where the code is broken.
        notes: which one counted, and why not another.
    """

    todo: Todo
    state: str
    source: str
    cells: tuple[int, ...] = ()
    pieces: tuple[Piece, ...] = ()
    notes: tuple[Note, ...] = ()


def find_answer(
    todo: Todo, cells: Sequence[CodeCell], hidden: Sequence[CodeCell], course: Course, language: str
) -> Answer:
    """The answer to ``todo`` among a notebook's cells.

    Args:
        cells: the code cells, in order.
        hidden: course code that stands in prose cells.
    """
    defining = [cell for cell in cells if list(_definers(cell, todo))]
    written = [cell for cell in defining if not _only_stubs(cell, todo)]
    own_id = f"todo-{todo.number}"
    claiming = [cell for cell in cells if cell.course_id == own_id and cell not in defining]
    broken = [cell for cell in cells if not cell.cleaned.tree and _says_def(cell, todo)]
    broken = [cell for cell in broken if not _text_is_stub(cell, todo)]
    if written:
        answer = _assemble(todo, written, course)
        return replace(answer, notes=_which_counted(todo, answer, written, defining))
    if broken:
        return _broken(todo, broken[-1])
    if defining:
        kept = _pieces_for(defining[-1], todo, course)
        source = _headed(_source(defining[-1], kept), todo)
        return Answer(todo, STUB, source, (defining[-1].index,), tuple(kept))
    prose = [cell for cell in hidden if cell.course_id == own_id and list(_definers(cell, todo))]
    if prose:
        return _from_prose(todo, prose[-1], course)
    return _missing(todo, claiming, language)


def is_stub(node: ast.stmt, todo: Todo) -> bool:
    """Whether a definition still does nothing: it raises NotImplementedError, or has no body.

    The ``raise`` counts as the stub's where the body reaches it: it stands in the body itself, and
    no more returns stand before it than in the shipped stub.
    """
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    body = [item for item in node.body if not _is_text(item)]
    if all(isinstance(item, ast.Pass) for item in body):
        return True
    returns = 0
    for item in body:
        if isinstance(item, ast.Raise) and _raises_not_implemented(item):
            return returns <= _stub_returns(next(iter(todo.stub.values())), todo.function)
        if isinstance(item, ast.Return | ast.Raise):
            return False
        returns += _returns(item)
    return False


def same_code(one: str, other: str) -> bool:
    """Whether two sources are the same but for comments, docstrings and layout."""
    if one == other:
        return True
    try:
        return _bare(one) == _bare(other)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def without_marker(source: str) -> str:
    """A cell's source with lines that say TODO, CHECK or SETUP neutralised, as many lines."""
    lines = source.split("\n")
    for number, line in enumerate(lines):
        if line.startswith("#") and marker_of(line):
            lines[number] = "# ·" + line.lstrip("#")
    return "\n".join(lines)


def _definers(cell: CodeCell, todo: Todo) -> Iterator[ast.stmt]:
    for piece in cell.pieces:
        if todo.function in piece.binds:
            for node in piece.nodes:
                yield from _definitions_in(node, todo.function)


def _definitions_in(node: ast.stmt, name: str) -> Iterator[ast.stmt]:
    yield from definitions(ast.Module(body=[node], type_ignores=[]), name)


def _only_stubs(cell: CodeCell, todo: Todo) -> bool:
    return all(is_stub(node, todo) for node in _definers(cell, todo))


def _assemble(todo: Todo, written: Sequence[CodeCell], course: Course) -> Answer:
    """The last written definition, and earlier ones that it wraps."""
    kept: list[Piece] = []
    used: list[int] = []
    for cell in list(reversed(written))[:_WRAPPED]:
        part = _pieces_for(cell, todo, course)
        source = _source(cell, part) if not kept else ""
        kept = part + kept
        used.insert(0, cell.index)
        if not _reads_first(kept, todo.function):
            break
    source = source or joined(kept)
    return Answer(todo, ANSWERED, _headed(source, todo), tuple(used), tuple(kept))


def _pieces_for(cell: CodeCell, todo: Todo, course: Course) -> list[Piece]:
    """The cell's statements without other TODOs' functions and without stubs beside an answer.

    Of a course cell that is not a TODO's (an edited check, say) only the definition is taken.
    """
    others = set(course.functions) - {todo.function}
    written = not _only_stubs(cell, todo)
    foreign = cell.course_id is not None and not cell.course_id.startswith("todo-")
    kept = []
    for piece in cell.pieces:
        binds = todo.function in piece.binds
        if binds and written and all(_piece_is_stub(node, todo) for node in piece.nodes):
            continue
        if not binds and (foreign or piece.binds & others):
            continue
        kept.append(piece)
    return kept


def _source(cell: CodeCell, kept: Sequence[Piece]) -> str:
    """The cell as it is where all of it is kept, else its pieces."""
    return cell.cleaned.source if len(kept) == len(cell.pieces) else joined(kept)


def _piece_is_stub(node: ast.stmt, todo: Todo) -> bool:
    found = list(_definitions_in(node, todo.function))
    return bool(found) and all(is_stub(inner, todo) for inner in found)


def _reads_first(kept: Sequence[Piece], name: str) -> bool:
    """Whether running the pieces reads ``name`` before it is bound."""
    for piece in kept:
        if name in piece.at_once:
            return True
        if name in piece.binds:
            return False
    return False


def _headed(source: str, todo: Todo) -> str:
    """The source under the TODO's own marker, and no other."""
    head = f"# TODO {todo.number} · {todo.function}"
    lines = source.strip("\n").split("\n")
    if lines[0].rstrip() == head:
        return "\n".join([head, without_marker("\n".join(lines[1:]))]).rstrip()
    found = marker_of(lines[0])
    if found and found.number == todo.number:
        lines = lines[1:]
    return "\n".join([head, without_marker("\n".join(lines))]).rstrip()


def _which_counted(
    todo: Todo, answer: Answer, written: Sequence[CodeCell], defining: Sequence[CodeCell]
) -> tuple[Note, ...]:
    notes: list[Note] = []
    last = answer.cells[-1]
    same = next(cell.cell.source for cell in written if cell.index == last)
    rivals = [cell for cell in written if cell.index not in answer.cells]
    others = [cell.index + 1 for cell in rivals if cell.cell.source != same]
    if others:
        values = {"todo": todo.number, "cell": last + 1, "others": others}
        notes.append(("several_answers", values))
    stubs = [cell.index + 1 for cell in defining if cell not in written and cell.index > last]
    if stubs:
        notes.append(("stub_after_answer", {"todo": todo.number, "cell": last + 1, "stubs": stubs}))
    cell = next(cell for cell in written if cell.index == last)
    if cell.course_id != f"todo-{todo.number}":
        notes.append(("answer_elsewhere", {"todo": todo.number, "cell": last + 1}))
    elif not (cell.marker and cell.marker.is_todo):
        notes.append(("marker_gone", {"todo": todo.number, "cell": last + 1}))
    return tuple(notes)


def _broken(todo: Todo, cell: CodeCell) -> Answer:
    line, message = cell.cleaned.error or (1, "")
    values = {"todo": todo.number, "cell": cell.index + 1, "line": line, "message": message}
    source = _headed(cell.cleaned.source, todo)
    return Answer(todo, ANSWERED, source, (cell.index,), (), (("syntax_error", values),))


def _from_prose(todo: Todo, cell: CodeCell, course: Course) -> Answer:
    kept = _pieces_for(cell, todo, course)
    note: Note = ("answer_was_prose", {"todo": todo.number, "cell": cell.index + 1})
    state = STUB if _only_stubs(cell, todo) else ANSWERED
    source = _headed(_source(cell, kept), todo)
    return Answer(todo, state, source, (cell.index,), tuple(kept), (note,))


def _missing(todo: Todo, claiming: Sequence[CodeCell], language: str) -> Answer:
    stub = todo.stub.get(language) or next(iter(todo.stub.values()))
    if not claiming:
        note: Note = ("todo_absent", {"todo": todo.number, "function": todo.function})
        return Answer(todo, MISSING, stub, (), (), (note,))
    cell = claiming[-1]
    names = [
        node.name for piece in cell.pieces for node in piece.nodes if isinstance(node, Definition)
    ]
    values = {"todo": todo.number, "function": todo.function, "cell": cell.index + 1}
    if cell.cleaned.error:
        line, message = cell.cleaned.error
        note = ("syntax_error", {**values, "line": line, "message": message})
    elif names:
        note = ("renamed", {**values, "found": names[:5]})
    else:
        note = ("function_absent", values)
    source = _headed(cell.cleaned.source, todo)
    return Answer(todo, MISSING, source, (cell.index,), cell.pieces, (note,))


def _says_def(cell: CodeCell, todo: Todo) -> bool:
    pattern = rf"^\s*(?:async\s+)?def\s+{todo.function}\b|^\s*{todo.function}\s*="
    return bool(re.search(pattern, cell.cell.source, re.MULTILINE))


def _text_is_stub(cell: CodeCell, todo: Todo) -> bool:
    return f'NotImplementedError("TODO {todo.number}")' in cell.cell.source.replace("'", '"')


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _raises_not_implemented(node: ast.Raise) -> bool:
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"


def _returns(node: ast.AST) -> int:
    count = 0
    waiting = [node]
    while waiting:
        part = waiting.pop()
        count += isinstance(part, ast.Return)
        if not isinstance(part, Definition | ast.Lambda):
            waiting += ast.iter_child_nodes(part)
    return count


@lru_cache(maxsize=64)
def _stub_returns(stub: str, function: str) -> int:
    """How many returns the shipped stub has before its ``raise``."""
    for node in definitions(ast.parse(stub), function):
        total = 0
        for item in getattr(node, "body", []):
            if isinstance(item, ast.Raise):
                return total
            total += _returns(item)
    return 0


@lru_cache(maxsize=64)
def _bare(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, Definition | ast.Module) and node.body and _is_text(node.body[0]):
            node.body = node.body[1:] or [ast.Pass()]
    return ast.dump(tree)
