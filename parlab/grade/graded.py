"""What the grader keeps of one submission: bounded plain data that goes to a file and back."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from parlab.grade.types import Note


@dataclass(frozen=True)
class RuleResult:
    """How many of a rule's cases came out right; it counts when all did."""

    key: str
    weight: int
    right: int
    total: int
    passed: bool


@dataclass(frozen=True)
class Counterexample:
    """A case that came out wrong, made as small as it would go.

    Attributes:
        rule: the rule's key.
        call: the call as Python, to paste into the notebook.
        expected: what the solution returns, on one line.
        actual: what came back, on one line.
        reasons: what a look at types, keys and exceptions says.
    """

    rule: str
    call: str
    expected: str
    actual: str
    reasons: tuple[Note, ...] = ()


@dataclass(frozen=True)
class TodoResult:
    """One TODO of one submission.

    Attributes:
        todo: its number.
        function: the function that it asks for.
        state: ``answered``, ``stub`` or ``missing``.
        check: what the notebook's own check said: ``passed``, ``failed``, ``not_done`` or
            ``unknown``.
        share: of its points, 0 to 1; None where the grader failed.
        trouble: the status of its calls (``timeout`` …), else None.
        rules: in the lesson's order; empty where nothing was called.
        failure: the smallest failing case found.
    """

    todo: int
    function: str
    state: str
    check: str = "unknown"
    share: float | None = 0.0
    trouble: str | None = None
    rules: tuple[RuleResult, ...] = ()
    failure: Counterexample | None = None


@dataclass(frozen=True)
class Graded:
    """One submission's result, before points and hand corrections.

    Attributes:
        student: the key, safe as a file name.
        display: the name for people.
        path: where the submission came from.
        status: one of `types.STATUSES`.
        todos: one a TODO, in order.
        found: notes on how the submission arrived.
        notes: notes on what was restored, and on the run.
        seconds: wall time for this submission.
        peak_memory_mb: of its sandbox, where known.
        digest: SHA-256 of the submission's bytes, empty where there are none.
        reused: taken from an earlier run.
    """

    student: str
    display: str
    path: str
    status: str
    todos: tuple[TodoResult, ...]
    found: tuple[Note, ...] = ()
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    peak_memory_mb: float | None = None
    digest: str = ""
    reused: bool = False


def to_plain(graded: Graded) -> dict[str, Any]:
    """As JSON holds it."""
    return asdict(replace(graded, reused=False))


def from_plain(plain: Mapping[str, Any]) -> Graded:
    """The reverse.

    Raises:
        KeyError, TypeError, ValueError: it is something else.
    """
    todos = tuple(_todo(item) for item in plain["todos"])
    found, notes = _notes(plain["found"]), _notes(plain["notes"])
    return Graded(**{**plain, "todos": todos, "found": found, "notes": notes})


def _todo(plain: Mapping[str, Any]) -> TodoResult:
    rules = tuple(RuleResult(**rule) for rule in plain["rules"])
    failure = plain["failure"]
    if failure is not None:
        failure = Counterexample(**{**failure, "reasons": _notes(failure["reasons"])})
    return TodoResult(**{**plain, "rules": rules, "failure": failure})


def _notes(plain: Sequence[Any]) -> tuple[Note, ...]:
    return tuple((str(key), dict(values)) for key, values in plain)
