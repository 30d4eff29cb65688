"""A check has three states: ⏳ not done yet, ❌ wrong (and why), ✅ passed."""

import inspect
import linecache
import traceback
from collections.abc import Callable, Collection
from copy import deepcopy
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from parlab.lesson.language import say

WIDTH = 320
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


def same(got: object, expected: object, any_order: Collection[str] | bool = ()) -> bool:
    """Equal in type and value, all the way down; ``got``'s own ``__eq__`` is never asked.

    Args:
        any_order: names of dict entries whose lists may come in any order, or True where
            the value itself is such a list.
    """
    if type(got) is not type(expected):
        return False
    if isinstance(any_order, bool):
        return same(_sorted(got, any_order), _sorted(expected, any_order))
    if isinstance(expected, dict):
        assert isinstance(got, dict)
        if len(got) != len(expected) or not all(type(key) in (str, int) for key in got):
            return False
        return all(
            key in got
            and same(_sorted(got[key], key in any_order), _sorted(value, key in any_order))
            for key, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        assert isinstance(got, list | tuple)
        return len(got) == len(expected) and all(map(same, got, expected))
    return got == expected


def _sorted(value: Any, wanted: bool) -> Any:
    sortable = wanted and type(value) is list and all(type(item) is str for item in value)
    return sorted(value) if sortable else value


def show(value: object) -> str:
    """``value`` on one line, dicts as ``key=value``, cut where it gets long."""
    return _cut(_flat(value))


def _flat(value: object) -> str:
    if type(value) is dict and value and all(type(key) is str for key in value):
        return ", ".join(f"{key}={_safe_repr(item)}" for key, item in value.items())
    if type(value) is list and value and all(type(item) is dict for item in value):
        return " | ".join(_flat(item) for item in value)
    return _safe_repr(value)


def _differing(value: object, other: object) -> str:
    """``value``; of two dicts only what ``other`` lacks or holds differently."""
    if type(value) is not dict or type(other) is not dict:
        return _cut(_safe_repr(value))
    own = {
        key: item for key, item in value.items() if key not in other or not same(item, other[key])
    }
    own = own or value
    shown = ", ".join(f"{key!r}: {_safe_repr(item)}" for key, item in own.items())
    rest = "…" if len(own) < len(value) else ""
    return _cut("{" + ", ".join(filter(None, [shown, rest])) + "}")


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: repr() raised {type(error).__name__}>"


class check:
    """Run a learner's function in a ``with`` block of plain asserts.

    ``with check(1, "name") as call:`` looks ``name`` up where the block stands;
    ``call(*arguments)`` runs it on copies of the arguments and proves that they
    did not change; ``call.wrong(rule, expected)`` words the message of an assert.

    Args:
        number: the TODO's number, or ``"EXTRA"``; an extra that is not done is no error.
        name: the function's name.

    Raises:
        NotDone: the function is missing or still the stub.
        Wrong: an assert in the block failed, or the function raised or changed its input.
    """

    def __init__(self, number: int | str, name: str) -> None:
        self.key = f"TODO {number}" if isinstance(number, int) else number
        self.name = name
        self.label = f"{self.key} · {name}"
        self.optional = not isinstance(number, int)
        self.calls = 0
        self.given: tuple[Any, ...] = ()
        self.got: object = None
        self.function: Callable[..., object] | None = _caller_globals().get(name)

    def __enter__(self) -> "check":
        _passed.pop(self.name, None)
        return self

    def __call__(self, *arguments: object) -> Any:
        """The function's result on copies of ``arguments``."""
        if not callable(self.function):
            raise NotDone(f"⏳ {self.label} · " + say("undefined", name=self.name)) from None
        self.given, before = deepcopy(arguments), deepcopy(arguments)
        self.got = None
        try:
            self.got = self.function(*self.given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, NotImplementedError) and str(error) == self.key:
                raise NotDone(f"⏳ {self.label} · " + say("open", key=self.key)) from None
            raise self._raised(error, before) from None
        self.calls += 1
        if not all(map(same, self.given, before)):
            raise Wrong(
                f"❌ {self.label}",
                _line("rule", say("changed")),
                _line("expected", say("was", value=_arguments(before))),
                _line("actual", say("now", value=_arguments(self.given))),
            )
        return self.got

    def wrong(self, rule: str, expected: object) -> str:
        """The message of a failing assert: input, broken rule, expected and actual.

        Of two dicts only the entries that differ are shown.
        """
        wanted, actual = _differing(expected, self.got), _differing(self.got, expected)
        if type(self.got) is not type(expected):
            actual = say("type", value=actual, kind=type(self.got).__name__)
        return "\n".join(
            (
                _line("input", _arguments(self.given)),
                _line("rule", rule),
                _line("expected", wanted),
                _line("actual", actual),
            )
        )

    def _raised(self, error: BaseException, before: tuple[object, ...]) -> Wrong:
        lines = [
            f"❌ {self.label}",
            _line("input", _arguments(before)),
            _line("rule", say("raised")),
            _line("actual", f"{type(error).__name__}: {error}"[:WIDTH]),
        ]
        where = _last_line_of(self.function, error)
        return Wrong(*lines, *([_line("where", where)] if where else []))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> bool:
        if kind is None:
            if isinstance(self.function, FunctionType):
                _passed[self.name] = self.function.__code__
            print(f"✅ {self.label} · " + say("passed", count=self.calls))
        elif kind is AssertionError:
            raise Wrong(f"❌ {self.label}", str(error)) from None
        elif kind is NotDone and self.optional:
            print(error)
            return True
        return False


def ready(*names: str) -> bool:
    """Whether these functions, as they stand now, have passed their checks.

    Where not, prints one ⏳ line that names what to finish first.
    """
    functions = _caller_globals()
    missing = [name for name in names if not _is_passed(name, functions.get(name))]
    if missing:
        print("⏳ " + say("waiting", label=", ".join(missing)))
    return not missing


def _is_passed(name: str, function: object) -> bool:
    return isinstance(function, FunctionType) and _passed.get(name) == function.__code__


def _caller_globals() -> dict[str, Any]:
    frame: FrameType | None = inspect.currentframe()
    for _ in range(2):
        frame = frame.f_back if frame else None
    return frame.f_globals if frame else {}


def _arguments(arguments: tuple[object, ...]) -> str:
    return " ; ".join(show(argument) for argument in arguments)


def _line(key: str, text: str) -> str:
    return f"   {say(key)} | {text}"


def _last_line_of(function: object, error: BaseException) -> str:
    """The deepest line of the learner's cell that the error passed through."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    if not frames:
        return ""
    line = frames[-1].lineno or 0
    return say("where_line", line=line, text=linecache.getline(frames[-1].filename, line).strip())
