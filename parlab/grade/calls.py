"""Calls a student's function on cases in the sandbox and brings back plain data.

Arguments go out one case at a time, results come back as tagged plain data of bounded size. The
expected values never go near the student's process, so that all it can ever say is "this is my
value"; who compares is the grader.
"""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from parlab.grade import plain
from parlab.grade.calling import SLOW, Answer, SandboxLost, Session
from parlab.grade.calling import Case as PlainCase
from parlab.grade.limits import Limits
from parlab.grade.ranks import Ranks
from parlab.grade.types import CallOutcome, Result
from parlab.grade.warm import RunContext
from parlab.grade.wire import TooMuch, Wire

_SLOW = 2  # so many calls that do not end in time, and no more are made
_NO_MEMORY = ("MemoryError", "can't allocate memory", "not enough memory")


class Case(PlainCase, Protocol):
    """What is needed of a case (`parlab.grade.cases`), which may be one on ranks."""

    @property
    def ranks(self) -> Callable[..., Ranks] | None:
        """Of ``run_ranks``: what the arguments stand for."""


def call_answer(
    todo: int,
    function: str,
    source: str,
    helpers: Sequence[str],
    cases: Sequence[Case],
    context: RunContext,
    others: Mapping[str, Answer] | None = None,
) -> CallOutcome:
    """One TODO's function on its cases, one result a case, in order.

    Args:
        todo: its number.
        function: its name.
        source: the student's cell.
        helpers: what is run before it: the lesson's set-up, the student's other definitions.
        cases: their arguments are what the student's process gets to see, each when its turn
            comes.
        others: the solution's functions that this one may call. They run in sandboxes of their
            own; with cases on ranks they are beside the answer, since a function that takes a
            communicator, or that gradients pass through, cannot be called from elsewhere.
    """
    results: list[Result] = []
    status: str | None = None
    notes: list[tuple[str, dict[str, Any]]] = []
    known: dict[object, Result] = {}  # several rules may look at one run on ranks
    answer = Answer(source, helpers)
    on_ranks = any(case.call == "run_ranks" for case in cases)
    local, elsewhere = (others or {}, {}) if on_ranks else ({}, others or {})
    with contextlib.ExitStack() as stack:

        def start() -> Session:
            return stack.enter_context(Session(function, answer, tuple(asked), context, local))

        try:
            asked = {
                name: stack.enter_context(Session(name, other, (), context))
                for name, other in elsewhere.items()
            }
            crew = [start()]
            missing = crew[0].begin()
            for case in cases if missing is None else ():
                if case.call != "run_ranks":
                    result = crew[0].call(case, asked)
                elif (run := (case.ranks, repr(case.arguments))) in known:
                    result = known[run]
                else:
                    result = known[run] = _call_ranks(case, crew, start, context.limits)
                results.append(result)
                if results.count(SLOW) == _SLOW:
                    missing, status = SLOW, _given_up(results)
                    break
                if result[0] == "raised" and any(
                    word in " ".join(result[1:3]) for word in _NO_MEMORY
                ):
                    status = "memory"
        except SandboxLost as lost:
            missing, status = ("missing", lost.status), lost.status
            notes.append((lost.status, {"todo": todo, "text": lost.text[:500]}))
    rest: Result = missing or ("missing", "kernel_died")
    results += [rest] * (len(cases) - len(results))
    return CallOutcome(todo, tuple(results), status, tuple(notes))


class _Line:
    """The way to one rank, for as long as a case may take."""

    def __init__(self, session: Session, end: float) -> None:
        self._session, self._end = session, end

    def send(self, message: Any) -> None:
        self._session.send(message, self._end)

    def receive(self) -> list[Any]:
        return self._session.receive(self._end)


def _call_ranks(
    case: Case, crew: list[Session], start: Callable[[], Session], limits: Limits
) -> Result:
    """A case on ranks: each in a sandbox of its own, started when the first case needs it."""
    assert case.ranks
    ranks = case.ranks(*case.arguments)
    while len(crew) < ranks.size:
        crew.append(start())
        failed = crew[-1].begin()
        if failed:
            raise SandboxLost("kernel_died", f"what rank 0 could define, another cannot: {failed}")
    end = time.monotonic() + limits.case_seconds
    try:
        lines = [_Line(session, end) for session in crew[: ranks.size]]
        return Wire(lines, ranks, getattr(case, "seconds", None)).run()
    except plain.PlainError as error:
        raise SandboxLost("tampered", str(error)) from None
    except plain.NotPlain as error:
        raise SandboxLost("output_limit", str(error)) from None
    except TooMuch as error:
        raise SandboxLost("timeout", str(error)) from None


def _given_up(results: Sequence[Result]) -> str | None:
    """The status where too many calls were slow: None where others did come to an end."""
    return None if any(result != SLOW for result in results) else "timeout"
