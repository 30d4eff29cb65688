"""A check has three states: ⏳ not done yet, ❌ wrong (and why), ✅ passed."""

import inspect
from collections.abc import Callable, Collection
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from parlab.lesson.cells import Scope, last_line, outdated
from parlab.lesson.compare import (
    containers,
    copied,
    cut,
    differing,
    other_type,
    plain_keys,
    safe_repr,
    safe_str,
    same,
    show,
)
from parlab.lesson.language import say
from parlab.lesson.time_limit import OutOfTime, TimeLimit

_passed: dict[str, object] = {}


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


class check_todo:
    """Run a learner's function in a ``with`` block of plain asserts.

    ``with check_todo(1, "name") as call:`` looks ``name`` up where the block stands;
    ``call(*arguments)`` runs it on copies of the arguments and proves that they
    did not change; ``call.wrong(rule, expected)`` words the message of an assert.
    The block's own variables are hidden from the function, and gone afterwards.

    Args:
        number: the TODO's number, or ``"EXTRA"``; an extra raises nothing, whatever its state,
            and prints what it would have raised.
        name: the function's name.
        needs: functions of earlier TODOs that this one calls.
        seconds: how long one call may take; one that goes on is ended, and is wrong.

    Raises:
        NotDone: the function is missing, still the stub, or older than its cell's last run; or it
            is written, but one that it needs has not passed its check.
        Wrong: an assert failed, or the function raised, changed its input or an earlier result,
            or was never called.
        RuntimeError: Python runs without asserts.
    """

    same = staticmethod(same)

    def __init__(
        self,
        number: int | str,
        name: str,
        needs: Collection[str] = (),
        seconds: float = 10.0,
    ) -> None:
        self.needs = needs
        self.key = f"TODO {number}" if isinstance(number, int) else number
        self.name = name
        self.label = f"{self.key} · {name}"
        self.optional = not isinstance(number, int)
        self.seconds = seconds
        self.given: tuple[Any, ...] = ()
        self.got: object = None
        self.results: list[tuple[object, object]] = []
        self.calls = 0
        self.scope = Scope(_caller_globals())
        self.function: Callable[..., object] | None = self.scope.names.get(name)

    def __enter__(self) -> "check_todo":
        if not __debug__:
            raise RuntimeError(say("no_asserts"))
        _passed.pop(self.name, None)
        return self

    def __call__(self, *arguments: object) -> Any:
        """The function's result on copies of ``arguments``."""
        if self.calls:  # the last result was accepted: no later call may change it
            self.results.append((self.got, copied(self.got)))
        return self.run(lambda function, *given: function(*given), *arguments)

    def run(self, runner: Callable[..., object], *arguments: object) -> Any:
        """What ``runner(function, *copies)`` returns: for functions that run on several ranks.

        What the function raises must leave ``runner`` as it is.
        """
        if not callable(self.function):
            raise self._not_done("undefined") from None
        if outdated(self.function, self.key, self.scope.names):
            raise self._not_done("outdated") from None
        self.given, before = copied(arguments), copied(arguments)
        self.got = None
        self.calls += 1
        limit = TimeLimit(self.seconds)
        try:
            with self.scope.hidden(), limit:
                self.got = runner(self.function, *self.given)
        except KeyboardInterrupt:
            raise
        except OutOfTime as error:
            limit.stop()
            raise self._slow(error, before) from None
        except BaseException as error:
            if isinstance(error, NotImplementedError) and safe_str(error) == self.key:
                raise self._not_done("open") from None
            self._refuse_unmet_needs()
            raise self._raised(error, before) from None
        self._refuse_unmet_needs()
        self._compare_inputs(before)
        return self.got

    def shares_with_input(self) -> bool:
        """Whether the result holds a list or dict that the input holds too."""
        given = {id(item) for argument in self.given for item in containers([argument])}
        return any(id(item) in given for item in containers([self.got]))

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
        """What a look at the types or the keys alone says."""
        got = self.got
        if got is None and expected is not None:
            return say("nothing")
        kind = other_type(got, expected)
        if kind:
            place, found, wanted = kind
            return say("type_at" if place else "type", place=place, got=found, kind=wanted)
        if isinstance(got, dict) and isinstance(expected, dict) and plain_keys(got):
            extra = [safe_repr(key) for key in got if key not in expected]
            missing = [safe_repr(key) for key in expected if key not in got]
            if extra or missing:
                return say("keys", extra=", ".join(extra) or "–", missing=", ".join(missing) or "–")
        return ""

    def _compare_inputs(self, before: Collection[object]) -> None:
        for given, was in zip(self.given, before, strict=True):
            if not same(given, was):
                raise self._stopped(
                    ("rule", say("changed")),
                    ("expected", say("was", value=differing(was, given))),
                    ("actual", say("now", value=differing(given, was))),
                )

    def _changed_result(self) -> Wrong | None:
        for now, was in self.results:
            if not same(now, was):
                expected, actual = differing(was, now), differing(now, was)
                parts = ("rule", say("kept")), ("expected", expected), ("actual", actual)
                return self._stopped(*parts)
        return None

    def _raised(self, error: BaseException, before: tuple[object, ...]) -> Wrong:
        parts = [("input", self._input(before)), ("rule", say("raised"))]
        parts.append(("actual", cut(f"{type(error).__name__}: {safe_str(error)}")))
        where = last_line(self.function, error)
        if where:
            parts.append(("where", say("where_line", line=where[0], text=where[1])))
        return self._stopped(*parts)

    def _slow(self, error: BaseException, before: tuple[object, ...]) -> Wrong:
        parts = [("input", self._input(before))]
        for label, key in (("rule", "slow"), ("expected", "in_time"), ("actual", "not_ended")):
            parts.append((label, say(key, seconds=f"{self.seconds:g}")))
        where = last_line(self.function, error)
        if where:
            parts.append(("where", say("where_line", line=where[0], text=where[1])))
        return self._stopped(*parts)

    def _not_done(self, reason: str) -> NotDone:
        optional = say("optional") if self.optional else ""
        sentence = say(reason, key=self.key, name=self.name)
        return NotDone(f"⏳ {self.label} · {optional}{sentence}")

    def _refuse_unmet_needs(self) -> None:
        names = [name for name in self.needs if not _is_passed(name, self.scope.names.get(name))]
        if names:
            waiting = say("waiting_check", names=say("and").join(names))
            raise NotDone(f"⏳ {self.label} · {waiting}") from None

    def _stopped(self, *parts: tuple[str, str]) -> Wrong:
        return Wrong(f"❌ {self.label}", _lines(*parts))

    def _input(self, arguments: tuple[object, ...]) -> str:
        if len(arguments) == 1:
            return show(arguments[0])
        try:
            parameters = list(inspect.signature(self.function).parameters)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            parameters = []
        if parameters[:1] == ["comm"]:  # each rank has its own
            parameters.pop(0)
        names = parameters if len(parameters) == len(arguments) else [""] * len(arguments)
        shown = zip(names, map(show, arguments), strict=True)
        return " ; ".join(f"{name}: {text}" if name else text for name, text in shown)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> bool:
        self.scope.restore()
        stopped: CheckStopped | None = error if isinstance(error, CheckStopped) else None
        if kind is AssertionError:
            stopped = Wrong(f"❌ {self.label}", str(error))
        elif kind is None and not self.calls:
            stopped = self._stopped(("rule", say("never_called")))
        elif kind is None:
            stopped = self._changed_result()
        if kind is None and stopped is None:
            _passed[self.name] = _mark(self.function)
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


def _mark(function: object) -> object:
    """What stays the same when a cell runs again unchanged."""
    return function.__code__ if isinstance(function, FunctionType) else function


def _is_passed(name: str, function: object) -> bool:
    mark, passed = _mark(function), _passed.get(name)
    if isinstance(mark, CodeType) and isinstance(passed, CodeType):
        return mark == passed
    return function is not None and mark is passed


def _caller_globals() -> dict[str, Any]:
    frame: FrameType | None = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    return frame.f_globals if frame else {}


def _lines(*parts: tuple[str, str]) -> str:
    return "\n".join(f"   {say(key)} | {text}" for key, text in parts)
