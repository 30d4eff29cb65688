"""Makes a student's code cell plain Python: no magics, no shell, no markers that nbval obeys."""

import ast
import re
import warnings
from dataclasses import dataclass

from parlab.grade.types import Note

MAX_CELL = 200_000  # characters of a cell that is analysed; a longer one is left out
_MAX_DROPPED = 60  # lines of magics in one cell
_MAGIC = re.compile(r"\s*(?:[%!]|\?{1,2}\w|(?:[\w, .\[\]'\"]+=\s*)[%!])|.*[\w)\]]\?{1,2}\s*$")
_CELL_MAGIC = re.compile(r"%%(\w+)")
_PYTHON_BODIES = ("time", "capture", "prun")
_NBVAL = re.compile(r"^(\s*)#[#\s]*(?:PYTEST_VALIDATE_IGNORE_OUTPUT|NBVAL_\w+)\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Cleaned:
    """A cell's code, ready to be analysed and run.

    Attributes:
        source: the code, with as many lines as the original.
        tree: its syntax tree, without type comments; None where it is no Python.
        error: line and message of the syntax error.
        notes: what was dropped.
    """

    source: str
    tree: ast.Module | None
    error: tuple[int, str] | None = None
    notes: tuple[Note, ...] = ()


def clean(source: str) -> Cleaned:
    """``source`` without what only a notebook understands; a dropped line becomes a comment."""
    notes: list[Note] = []
    if len(source) > MAX_CELL:
        note = ("cell_too_long", {"count": len(source), "limit": MAX_CELL})
        return Cleaned("", None, (1, "too long"), (note,))
    source, markers = _NBVAL.subn(r"\1# (marker removed)", source)
    if markers:
        notes.append(("nbval_markers", {"count": markers}))
    source, dropped = _without_cell_magic(source)
    tree, error = parse_code(source)
    most = max(3, _MAX_DROPPED * 10_000 // max(len(source), 10_000))  # each costs a parse
    while error and len(dropped) < most:
        lines = source.split("\n")
        at = _magic_line(lines, error[0])
        if at is None:
            break
        dropped.append(lines[at].strip()[:80])
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        lines[at] = f"{indent}pass  # (magic removed)" if indent else "# (magic removed)"
        source = "\n".join(lines)
        tree, error = parse_code(source)
    if dropped:
        notes.append(("magics", {"lines": dropped[:5], "count": len(dropped)}))
    return Cleaned(source, tree, error, tuple(notes))


def parse_code(source: str) -> tuple[ast.Module | None, tuple[int, str] | None]:
    """The tree, or line and message of what makes it no Python. Runs nothing."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
            compile(source, "<cell>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return tree, None
    except SyntaxError as error:
        return None, (error.lineno or 1, str(error.msg)[:200])
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return None, (1, f"{type(error).__name__}: {error}"[:200])


def _without_cell_magic(source: str) -> tuple[str, list[str]]:
    lines = source.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    # A comment above does not stop IPython from seeing an ordinary line, but a cell magic must be
    # the first line; students put the course's marker above it all the same.
    while first < len(lines) and lines[first].startswith("#"):
        first += 1
    found = _CELL_MAGIC.match(lines[first]) if first < len(lines) else None
    if not found:
        return source, []
    dropped = lines[first].strip()[:80]
    if found[1] in _PYTHON_BODIES:
        lines[first] = "# (magic removed)"
        return "\n".join(lines), [dropped]
    return "\n".join(lines[:first] + ["# (magic removed)"] * (len(lines) - first)), [dropped]


def _magic_line(lines: list[str], line: int) -> int | None:
    """Index of the magic that stops the parser at ``line``: that one, or the one just before."""
    for index in (line - 1, line - 2):
        if 0 <= index < len(lines) and _MAGIC.match(lines[index]):
            return index
    return None
