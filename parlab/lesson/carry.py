"""A learner's functions as a file that other processes can import."""

import inspect
import symtable
import sys
import textwrap
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import Any

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class CannotCarry(Exception):
    """A function uses something that no source text can say."""

    def __init__(self, name: str, kind: str) -> None:
        super().__init__(f"{name}: {kind}")
        self.name, self.kind = name, kind


def carried_source(functions: Sequence[Any]) -> str:
    """The functions and all that they use from their notebook: imports, numbers, helpers.

    Raises:
        CannotCarry: one of them has no source, or uses a value that is neither of these.
    """
    carrier = _Carrier()
    for function in functions:
        carrier.define(getattr(function, "__name__", repr(function)), function)
    return "\n".join([*carrier.imports, "", *carrier.values, "", *carrier.definitions])


class _Carrier:
    def __init__(self) -> None:
        self.imports: list[str] = []
        self.values: list[str] = []
        self.definitions: list[str] = []
        self._seen: set[str] = set()

    def define(self, name: str, thing: Any) -> None:
        """Adds a function or class of the notebook, after what it uses."""
        if name in self._seen:
            return
        self._seen.add(name)
        try:
            source = textwrap.dedent(inspect.getsource(thing))
        except (OSError, TypeError):
            raise CannotCarry(name, type(thing).__name__) from None
        names = inspect.unwrap(thing).__globals__ if callable(thing) and not isinstance(
            thing, type
        ) else vars(sys.modules[thing.__module__])  # fmt: skip
        for used in _global_names(source, name):
            if used in names:
                self._use(used, names[used])
        self.definitions.append(source)

    def _use(self, name: str, value: Any) -> None:
        if name in self._seen:
            return
        if isinstance(value, ModuleType):
            self._add(name, self.imports, f"import {value.__name__} as {name}")
        elif _is_plain(value):
            self._add(name, self.values, f"{name} = {value!r}")
        elif home := _importable(name, value):
            self._add(name, self.imports, f"from {home[0]} import {home[1]} as {name}")
        elif inspect.isroutine(inspect.unwrap(value)) or isinstance(value, type):
            self.define(name, value)
        else:
            raise CannotCarry(name, type(value).__name__)

    def _add(self, name: str, where: list[str], line: str) -> None:
        self._seen.add(name)
        where.append(line.replace(f" {name} as {name}", f" {name}"))


def _global_names(source: str, own: str) -> Iterator[str]:
    """The names that a definition takes from around it, decorators and defaults included."""
    waiting = [symtable.symtable(source, "<cell>", "exec")]
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        for symbol in table.get_symbols():
            outer = table.get_type() == "module" or symbol.is_global()
            if outer and symbol.is_referenced() and symbol.get_name() != own:
                yield symbol.get_name()


def _is_plain(value: Any) -> bool:
    if type(value) in (list, tuple, set, frozenset):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(_is_plain(item) for pair in value.items() for item in pair)
    return type(value) in _PLAIN


def _importable(name: str, value: Any) -> tuple[str, str] | None:
    """Module and name under which the other process finds this very object."""
    module = getattr(value, "__module__", None)
    if type(value).__module__ == "torch" and str(value).startswith("torch."):  # a dtype, a layout
        module, name = "torch", str(value).removeprefix("torch.")
    else:
        name = getattr(value, "__name__", name)
    if module in (None, "__main__"):
        return None
    found = getattr(sys.modules.get(str(module)), name, None)
    return (str(module), name) if found is value else None
