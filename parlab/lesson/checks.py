"""A check has three states: ⏳ not done yet, ❌ wrong (and why), ✅ passed."""

import inspect
from collections.abc import Callable
from copy import deepcopy
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from parlab.lesson.cells import last_line, outdated
from parlab.lesson.compare import cut, differing, safe_repr, same, show
from parlab.lesson.language import say

__all__ = ["CheckStopped", "NotDone", "Wrong", "check", "ready", "same"]
_passed: dict[str, CodeType] = {}


class CheckStopped(AssertionError):
    """A check that did not pass; notebooks show its own lines and no stack."""

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))

    def _render_traceback_(self) -> list[str]:
        return str(self).split("\n")


class NotDone(CheckStopped):
    """⏳: the learner has not written this answer yet."""


class Wrong(CheckStopped):
    """❌: the answer breaks a rule."""


class check:
    """Run a learner's function in a ``with`` block of plain asserts.

    ``with check(1, "name") as call:`` looks ``name`` up where the block stands;
    ``call(*arguments)`` runs it on copies of the arguments and proves that they
    did not change; ``call.wrong(rule, expected)`` words the message of an assert.

    Args:
        number: the TODO's number, or ``"EXTRA"``; an extra raises nothing, whatever its state,
            and prints what it would have raised.
        name: the function's name.

    Raises:
        NotDone: the function is missing, still the stub, or older than its cell's last run.
        Wrong: an assert failed, or the function raised, changed its input or was never called.
    """

    def __init__(self, number: int | str, name: str) -> None:
        self.key = f"TODO {number}" if isinstance(number, int) else number
        self.name = name
        self.label = f"{self.key} · {name}"
        self.optional = not isinstance(number, int)
        self.calls = 0
        self.given: tuple[Any, ...] = ()
        self.got: object = None
        self.names = _caller_globals()
        self.function: Callable[..., object] | None = self.names.get(name)

    def __enter__(self) -> "check":
        _passed.pop(self.name, None)
        return self

    def __call__(self, *arguments: object) -> Any:
        """The function's result on copies of ``arguments``."""
        if not callable(self.function):
            raise self._not_done("undefined") from None
        if outdated(self.function, self.key, self.names):
            raise self._not_done("outdated") from None
        self.given, before = deepcopy(arguments), deepcopy(arguments)
        self.got = None
        self.calls += 1
        try:
            self.got = self.function(*self.given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, NotImplementedError) and str(error) == self.key:
                raise self._not_done("open") from None
            raise self._raised(error, before) from None
        for given, was in zip(self.given, before, strict=True):
            if not same(given, was):
                raise self._stopped(
                    ("rule", say("changed")),
                    ("expected", say("was", value=differing(was, given))),
                    ("actual", say("now", value=differing(given, was))),
                )
        return self.got

    def wrong(self, rule: str, expected: object, actual: str | None = None) -> str:
        """The message of a failing assert: input, broken rule, expected and actual.

        Of two dicts only the entries that differ are shown.

        Args:
            actual: where the result alone does not show it, what was found, in words;
                ``expected`` is then in words too.
        """
        if actual is not None:
            parts = [("expected", str(expected)), ("actual", actual)]
        else:
            parts = [("expected", differing(expected, self.got))]
            parts.append(("actual", differing(self.got, expected)))
            parts += [("hint", hint) for hint in [self._hint(expected)] if hint]
        return _lines(("input", self._input(self.given)), ("rule", rule), *parts)

    def _hint(self, expected: object) -> str:
        """What a look at the type or the keys alone says."""
        got = self.got
        if got is None and expected is not None:
            return say("nothing")
        if type(got) is not type(expected):
            return say("type", kind=type(expected).__name__, got=type(got).__name__)
        if isinstance(got, dict) and isinstance(expected, dict):
            extra = [safe_repr(key) for key in got if key not in expected]
            missing = [safe_repr(key) for key in expected if key not in got]
            if extra or missing:
                return say("keys", extra=", ".join(extra) or "–", missing=", ".join(missing) or "–")
        return ""

    def _raised(self, error: BaseException, before: tuple[object, ...]) -> Wrong:
        parts = [("input", self._input(before)), ("rule", say("raised"))]
        parts.append(("actual", cut(f"{type(error).__name__}: {error}")))
        where = last_line(self.function, error)
        if where:
            parts.append(("where", say("where_line", line=where[0], text=where[1])))
        return self._stopped(*parts)

    def _not_done(self, reason: str) -> NotDone:
        optional = say("optional") if self.optional else ""
        sentence = say(reason, key=self.key, name=self.name)
        return NotDone(f"⏳ {self.label} · {optional}{sentence}")

    def _stopped(self, *parts: tuple[str, str]) -> Wrong:
        return Wrong(f"❌ {self.label}", _lines(*parts))

    def _input(self, arguments: tuple[object, ...]) -> str:
        if len(arguments) == 1:
            return show(arguments[0])
        try:
            parameters = list(inspect.signature(self.function).parameters)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            parameters = []
        names = parameters if len(parameters) == len(arguments) else [""] * len(arguments)
        shown = zip(names, map(show, arguments), strict=True)
        return " ; ".join(f"{name}: {text}" if name else text for name, text in shown)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> bool:
        stopped: CheckStopped | None = error if isinstance(error, CheckStopped) else None
        if kind is AssertionError:
            stopped = Wrong(f"❌ {self.label}", str(error))
        elif kind is None and not self.calls:
            stopped = self._stopped(("rule", say("never_called")))
        elif kind is None:
            if isinstance(self.function, FunctionType):
                _passed[self.name] = self.function.__code__
            print(f"✅ {self.label} · " + say("passed", count=self.calls))
        if stopped is None:
            return False
        if self.optional:
            print(stopped)
            return True
        raise stopped from None


def ready(*names: str) -> bool:
    """Whether these functions, as they stand now, have passed their checks.

    Where not, prints one ⏳ line that names what to finish first.
    """
    functions = _caller_globals()
    missing = [name for name in names if not _is_passed(name, functions.get(name))]
    if missing:
        print("⏳ " + say("waiting", names=say("and").join(missing)))
    return not missing


def _is_passed(name: str, function: object) -> bool:
    return isinstance(function, FunctionType) and _passed.get(name) == function.__code__


def _caller_globals() -> dict[str, Any]:
    frame: FrameType | None = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    return frame.f_globals if frame else {}


def _lines(*parts: tuple[str, str]) -> str:
    return "\n".join(f"   {say(key)} | {text}" for key, text in parts)
