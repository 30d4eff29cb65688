"""Lesson 04's functions for a run: the learner's in a process of their own, else the solution's.

A learner's function is no enemy, but it may be wrong: it may loop, raise, leave the program or
return nothing. In a process of its own it costs an answer, and neither the run nor its records.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from parlab.bench.answers import FORMS, BadAnswer, rehearse, taken
from parlab.bench.decide import LESSON
from parlab.lesson.loader import LessonUnusable, Loaded, load_lesson, notebook_cells

LOAD_S, CALL_S = 60.0, 10.0
_PROGRAM = "parlab.bench.learner_process"
_HOME = Path(__file__).resolve().parents[2]


def load_functions(root: Path, notebook: Path | None = None) -> Loaded:
    """The functions that decide, and where they come from.

    Args:
        root: the course's folder.
        notebook: the learner's, where one is named. Else the course's own notebooks are looked at,
            and where none of them is finished the solution's functions decide; ``note`` says why.

    Raises:
        LessonUnusable: the notebook that was named cannot be used, or there is not even a solution.
    """
    return load_lesson(root, LESSON, notebook, _load_apart)


def _load_apart(notebook: Path, shown: str) -> Loaded:
    notebook_cells(notebook, shown)  # an open TODO is found without a process
    apart = _Apart(notebook, shown)
    found = apart.load()
    functions = {name: partial(apart.call, name) for name in FORMS if name in found["names"]}
    if missing := [name for name in FORMS if name not in functions]:
        raise LessonUnusable(f"{shown} is no notebook of lesson {LESSON[:2]}: no {missing[0]}")
    try:
        rehearse(functions)
    except BadAnswer as reason:
        raise LessonUnusable(str(reason)) from None
    return Loaded(functions, "learner", shown, found["sha256"])


class _Apart:
    """A notebook and the process that has loaded it; a call starts one anew where it has ended."""

    def __init__(self, notebook: Path, shown: str) -> None:
        self.notebook, self.shown = notebook.resolve(), shown
        self._process: subprocess.Popen[str] | None = None

    def load(self) -> dict[str, Any]:
        """Starts the process; ``names`` and ``sha256`` of what it has loaded.

        Raises:
            LessonUnusable: the notebook is not finished.
        """
        self._process = _start()
        weakref.finalize(self, _stop, self._process)
        request = {"notebook": str(self.notebook), "shown": self.shown}
        answer = self._ask(request, LOAD_S)
        if "sha256" in answer:
            return answer
        if self._process:
            self._end()
        why = answer.get("unusable")
        raise LessonUnusable(why or f"{self.shown} is not finished: its cells {answer['ended']}")

    def call(self, name: str, *given: Any) -> dict[str, Any]:
        """What the function answers to ``given``.

        Raises:
            BadAnswer: it gave no answer of the form asked for.
        """
        try:
            if self._process is None:
                self.load()
            answer = self._ask({"function": name, "arguments": given}, CALL_S)
        except LessonUnusable as reason:
            raise BadAnswer(str(reason)) from None
        got = answer.get("returned")
        if (fit := taken(name, given, got)) is not None:
            return fit
        told = f"{name} of {self.shown} was given {_short(given)} and {_outcome(answer)}"
        if "raised" not in answer and "ended" not in answer:
            told += f"; it must return {FORMS[name]}"
        raise BadAnswer(f"{told}. Mend it and run its check again")

    def _ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        process = self._process
        assert process and process.stdin and process.stdout
        try:
            process.stdin.write(json.dumps({**request, "limit_s": limit_s}) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        except BaseException:  # an interrupted run asks again, of a process that owes no answer
            self._end()
            raise
        if line:
            return dict(json.loads(line))
        status = self._end()
        if status == -signal.SIGALRM:
            return {"ended": f"had not ended after {limit_s:g} s"}
        return {"ended": f"ended their process (exit status {status})"}

    def _end(self) -> int:
        process, self._process = self._process, None
        assert process
        return _stop(process)


def _start() -> "subprocess.Popen[str]":
    search = [str(_HOME), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-m", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        text=True, encoding="utf-8", start_new_session=True,  # out of Ctrl-C's reach
        env={**os.environ, "PYTHONPATH": os.pathsep.join(search), "MPLBACKEND": "Agg"},
    )  # fmt: skip


def _stop(process: "subprocess.Popen[str]") -> int:
    """Ends the process where it has not ended itself; its exit status."""
    assert process.stdin and process.stdout
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.stdout.close()
    try:
        return process.wait(1.0)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _outcome(answer: Mapping[str, Any]) -> str:
    if "returned" in answer:
        return f"returned {_short(answer['returned'])}"
    if "odd" in answer:
        return f"returned {_short(answer['odd'])}"
    return f"raised {answer['raised']}" if "raised" in answer else str(answer["ended"])


def _short(value: object) -> str:
    """A value in one line of a bearable length."""
    text = ", ".join(map(repr, value)) if isinstance(value, tuple) else repr(value)
    text = " ".join(text.split())
    return text if len(text) <= 240 else f"{text[:200]} … {text[-30:]}"
