"""What a solution shows and its exercise does not: ``# BEGIN SOLUTION`` to ``# END SOLUTION``."""

import ast
import re

from parlab.author.anchors import Anchor
from parlab.author.comments import comments
from parlab.author.source import Report

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"
_ALMOST = re.compile(r"#+\W*(?:BEGIN|END)\W+SOLUTION\b", re.IGNORECASE)


def check_markers(source: str, anchor: Anchor | None, line: int, report: Report) -> bool:
    """Refuses markers that are unbalanced, misspelt, missing from a task or outside of one.

    Args:
        source: a code cell's source, valid Python.
        anchor: what the cell is.
        line: the file's line of its first line.
        report: takes each problem.

    Returns:
        Whether the markers are sound.
    """
    sound = True
    opened: int | None = None
    blocks = 0
    lines = source.split("\n")

    def fail(at: int, message: str) -> None:
        nonlocal sound
        sound = False
        report(at, message)

    for comment in comments(source):
        number, text = line + comment.line - 1, comment.text
        if not _ALMOST.match(text):
            continue
        if text not in (BEGIN, END) or not comment.alone:
            fail(number, f"marker {text!r}: write {BEGIN!r} or {END!r} alone on its line")
        elif not (anchor and anchor.is_task):
            fail(number, f"{text!r} outside a TODO or EXTRA cell: learners write only there")
        elif text == BEGIN:
            if opened:
                fail(number, f"{BEGIN!r} inside the block of line {opened}: close that first")
            opened = number
        elif not opened:
            fail(number, f"{END!r} closes nothing: put {BEGIN!r} before the solution")
        else:
            block = lines[opened - line + 1 : number - line]
            if all(text.lstrip()[:1] in ("", "#") for text in block):
                fail(opened, f"the block after {BEGIN!r} holds no code: put the solution into it")
            opened = None
            blocks += 1
    if opened:
        fail(opened, f"{BEGIN!r} is never closed: put {END!r} after the solution")
    if sound and anchor and anchor.is_task and not blocks:
        fail(line, f"{anchor.label} has no solution block: put {BEGIN!r} … {END!r} around it")
    return sound


def stub(source: str, label: str) -> str:
    """``source`` with each solution block replaced by ``raise NotImplementedError(label)``."""
    kept: list[str] = []
    hidden = False
    for line in source.split("\n"):
        if line.strip() == BEGIN:
            hidden = True
            kept.append(
                f'{line[: len(line) - len(line.lstrip())]}raise NotImplementedError("{label}")'
            )
        elif line.strip() == END:
            hidden = False
        elif not hidden:
            kept.append(line)
    return "\n".join(kept)


def solution_blocks(source: str) -> list[str]:
    """The lines of each solution block, without their indents."""
    blocks: list[list[str]] = []
    hidden = False
    for line in map(str.strip, source.split("\n")):
        if line == BEGIN:
            blocks.append([])
        elif hidden and line != END:
            blocks[-1].append(line)
        hidden = line == BEGIN or (hidden and line != END)
    return ["\n".join(block) for block in blocks]


def check_stub(source: str, anchor: Anchor, line: int, report: Report) -> None:
    """Refuses a task whose stub is not Python or no longer defines what the anchor names."""
    try:
        tree = ast.parse(stub(source, anchor.label))
    except SyntaxError as error:
        report(
            line,
            f"without its solution {anchor.label} is not Python ({error.msg}): move the markers",
        )
        return
    definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    if anchor.function not in {node.name for node in tree.body if isinstance(node, definitions)}:
        report(
            line,
            f"{anchor.label} names {anchor.function}, which its stub does not define: "
            f"keep 'def {anchor.function}' outside the markers, or mend the name",
        )
