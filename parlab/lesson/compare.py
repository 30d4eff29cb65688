"""Strict comparison, and values worded on one line."""

from collections.abc import Collection
from typing import Any

WIDTH = 320


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
    """An input on one line: dicts as ``key=value`` without nested values, cut where long."""
    return cut(_flat(value))


def differing(value: object, other: object) -> str:
    """``value``; of two dicts only what ``other`` lacks or holds differently.

    Of two lists of dicts that differ in order or length, only the names.
    """
    if type(value) is dict and type(other) is dict:
        own = {k: v for k, v in value.items() if k not in other or not same(v, other[k])} or value
        shown = ", ".join(f"{key!r}: {safe_repr(item)}" for key, item in own.items())
        rest = "…" if len(own) < len(value) else ""
        return cut("{" + ", ".join(filter(None, [shown, rest])) + "}")
    names, others = _names(value), _names(other)
    if names is not None and others is not None and names != others:
        return cut(f"[{', '.join(names)}]")
    return cut(safe_repr(value))


def _names(value: object) -> list[str] | None:
    named = type(value) is list and all(type(item) is dict and "name" in item for item in value)
    return [str(item["name"]) for item in value] if named and isinstance(value, list) else None


def _flat(value: object) -> str:
    if type(value) is dict and value and all(type(key) is str for key in value):
        plain = {key: item for key, item in value.items() if type(item) not in (list, dict)}
        return ", ".join(f"{key}={safe_repr(item)}" for key, item in (plain or value).items())
    if type(value) is list and value and all(type(item) is dict for item in value):
        return "; ".join(_flat(item) for item in value)
    return safe_repr(value)


def safe_repr(value: object) -> str:
    """``repr(value)``, also of objects whose own ``__repr__`` fails or never ends in a str."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__}: repr() raised {type(error).__name__}>"


def cut(text: str) -> str:
    """``text`` on one line of at most ``WIDTH`` characters."""
    text = " ".join(text.split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
