"""Calls a student's function on cases in the sandbox and brings back plain data.

Arguments go out one case at a time, results come back as tagged plain data of bounded size. The
expected values never go near the student's process, so that all it can ever say is "this is my
value"; who compares is the grader.
"""

import contextlib
import json
import os
import select
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from parlab.grade import plain
from parlab.grade.forkserver import Connection
from parlab.grade.limits import MB, Limits
from parlab.grade.types import CallOutcome, Result
from parlab.grade.warm import RunContext

_ASKS = 2000  # how often one case may call another TODO's function
_SLOW = 2  # so many calls that do not end in time, and no more are made
_TOO_SLOW: Result = ("missing", "slow", "")
_NO_MEMORY = ("MemoryError", "can't allocate memory", "not enough memory")


class Case(Protocol):
    """What is needed of a case (`parlab.grade.cases`)."""

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Plain data."""

    @property
    def call(self) -> str:
        """``call``, or ``run_ranks``: see `parlab.grade.inside.driver`."""


@dataclass(frozen=True)
class Answer:
    """A TODO's function as source.

    Attributes:
        source: of its cell.
        helpers: sources that are run before it, such as the lesson's imports.
    """

    source: str
    helpers: Sequence[str] = ()


class SandboxLost(Exception):
    """No more results will come.

    Attributes:
        status: ``memory``, ``timeout``, ``kernel_died``, ``output_limit`` or ``tampered``.
    """

    def __init__(self, status: str, text: str = "") -> None:
        super().__init__(text or status)
        self.status, self.text = status, text


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
        others: the solution's functions that this one may call; they run in sandboxes of their
            own.
    """
    results: list[Result] = []
    status: str | None = None
    notes: list[tuple[str, dict[str, Any]]] = []
    answer = Answer(source, helpers)
    with contextlib.ExitStack() as stack:
        try:
            asked = {
                name: stack.enter_context(Session(name, other, (), context))
                for name, other in (others or {}).items()
            }
            session = stack.enter_context(Session(function, answer, tuple(asked), context))
            missing = session.begin()
            for case in cases if missing is None else ():
                result = session.call(case, asked)
                results.append(result)
                if results.count(_TOO_SLOW) == _SLOW:
                    missing, status = _TOO_SLOW, _given_up(results)
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


def _given_up(results: Sequence[Result]) -> str | None:
    """The status where too many calls were slow: None where others did come to an end."""
    return None if any(result != _TOO_SLOW for result in results) else "timeout"


def _is_memory(kind: str, text: str) -> bool:
    return any(word in f"{kind} {text}" for word in _NO_MEMORY)


class Session:
    """A function in a sandbox that takes calls.

    Args:
        function: its name.
        answer: where it is defined.
        others: names that it may use and that are not in its sandbox.
        context: the warm parent and the limits.
    """

    def __init__(
        self, function: str, answer: Answer, others: tuple[str, ...], context: RunContext
    ) -> None:
        self._limits: Limits = context.limits
        self._left = context.limits.output_mb * MB
        self._first: dict[str, Any] | None = {
            "function": function,
            "source": answer.source,
            "helpers": list(answer.helpers),
            "others": list(others),
        }
        inside_in, self._out = os.pipe()
        self._in, inside_out = os.pipe()
        request = {"kind": "call", "limits": asdict(context.limits)}
        try:
            self._sandbox = Connection(context.warm.zygote, request, (inside_in, inside_out))
        except OSError:
            os.close(self._out)
            os.close(self._in)
            raise
        finally:
            os.close(inside_in)
            os.close(inside_out)
        os.set_blocking(self._out, False)
        os.set_blocking(self._in, False)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        os.close(self._in)
        self._sandbox.kill()

    def begin(self) -> Result | None:
        """Runs the definitions; a ``missing`` result where the function does not come of them.

        Raises:
            SandboxLost: it ended instead.
        """
        if self._first is None:
            return None
        first, self._first = self._first, None
        end = time.monotonic() + self._limits.case_seconds
        self._send(first, end)
        word = self._receive(end)
        if word[0] == "ready":
            return None
        try:
            return _result(word)
        except plain.PlainError as error:
            raise SandboxLost("tampered", str(error)) from None

    def call(self, case: Case, others: Mapping[str, "Session"]) -> Result:
        """One call.

        Raises:
            SandboxLost: it ended instead.
        """
        seconds = getattr(case, "seconds", None)
        word = self._exchange(case.call, plain.tag(case.arguments), others, seconds)
        try:
            return _result(word)
        except plain.PlainError as error:
            return ("not_plain", str(error))

    def _exchange(
        self,
        kind: str,
        arguments: Any,
        others: Mapping[str, "Session"],
        seconds: float | None = None,
    ) -> list[Any]:
        end = time.monotonic() + self._limits.case_seconds
        self._send({"call": kind, "arguments": arguments, "seconds": seconds}, end)
        for _ in range(_ASKS):
            word = self._receive(end)
            if word[0] != "ask":
                return word
            self._send(_answer(word, others), end)
        raise SandboxLost("timeout", f"more than {_ASKS} calls of other functions")

    def _send(self, message: Any, end: float) -> None:
        text = json.dumps(message, separators=(",", ":")).encode()
        data = struct.pack("!I", len(text)) + text
        while data:
            self._wait(self._out, end, writing=True)
            try:
                data = data[os.write(self._out, data) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                self._lost(1.0)

    def _receive(self, end: float) -> list[Any]:
        size = struct.unpack("!I", self._read(4, end))[0]
        if size > self._limits.result_mb * MB or size > self._left:
            raise SandboxLost("output_limit", f"a result of {size} bytes")
        self._left -= size
        try:
            word = plain.parse(self._read(size, end))
        except plain.PlainError as error:
            raise SandboxLost("tampered", str(error)) from None
        if not isinstance(word, list) or not word or not isinstance(word[0], str):
            raise SandboxLost("tampered", "a message that the driver does not send")
        return word

    def _read(self, size: int, end: float) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            self._wait(self._in, end)
            try:
                part = os.read(self._in, min(65536, size - len(parts)))
            except BlockingIOError:
                continue
            if not part:
                self._lost(1.0)
            parts += part
        return bytes(parts)

    def _wait(self, fd: int, end: float, writing: bool = False) -> None:
        """Until ``fd`` is ready, or the sandbox is at its end and has nothing left to say."""
        poller = select.poll()
        poller.register(fd, select.POLLOUT if writing else select.POLLIN)
        poller.register(self._sandbox.fileno(), select.POLLIN)
        while True:
            ready = dict(poller.poll(max(0.0, end - time.monotonic()) * 1000))
            if fd in ready:
                return
            if ready and self._sandbox.poll():
                self._lost(0)
            if not ready and time.monotonic() >= end:
                raise SandboxLost("timeout", f"a call took more than {self._limits.case_seconds} s")

    def _lost(self, patience: float) -> None:
        self._sandbox.wait(patience)
        word = self._sandbox.ended or {}
        if word.get("error"):
            raise RuntimeError(f"no sandbox: {word['error']}")
        reasons = {"cpu": "timeout", "wall": "timeout", "memory": "memory"}
        raise SandboxLost(reasons.get(word.get("reason") or "", "kernel_died"), str(word))


def _answer(word: list[Any], others: Mapping[str, Session]) -> list[Any]:
    """Has another TODO's function called, on arguments that only its own sandbox reads."""
    if len(word) != 3 or not isinstance(word[1], str) or word[1] not in others:
        raise SandboxLost("tampered", "it asks for what it was not offered")
    other = others[word[1]]
    try:
        failed = other.begin()
        return list(failed) if failed else other._exchange("call", word[2], {})
    except SandboxLost as lost:
        return ["raised", "RuntimeError", lost.status, None]


def _result(word: list[Any]) -> Result:
    """A driver's message as a result; its shape is checked, its content is data.

    Raises:
        PlainError: it is no such message.
    """
    kind, rest = word[0], word[1:]
    if kind == "value" and len(rest) == 1:
        return ("value", plain.untag(rest[0]))
    if kind == "changed_input" and len(rest) == 2:
        return (kind, *(None if item is None else plain.untag(item) for item in rest))
    if kind == "raised" and len(rest) == 3 and all(isinstance(item, str) for item in rest[:2]):
        line = rest[2] if type(rest[2]) is int else None
        return (kind, rest[0][:200], rest[1][:2000], line)
    if kind == "not_plain" and len(rest) == 1 and isinstance(rest[0], str):
        return (kind, rest[0][:200])
    if kind == "missing" and len(rest) == 2 and all(isinstance(item, str) for item in rest):
        return (kind, rest[0][:40], rest[1][:2000])
    raise plain.PlainError(f"no result: {str(kind)[:40]}")
