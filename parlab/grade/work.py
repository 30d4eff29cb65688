"""One submission: rebuilt, run, called, decided. The parts that do so are handed in."""

import hashlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from parlab.grade import counterexample, decide
from parlab.grade.cases import Case
from parlab.grade.exam import Exam
from parlab.grade.graded import Counterexample, Graded, TodoResult
from parlab.grade.rows import NOT_HANDED_IN
from parlab.grade.shrink import shrink, size
from parlab.grade.types import CallOutcome, Note, Rebuilt, Result, RunOutcome, Submission

# What an honest answer never leads to, and what costs everything: believed when it comes twice.
_TWICE = ("tampered", "grader_error", "kernel_died")


class Parts(Protocol):
    """What takes a submission apart and runs it: `real.RealParts`, and fakes in tests."""

    def rebuild(self, content: bytes) -> Rebuilt: ...

    def run(self, rebuilt: Rebuilt) -> RunOutcome: ...

    def call(self, rebuilt: Rebuilt, todo: int, cases: Sequence[Case]) -> CallOutcome: ...

    def source(self, rebuilt: Rebuilt, todo: int) -> str:
        """The source that a line number in a result counts in."""
        ...

    def healthy(self) -> bool:
        """Whether what runs submissions is there; where it is not, no result means anything."""
        ...


class GraderFailed(Exception):
    """The grader itself could not do its work on a submission; says what it knows."""


def digest_of(submission: Submission) -> str:
    """SHA-256 of the submission's bytes; empty where there are none."""
    content = submission.content
    return "" if content is None else hashlib.sha256(content).hexdigest()


def grade_one(exam: Exam, parts: Parts, submission: Submission) -> Graded:
    """The whole way of one submission.

    Raises:
        GraderFailed: the grader itself failed; the caller makes a row of it, as of any other
            exception.
    """
    begun = time.monotonic()
    if submission.content is None:
        return _nothing(exam, submission, begun)
    rebuilt = parts.rebuild(submission.content)
    notes = tuple(rebuilt.notes)
    if rebuilt.is_solution:
        notes = (("is_solution", {}), *notes)
    if rebuilt.notebook is None:
        return _row(exam, submission, rebuilt.status or "unreadable", begun, notes)
    run = _run(parts, rebuilt)
    calls = {} if run.status == "tampered" else _call_all(exam, parts, rebuilt)
    todos = tuple(
        _todo(exam, parts, rebuilt, run, number, calls.get(number)) for number in exam.functions
    )
    notes += tuple(run.notes) + tuple(note for call in calls.values() for note in call.notes)
    status = decide.status_of(rebuilt, run, todos)
    if status == "grader_error" or not parts.healthy():
        raise GraderFailed("; ".join(str(note) for note in notes) or f"run: {run.status}")
    graded = _row(exam, submission, status, begun, notes, todos)
    return replace(graded, peak_memory_mb=run.peak_memory_mb)


def _run(parts: Parts, rebuilt: Rebuilt) -> RunOutcome:
    first = parts.run(rebuilt)
    if first.status not in _TWICE:
        return first
    second = parts.run(rebuilt)
    if second.status == first.status:
        return second
    return replace(second, notes=(*second.notes, ("run_again", {"status": first.status})))


def _nothing(exam: Exam, submission: Submission, begun: float) -> Graded:
    """The row of somebody whose file could not be read, or who handed nothing in."""
    problem = submission.problem
    if problem and problem[0] == NOT_HANDED_IN:
        row = _row(exam, submission, NOT_HANDED_IN, begun, ())
        return replace(row, todos=tuple(replace(todo, share=None) for todo in row.todos))
    return _row(exam, submission, "unreadable", begun, (problem,) if problem else ())


def _call_all(exam: Exam, parts: Parts, rebuilt: Rebuilt) -> dict[int, CallOutcome]:
    return {
        number: parts.call(rebuilt, number, exam.cases[number])
        for number in exam.functions
        if rebuilt.state.get(number) == "answered"
    }


def _row(
    exam: Exam,
    submission: Submission,
    status: str,
    begun: float,
    notes: Sequence[Note],
    todos: tuple[TodoResult, ...] = (),
) -> Graded:
    empty = tuple(TodoResult(number, name, "missing") for number, name in exam.functions.items())
    return Graded(
        student=submission.student,
        display=submission.display,
        path=submission.path,
        status=status,
        todos=todos or empty,
        found=submission.notes,
        notes=tuple(once(notes)),
        seconds=round(time.monotonic() - begun, 3),
        digest=digest_of(submission),
    )


def once(notes: Sequence[Note]) -> list[Note]:
    """The notes, each once."""
    seen: dict[str, Note] = {}
    for key, values in notes:
        seen.setdefault(repr((key, sorted(values.items(), key=str))), (key, values))
    return list(seen.values())


def failed_row(exam: Exam, submission: Submission, log: str, error: BaseException) -> Graded:
    """The row of a submission that the grader itself failed on: no points, no zero either.

    Args:
        log: name of the file that says more.
    """
    said = f"{type(error).__name__}: {error}"[:300]
    row = _row(exam, submission, "grader_error", time.monotonic(), ())
    todos = tuple(replace(todo, state="answered", share=None) for todo in row.todos)
    return replace(row, todos=todos, notes=(("grader_error", {"log": log, "said": said}),))


def _todo(
    exam: Exam,
    parts: Parts,
    rebuilt: Rebuilt,
    run: RunOutcome,
    number: int,
    outcome: CallOutcome | None,
) -> TodoResult:
    state = rebuilt.state.get(number, "missing")
    result = TodoResult(
        todo=number,
        function=exam.functions[number],
        state=state,
        check=run.checks.get(number, "unknown"),
    )
    if outcome is None:
        return result
    cases, expected = exam.cases[number], exam.expected[number]
    rules, wrong = decide.judge(exam.rules[number], cases, expected, outcome)
    earned = 0.0 if outcome.status else decide.share(rules)
    failure = _failure(exam, parts, rebuilt, number, outcome, wrong)
    if decide.never_called(outcome):
        return replace(result, share=0.0, trouble="does_not_run", failure=failure)
    return replace(result, share=earned, trouble=outcome.status, rules=rules, failure=failure)


def _failure(
    exam: Exam,
    parts: Parts,
    rebuilt: Rebuilt,
    number: int,
    outcome: CallOutcome,
    wrong: Sequence[int],
) -> Counterexample | None:
    """The smallest failing case: of the first rule that fails, else one that changed its input."""
    cases, expected = exam.cases[number], exam.expected[number]
    changed = decide.changed_inputs(outcome)
    order = [rule.key for rule in exam.rules[number]]
    candidates = wrong or changed
    if not candidates:
        return None
    index = min(candidates, key=lambda i: (order.index(cases[i].rule), size(cases[i].arguments)))
    got = outcome.results[index] if index < len(outcome.results) else None
    best: tuple[Case, Result, Result | None] = (cases[index], expected[index], got)
    alone = True
    if not outcome.status and got is not None and got[0] != "missing":
        best, alone = _shrunk(exam, parts, rebuilt, number, best, changed=not wrong)
    source = parts.source(rebuilt, number)
    found = counterexample.word(exam.functions[number], source, *best)
    if not alone:
        found = replace(found, reasons=(("case_not_alone", {}), *found.reasons))
    return found


def _shrunk(
    exam: Exam,
    parts: Parts,
    rebuilt: Rebuilt,
    number: int,
    first: tuple[Case, Result, Result | None],
    changed: bool,
) -> tuple[tuple[Case, Result, Result | None], bool]:
    """The smallest failing case that fails when called alone; the first, and False, where none."""

    def call(cases: Sequence[Case]) -> Sequence[Result]:
        return parts.call(rebuilt, number, cases).results

    def expect(case: Case) -> Result | None:
        return exam.right_for(number, case)

    def fails(case: Case, right: Result, got: Result | None) -> bool:
        if changed:
            return got is not None and got[0] == "changed_input"
        if got is not None and got[0] == "missing":
            return False
        return not decide.right(case, right, got)

    def steps(arguments: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]:
        return exam.module.smaller(number, arguments)

    small = shrink(*first, call, expect, fails, steps)
    for case, right, _ in [small] if small[0] is first[0] else [small, first]:
        results = call([case])
        if results and fails(case, right, results[0]):
            return (case, right, results[0]), True
    return first, False
