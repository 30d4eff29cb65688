"""Strict comparison, and values worded on one line, whatever a learner's objects do."""

from collections.abc import Callable, Collection, Iterator
from copy import deepcopy
from typing import Any

import torch

WIDTH = 480


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
        if len(got) != len(expected) or not plain_keys(got):
            return False
        return all(
            key in got
            and same(_sorted(got[key], key in any_order), _sorted(value, key in any_order))
            for key, value in expected.items()
        )
    if isinstance(expected, list | tuple):
        assert isinstance(got, list | tuple)
        return len(got) == len(expected) and all(map(same, got, expected))
    if isinstance(expected, torch.Tensor):
        assert isinstance(got, torch.Tensor)
        return same_tensor(got, expected)
    return got == expected


def same_tensor(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """Equal in dtype, shape and every value; NaN equals NaN."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    one, two = got.detach(), expected.detach()
    return bool(((one == two) | ((one != one) & (two != two))).all())


def copied(value: Any) -> Any:
    """A deep copy; a tensor's is a leaf that requires a gradient where the tensor does."""
    memo: dict[int, Any] = {}
    waiting, seen = [value], set()
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            memo[id(item)] = item.detach().clone().requires_grad_(item.requires_grad)
        elif type(item) in (list, tuple, dict) and id(item) not in seen:
            seen.add(id(item))
            waiting += item.values() if isinstance(item, dict) else item
    return deepcopy(value, memo)


def _sorted(value: Any, wanted: bool) -> Any:
    sortable = wanted and type(value) is list and all(type(item) is str for item in value)
    return sorted(value) if sortable else value


def plain_keys(value: object) -> bool:
    """Whether this is a dict whose keys are all plain ``str`` or ``int``."""
    return type(value) is dict and all(type(key) in (str, int) for key in value)


def containers(value: object) -> Iterator[object]:
    """Every list and dict within ``value``, the outermost excepted."""
    if isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict | list):
                yield item
            yield from containers(item)


def other_type(got: object, expected: object) -> tuple[str, str, str] | None:
    """Where the types first part: the entry (empty at the top), the wrong type, the right one."""
    if type(got) is not type(expected):
        return "", type(got).__name__, type(expected).__name__
    pairs: list[tuple[str, object, object]] = []
    if isinstance(got, dict) and isinstance(expected, dict) and plain_keys(got):
        pairs = [(repr(key), got[key], expected[key]) for key in expected if key in got]
    elif isinstance(got, list | tuple) and isinstance(expected, list | tuple):
        numbered = enumerate(zip(got, expected, strict=False))
        pairs = [(str(index), one, two) for index, (one, two) in numbered]
    for place, one, two in pairs:
        found = other_type(one, two)
        if found:
            return f"[{place}]{found[0]}", found[1], found[2]
    return None


def show(value: object) -> str:
    """An input on one line: dicts as ``key=value`` without nested values, cut where long."""
    return cut(_flat(value))


def differing(value: object, other: object) -> str:
    """``value``; of two dicts only what ``other`` lacks or holds differently.

    Of two lists of dicts that differ in order or length, only the names.
    """
    if (
        isinstance(value, dict)
        and isinstance(other, dict)
        and plain_keys(value)
        and plain_keys(other)
    ):
        own = {k: v for k, v in value.items() if k not in other or not same(v, other[k])} or value
        shown = ", ".join(f"{key!r}: {safe_repr(item)}" for key, item in own.items())
        rest = "…" if len(own) < len(value) else ""
        return cut("{" + ", ".join(filter(None, [shown, rest])) + "}")
    names, others = _names(value), _names(other)
    if names is not None and others is not None and isinstance(value, list):
        if names != others:
            return cut(f"[{', '.join(names)}]")
        pairs = enumerate(zip(value, other, strict=True))  # type: ignore[call-overload]
        parts = [f"[{i}]: {differing(one, two)}" for i, (one, two) in pairs if not same(one, two)]
        return cut(", ".join(parts) or safe_repr(value))
    return cut(safe_repr(value))


def _names(value: object) -> list[str] | None:
    if type(value) is not list or not all(plain_keys(item) and "name" in item for item in value):
        return None
    return [safe_str(item["name"]) for item in value]


def _flat(value: object) -> str:
    if isinstance(value, dict) and value and plain_keys(value):
        plain = {key: item for key, item in value.items() if type(item) not in (list, dict)}
        return ", ".join(f"{key}={safe_repr(item)}" for key, item in (plain or value).items())
    if type(value) is list and value and all(type(item) is dict for item in value):
        return "; ".join(_flat(item) for item in value)
    return safe_repr(value)


def safe_repr(value: object) -> str:
    """``repr(value)`` on one line, also of objects whose own ``__repr__`` fails."""
    return _safely(repr, value)


def safe_str(value: object) -> str:
    """``str(value)`` on one line, also of exceptions whose own ``__str__`` fails."""
    return _safely(str, value)


def _safely(word: Callable[[object], str], value: object) -> str:
    try:
        return cut(_tensors(value) or word(value))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"<{type(value).__name__}: {word.__name__}() raised {type(error).__name__}>"


def _tensors(value: object) -> str:
    """A tensor, or a tuple or list that holds one; empty for anything else."""
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if type(value) not in (list, tuple) or not any(isinstance(x, torch.Tensor) for x in value):  # type: ignore[attr-defined]
        return ""
    return f"({', '.join(map(safe_repr, value))})"  # type: ignore[call-overload]


def _tensor(value: torch.Tensor) -> str:
    """Type, shape and the first values, as in ``float64[2, 4] 1, 0.5, …``."""
    kind = str(value.dtype).removeprefix("torch.")
    few = value.detach().flatten()[:8].tolist()
    shown = [f"{item:.6g}" if isinstance(item, float) else str(item) for item in few]
    rest = ["…"] if value.numel() > len(few) else []
    return f"{kind}{list(value.shape)} {', '.join(shown + rest)}"


def cut(text: str) -> str:
    """``text`` on one line of at most ``WIDTH`` characters."""
    text = " ".join(text[: 4 * WIDTH].split())
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
