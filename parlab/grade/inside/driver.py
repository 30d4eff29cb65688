"""Calls a student's function on cases, one at a time, and writes down what comes back.

It runs in the student's process and can be patched by it at will. What it says is one value for
one case; what the value should have been is nowhere near.
"""

import __future__

import ast
import asyncio
import inspect
import json
import os
import signal
import struct
import traceback
from types import FrameType
from typing import Any

from parlab.grade import plain

_ANSWER = "<answer>"
_AGAIN_S = 0.05


class _Shell:
    """Stands for the notebook's shell, which takes any order and shows nobody."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


# `from __future__ import annotations` counts for the cells below it too.
_ANNOTATIONS = __future__.annotations.compiler_flag
# What a notebook has beside Python's own names.
_OF_A_NOTEBOOK = {
    "display": lambda *_, **__: None, "get_ipython": _Shell, "In": [""], "Out": {},
    "_": "", "__": "", "___": "",
}  # fmt: skip


class Pipe:
    """Framed JSON: four bytes of length, then text."""

    def __init__(self, reading: int, writing: int) -> None:
        self._in = os.fdopen(reading, "rb", 65536)
        self._out = writing

    def receive(self) -> Any:
        """The next message; ends the process where the grader is gone."""
        head = self._in.read(4)
        if len(head) < 4:
            os._exit(0)
        return plain.parse(self._in.read(struct.unpack("!I", head)[0]))

    def send(self, message: Any) -> None:
        """Writes one message."""
        text = json.dumps(message, separators=(",", ":")).encode()
        data = memoryview(struct.pack("!I", len(text)) + text)
        while data:
            data = data[os.write(self._out, data) :]


def main(setup: dict[str, Any]) -> None:
    """Takes the answer, then case after case, until the grader hangs up.

    Args:
        setup: ``fds``: one to read requests from, one to write results to; ``limits``.
    """
    pipe = Pipe(*setup["fds"])
    limit = int(setup["limits"]["result_mb"]) * 1024 * 1024 * 3 // 4
    answer = pipe.receive()
    space: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    space |= _OF_A_NOTEBOOK
    for name in answer["others"]:
        space[name] = _ask(pipe, name)
    local = _given(answer)
    space |= local
    failed = _define(space, answer)
    for name in answer["others"]:
        space[name] = _ask(pipe, name)  # the student's own, if there is one, stands back
    space |= local
    pipe.send(failed or ["ready"])
    while True:
        case = pipe.receive()
        if case["call"] == "run_ranks":
            pipe.send(_rank(pipe, space[answer["function"]], case))
        else:
            pipe.send(_call(space, answer, case, limit))


def _rank(pipe: Pipe, function: Any, case: Any) -> list[Any]:
    """One rank of a run: its last message."""
    from parlab.grade.inside import rank

    limit_s = TimeLimit()

    def describe(error: BaseException) -> list[Any]:
        limit_s.stop()
        return ["missing", "slow", ""] if isinstance(error, OutOfTime) else _raised(error)

    limit_s.start(case.get("seconds"))
    word = rank.run(pipe, function, case, describe)
    limit_s.stop()
    return word


def _given(answer: dict[str, Any]) -> dict[str, Any]:
    """Other TODOs' functions that have to be in this process: each in a namespace of its own."""
    made = {}
    for name, sources in answer["local"].items():
        own: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
        for source in sources:
            exec(compile(source, "<course>", "exec"), own)
        made[name] = own[name]
    return made


def _define(space: dict[str, Any], answer: dict[str, Any]) -> list[Any] | None:
    """Runs cell after cell, as a notebook does; what fails below the function is no matter."""
    features = 0
    for source in [*answer["helpers"], answer["source"]]:
        last = source is answer["source"]
        try:
            flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | features
            code = compile(source, _ANSWER if last else "<helper>", "exec", flags, True)
        except (SyntaxError, ValueError) as error:
            if last:
                return ["missing", "syntax", _text(error)]
            continue
        features |= code.co_flags & _ANNOTATIONS
        try:
            waits = eval(code, space)
            if inspect.iscoroutine(waits):
                asyncio.run(waits)
        except BaseException as error:
            if last and not callable(space.get(answer["function"])):
                return ["missing", "source_raised", f"{type(error).__name__}: {_text(error)}"]
    if not callable(space.get(answer["function"])):
        return ["missing", "not_defined", answer["function"]]
    return None


def _call(space: dict[str, Any], answer: dict[str, Any], case: Any, limit: int) -> list[Any]:
    arguments = plain.untag(case["arguments"])
    limit_s = TimeLimit()
    try:
        limit_s.start(case.get("seconds"))
        value = _run(case["call"], space[answer["function"]], arguments)
        limit_s.stop()
    except BaseException as error:
        limit_s.stop()
        if isinstance(error, OutOfTime):
            return ["missing", "slow", ""]
        return _raised(error)
    try:
        after = plain.tag(arguments)
        if case["call"] == "detached":
            _mark(arguments)
    except BaseException:
        after = None
    try:
        written = plain.encode(value, limit).decode()
        value = json.loads(written)
    except plain.NotPlain as error:
        return ["not_plain", str(error)[:200]]
    except BaseException as error:
        return ["not_plain", f"{type(value).__name__} ({type(error).__name__})"[:200]]
    if after is None:
        return ["changed_input", value, None]
    # JSON's own text, since NaN is not equal to itself
    if json.dumps(after) != json.dumps(case["arguments"]):
        fits = len(json.dumps(after)) <= limit // 2
        return ["changed_input", value if fits else None, after if fits else None]
    return ["value", value]


def _run(kind: str, function: Any, arguments: tuple[Any, ...]) -> Any:
    if kind == "backward":
        from parlab.grade.inside.gradients import backward

        return backward(function, *arguments)
    if kind == "kept":  # several calls: a later one must not change what an earlier one gave
        return [function(*given) for given in arguments]
    if kind == "judged":
        from parlab.lesson.judged import judged

        return judged(function, *arguments)
    return function(*arguments)


class OutOfTime(BaseException):
    """Raised in the middle of a call that has used up its CPU time."""


class TimeLimit:
    """Ends a call after some CPU time; again and again, since a bare ``except`` may catch it."""

    def __init__(self) -> None:
        self._armed = False

    def start(self, seconds: float | None) -> None:
        """From here on the time counts; None: no limit."""
        if seconds is not None:
            self._armed = True
            signal.signal(signal.SIGPROF, self._ring)
            signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN_S)

    def stop(self) -> None:
        """From here on nothing is raised."""
        if self._armed:
            self._armed = False
            signal.setitimer(signal.ITIMER_PROF, 0)

    def _ring(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            raise OutOfTime


def _mark(value: Any) -> None:
    """Changes every list and dict within ``value``: whatever shares one with it changes too."""
    inner = list(value.values()) if isinstance(value, dict) else value
    for item in inner if isinstance(inner, list | tuple) else ():
        _mark(item)
    if isinstance(value, list):
        value.append("changed later")
    elif isinstance(value, dict):
        value["changed later"] = "changed later"


def _ask(pipe: Pipe, name: str) -> Any:
    """A stand-in for another TODO's function: the grader has it run elsewhere."""

    def ask(*arguments: Any) -> Any:
        pipe.send(["ask", name, plain.tag(arguments)])
        kind, *rest = pipe.receive()
        if kind == "value":
            return plain.untag(rest[0])
        raise RuntimeError(f"{name}: {rest[1] if len(rest) > 1 else rest}")

    ask.__name__ = name
    return ask


def _raised(error: BaseException) -> list[Any]:
    return ["raised", type(error).__name__[:200], _text(error), _line(error)]


def _text(error: BaseException) -> str:
    try:
        return str(error)[:2000]
    except BaseException:
        return ""


def _line(error: BaseException) -> int | None:
    """The last line of the answer's own source that the exception passed."""
    try:
        frames = traceback.extract_tb(error.__traceback__)
        return next((f.lineno for f in reversed(frames) if f.filename == _ANSWER), None)
    except BaseException:
        return None
