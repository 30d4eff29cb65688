"""What the parts of the grader hand to each other."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from nbformat import NotebookNode

# The first that applies is a submission's status; whatever is unknown is not passed.
STATUSES = (
    "grader_error",  # the grader itself failed: see the log
    "unreadable",  # no notebook could be read
    "wrong_lesson",  # another lesson's notebook
    "missing_answers",  # a TODO, or its function, is absent
    "tampered",  # the canary or the plugin caught something while running
    "memory",  # the whole submission's memory ran out
    "output_limit",  # it wrote more than is read
    "timeout",  # CPU time or wall time ran out
    "kernel_died",  # the kernel was gone
    "does_not_run",  # an answer's cell ends in an error, so its function was never called
    "unfinished",  # a stub is unchanged
    "partial",  # it ran, and scores less than full: also 0
    "ok",
)

# The largest notebook that is read, in bytes: larger ones are unreadable.
MAX_NOTEBOOK_BYTES = 20 * 1024 * 1024

# A remark for the reader: a key of `parlab.grade.texts` and the values that its text names.
Note: TypeAlias = tuple[str, Mapping[str, Any]]

# A call's result in the sandbox: ("value", plain data), ("raised", type, message, line),
# ("changed_input", …), ("not_plain", type name) or ("missing", reason).
Result: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Submission:
    """One student's submission as it was found.

    Attributes:
        student: key of the student, safe as a file name (`students.safe_name`).
        display: the name as found, or as the roster has it.
        path: where it came from, inside a zip too.
        content: the notebook's bytes, at most `MAX_NOTEBOOK_BYTES`; None where unreadable.
        notes: what was noticed on the way in.
        problem: the note that makes it unreadable, else None.
    """

    student: str
    display: str
    path: str
    content: bytes | None
    notes: tuple[Note, ...] = ()
    problem: Note | None = None


@dataclass(frozen=True)
class Rebuilt:
    """The lesson's pristine exercise with a student's answers and helpers in it.

    Attributes:
        notebook: what is run; None where there is nothing to run.
        answers: TODO number → source of its cell or cells, as placed.
        helpers: sources of the student's other definitions, in order.
        state: TODO number → ``answered``, ``stub`` or ``missing``.
        notes: what was restored, moved or dropped.
        status: ``unreadable``, ``wrong_lesson`` or ``missing_answers``, else None.
        is_solution: the answers are the solution's own.
    """

    notebook: NotebookNode | None
    answers: Mapping[int, str]
    helpers: tuple[str, ...]
    state: Mapping[int, str]
    notes: tuple[Note, ...] = ()
    status: str | None = None
    is_solution: bool = False


@dataclass(frozen=True)
class RunOutcome:
    """What came of running the rebuilt notebook in the sandbox.

    Attributes:
        status: ``tampered``, ``memory``, ``output_limit``, ``timeout``, ``kernel_died`` or
            ``grader_error``, else None.
        checks: TODO number → ``passed``, ``failed``, ``not_done`` or ``unknown``.
        notes: what was noticed.
        seconds: wall time.
        peak_memory_mb: of the whole submission; None where it could not be read.
    """

    status: str | None
    checks: Mapping[int, str]
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    peak_memory_mb: float | None = None


@dataclass(frozen=True)
class CallOutcome:
    """One TODO's function on its cases, the other TODOs' functions from the solution.

    Attributes:
        todo: the TODO's number.
        results: one a case, in order; fewer where the sandbox ended early.
        status: ``memory``, ``timeout``, ``kernel_died``, ``output_limit`` or ``tampered``, else
            None.
        notes: what was noticed.
    """

    todo: int
    results: tuple[Result, ...] = ()
    status: str | None = None
    notes: tuple[Note, ...] = field(default=())
