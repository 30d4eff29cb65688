"""A cell's identity: the first line of its source.

Colab drops cell ids and other editors drop metadata, so the source is the only anchor that stays.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from parlab.author.comments import comments
from parlab.author.source import Report

SETUP, TODO, CHECK, EXTRA, CHECK_EXTRA = "setup", "todo", "check", "extra", "check-extra"
FORMS = (
    "'# SETUP', '# TODO 1 · function_name', '# CHECK 1', '# EXTRA · function_name', '# CHECK EXTRA'"
)
_CHECKS = ("check", "check_todo")  # what a check cell calls with its number and function
_ANCHOR = re.compile(
    r"# (?:(?P<setup>SETUP)|TODO (?P<todo>[1-9]\d*) · (?P<todo_name>[A-Za-z_]\w*)"
    r"|CHECK (?P<check>[1-9]\d*)|EXTRA · (?P<extra_name>[A-Za-z_]\w*)|CHECK (?P<extra>EXTRA))"
)
# Written like an anchor, but perhaps not quite: capitals as a first word, or a number after it.
_ALMOST = re.compile(r"\s*#+\s*(?:(?:SETUP|TODO|CHECK|EXTRA)\b|(?i:(?:todo|check) *\d))")


@dataclass(frozen=True)
class Anchor:
    """What a code cell is.

    Attributes:
        kind: one of the kinds above.
        number: the TODO's number; None for set-up and extra.
        function: what a TODO or EXTRA cell asks for.
    """

    kind: str
    number: int | None = None
    function: str | None = None

    @property
    def cell_id(self) -> str:
        """``todo-1``, ``check-1``, ``setup``, ``extra`` or ``check-extra``."""
        return self.kind if self.number is None else f"{self.kind}-{self.number}"

    @property
    def label(self) -> str:
        """What a stub says is missing: ``TODO 1`` or ``EXTRA``."""
        return "EXTRA" if self.number is None else f"TODO {self.number}"

    @property
    def is_task(self) -> bool:
        """Whether learners write code here."""
        return self.kind in (TODO, EXTRA)

    @property
    def is_check(self) -> bool:
        """Whether the cell judges a task."""
        return self.kind in (CHECK, CHECK_EXTRA)

    @property
    def task_id(self) -> str:
        """The ``cell_id`` of the task that a check judges."""
        return EXTRA if self.kind == CHECK_EXTRA else f"{TODO}-{self.number}"

    @property
    def tag(self) -> str | None:
        """The cell's tag in the built notebooks."""
        return None if self.kind == SETUP else self.kind.partition("-")[0]


def anchor_of(source: str) -> Anchor | None:
    """The anchor in the first line of a code cell's source, if it has one."""
    found = _ANCHOR.fullmatch(source.split("\n", 1)[0])
    if not found:
        return None
    if found["setup"]:
        return Anchor(SETUP)
    if found["todo"]:
        return Anchor(TODO, int(found["todo"]), found["todo_name"])
    if found["check"]:
        return Anchor(CHECK, int(found["check"]))
    return Anchor(CHECK_EXTRA) if found["extra"] else Anchor(EXTRA, None, found["extra_name"])


def check_anchor_lines(source: str, line: int, report: Report) -> None:
    """Refuses a first line that is almost an anchor, and an anchor below the first line.

    Args:
        source: a code cell's source, valid Python.
        line: the file's line of its first line.
        report: takes each problem.
    """
    first = source.split("\n", 1)[0]
    if _ALMOST.match(first) and not anchor_of(first):
        report(line, f"{first!r} is almost an anchor: write one of {FORMS}, or another comment")
    for comment in comments(source):
        if comment.line > 1 and anchor_of(comment.text):
            message = f"{comment.text!r} is not its cell's first line: start a cell with it"
            report(line + comment.line - 1, message)


def check_order(anchors: Sequence[tuple[Anchor | None, int]], report: Report) -> None:
    """Refuses anchors that are missing, repeated or out of order.

    Args:
        anchors: each code cell's anchor and line, in the file's order.
        report: takes each problem.
    """
    if not anchors or anchors[0][0] != Anchor(SETUP):
        line = anchors[0][1] if anchors else 1
        report(line, "the first code cell is not the set-up: start it with '# SETUP'")
    seen: dict[str, int] = {}
    named = [(anchor, line) for anchor, line in anchors if anchor]
    for anchor, line in named:
        if anchor.cell_id in seen:
            report(
                line, f"a second {anchor.cell_id} (first: line {seen[anchor.cell_id]}): keep one"
            )
        seen.setdefault(anchor.cell_id, line)
    todos = [(anchor, line) for anchor, line in named if anchor.kind == TODO]
    for expected, (anchor, line) in enumerate(todos, 1):
        if anchor.number != expected:
            report(line, f"TODO {anchor.number} stands where TODO {expected} belongs: renumber it")
            break
    for position, (anchor, line) in enumerate(named):
        if anchor.is_task:
            _check_has_check(anchor, line, [later for later, _ in named[position + 1 :]], report)
        elif anchor.is_check and anchor.task_id not in {a.cell_id for a, _ in named[:position]}:
            report(line, f"{anchor.cell_id} has no {anchor.task_id} before it: move or drop it")


def check_asserts(anchor: Anchor | None, tree: ast.Module, line: int, report: Report) -> None:
    """Refuses an ``assert`` that is always true, and a check cell without any."""
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    for node in asserts:
        if isinstance(node.test, ast.Constant | ast.Tuple):
            text = ast.unparse(node.test)
            report(
                line + node.lineno - 1,
                f"assert {text} does not depend on what was computed: compare something, "
                "without parentheses round condition and message",
            )
    if anchor and anchor.is_check and not asserts:
        report(line, f"{anchor.cell_id} holds no assert: a check states what must be true")


def check_subject(
    anchor: Anchor, task: Anchor | None, tree: ast.Module, line: int, report: Report
) -> None:
    """Refuses a check cell whose ``check_todo(k, 'name')`` is about another task than its anchor.

    Args:
        anchor: a check cell's.
        task: that of the task it judges, where there is one.
        tree: the cell.
        line: the file's line of its first line.
        report: takes each problem.
    """
    wanted = [anchor.number or "EXTRA", task.function if task else None]
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and getattr(node.func, "id", None) in _CHECKS):
            continue
        for given, right in zip(node.args, wanted, strict=False):
            if right and isinstance(given, ast.Constant) and given.value != right:
                report(
                    line + node.lineno - 1,
                    f"{given.value!r} in the check of {anchor.cell_id}: write {right!r}",
                )


def _check_has_check(task: Anchor, line: int, later: list[Anchor], report: Report) -> None:
    check = "# CHECK EXTRA" if task.kind == EXTRA else f"# CHECK {task.number}"
    for anchor in later:
        if anchor.is_check and anchor.task_id == task.cell_id:
            return
        if anchor.kind == task.kind == TODO:
            break
    before = "" if task.kind == EXTRA else f" before TODO {(task.number or 0) + 1}"
    report(line, f"{task.label} · {task.function} has no check: add a cell {check!r}{before}")
