"""A function in a sandbox that takes calls: framed messages, bounded in size and in time."""

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
from parlab.grade.types import Result
from parlab.grade.warm import RunContext

_ASKS = 2000  # how often one case may call another TODO's function
SLOW: Result = ("missing", "slow", "")  # a call has used up its CPU time
_BEYOND = 1.25  # a call that goes on so far beyond its CPU time has switched off what ends it


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


class Session:
    """A function in a sandbox that takes calls.

    Args:
        function: its name.
        answer: where it is defined.
        others: names that it may use and that are not in its sandbox.
        context: the warm parent and the limits.
        local: functions that it may use and that are.
    """

    def __init__(
        self,
        function: str,
        answer: Answer,
        others: tuple[str, ...],
        context: RunContext,
        local: Mapping[str, Answer] | None = None,
    ) -> None:
        self._limits: Limits = context.limits
        self._left = context.limits.output_mb * MB
        self._first: dict[str, Any] | None = {
            "function": function,
            "source": answer.source,
            "helpers": list(answer.helpers),
            "others": list(others),
            "local": {
                name: [*other.helpers, other.source] for name, other in (local or {}).items()
            },
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
        self.send(first, end)
        word = self.receive(end)
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
        before = self._sandbox.cpu_seconds() if seconds else 0.0
        word = self._exchange(case.call, plain.tag(case.arguments), others, seconds)
        if seconds and self._sandbox.cpu_seconds() - before > _BEYOND * seconds:
            return SLOW
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
        self.send({"call": kind, "arguments": arguments, "seconds": seconds}, end)
        for _ in range(_ASKS):
            word = self.receive(end)
            if word[0] != "ask":
                return word
            self.send(_answer(word, others), end)
        raise SandboxLost("timeout", f"more than {_ASKS} calls of other functions")

    def send(self, message: Any, end: float) -> None:
        """Writes one message, until ``end`` (`time.monotonic`).

        Raises:
            SandboxLost: it ended, or did not read it in time.
        """
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

    def receive(self, end: float) -> list[Any]:
        """The next message: a list that begins with a word.

        Raises:
            SandboxLost: it ended, said nothing until ``end``, or said what no driver says.
        """
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
