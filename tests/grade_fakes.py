"""Stand-ins for the grader's sandbox: trusted sample answers run in this process."""

import threading
import types
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from nbformat.v4 import new_notebook

from parlab.grade.cases import Case
from parlab.grade.types import CallOutcome, Rebuilt, Result, RunOutcome, Submission
from parlab.lesson.compare import containers, safe_str

MARK = "changed later"


def load(source: str, function: str) -> Callable[..., Any]:
    """The function that a source defines."""
    module = types.ModuleType("answer")
    exec(compile(source, "<answer>", "exec"), module.__dict__)
    return module.__dict__[function]  # type: ignore[no-any-return]


def call_one(function: Callable[..., Any], case: Case) -> Result:
    """A result as the sandbox gives it."""
    given = deepcopy(case.arguments)
    try:
        many = case.call == "kept"
        value = [function(*one) for one in given] if many else function(*given)
    except Exception as error:
        line = error.__traceback__ and error.__traceback__.tb_next
        while line and line.tb_next:
            line = line.tb_next
        return ("raised", type(error).__name__, safe_str(error), line.tb_lineno if line else None)
    kind = "value" if given == case.arguments else "changed_input"
    if case.call == "detached":
        for item in [*given, *(part for one in given for part in containers([one]))]:
            if isinstance(item, list):
                item.append(MARK)
            elif isinstance(item, dict):
                item[MARK] = MARK
    if not plain(value):
        return ("not_plain", type(value).__name__)
    value = deepcopy(value)  # as if it were written down at once
    return (kind, value, given) if kind == "changed_input" else (kind, value)


def plain(value: object) -> bool:
    """Whether the sandbox would let it through."""
    if type(value) in (dict, list, tuple):
        items = list(value.values()) if isinstance(value, dict) else list(value)  # type: ignore[call-overload]
        return all(map(plain, items))
    return value is None or type(value) in (bool, int, float, str)


class FakeParts:
    """Every submission's content is ``kind``, or the source of its answers.

    ``kind`` names what should happen: see `run` and `rebuild`. Counts what is asked of it.
    """

    def __init__(self, functions: dict[int, str], answers: dict[int, str]) -> None:
        self.functions, self.answers = functions, answers
        self.runs: list[str] = []
        self.calls = 0
        self.alive = True
        self.lock = threading.Lock()

    def rebuild(self, content: bytes) -> Rebuilt:
        kind = content.decode()
        if kind == "broken grader":
            raise RuntimeError("no such cell <b>")
        if kind in ("unreadable", "wrong_lesson"):
            return Rebuilt(None, {}, (), {}, (("why", {"kind": kind}),), kind)
        answers = dict(self.answers)
        state = dict.fromkeys(self.functions, "answered")
        if kind == "stub":
            state[3] = "stub"
        if kind == "missing":
            state[2] = "missing"
        if kind.startswith("todo 1:"):
            answers[1] = kind.removeprefix("todo 1:")
        status = "missing_answers" if kind == "missing" else None
        book = new_notebook(metadata={"kind": kind})
        return Rebuilt(book, answers, (), state, (), status, kind == "solution")

    def run(self, rebuilt: Rebuilt) -> RunOutcome:
        assert rebuilt.notebook is not None
        kind = rebuilt.notebook.metadata["kind"]
        with self.lock:
            self.runs.append(kind)
            often = self.runs.count(kind)
        if kind.startswith("once "):
            kind = kind.removeprefix("once ") if often == 1 else "right"
        status = (
            kind
            if kind in ("grader_error", "tampered", "timeout", "memory", "kernel_died")
            else None
        )
        return RunOutcome(status, dict.fromkeys(self.functions, "passed"), (), 0.1, 80.0)

    def call(self, rebuilt: Rebuilt, todo: int, cases: Sequence[Case]) -> CallOutcome:
        with self.lock:
            self.calls += 1
        try:
            function = load(rebuilt.answers[todo], self.functions[todo])
        except SyntaxError as error:
            return CallOutcome(todo, (("missing", "syntax", str(error)),) * len(cases))
        return CallOutcome(todo, tuple(call_one(function, case) for case in cases))

    def healthy(self) -> bool:
        return self.alive

    def source(self, rebuilt: Rebuilt, todo: int) -> str:
        return rebuilt.answers[todo]


def submission(student: str, kind: str, display: str = "") -> Submission:
    """A student's file of that kind."""
    return Submission(student, display or student, f"{student}.ipynb", kind.encode())
