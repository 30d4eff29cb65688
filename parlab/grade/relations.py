"""How a returned value is compared with the solution's: types before values, plain data only.

Nothing here calls anything of a student's: what comes back from the sandbox is plain data that
the grader itself has built.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from parlab.grade.relations_plain import RELATIONS as PLAIN
from parlab.grade.relations_ranks import RELATIONS as RANKS
from parlab.lesson.compare import same

Options = Mapping[str, Any]


def exact(got: object, expected: object, options: Options) -> bool:
    """Equal in type and value, all the way down."""
    return same(got, expected)


def any_order(got: object, expected: object, options: Options) -> bool:
    """As `exact`, but lists of names may come in any order.

    Options: ``any_order``, the dict entries that hold such lists, or True: the value itself.
    """
    return same(got, expected, options["any_order"])


def entries(got: object, expected: object, options: Options) -> bool:
    """Of two dicts the entries ``keys`` alone, as `any_order` compares them."""
    if type(got) is not dict or type(expected) is not dict:
        return False
    keys = [key for key in options["keys"] if key in expected]
    if any(key not in got for key in keys):
        return False
    mine, theirs = ({key: side[key] for key in keys} for side in (got, expected))
    return same(mine, theirs, options.get("any_order", ()))


def member(got: object, expected: object, options: Options) -> bool:
    """Whether the dict entry ``entry``, a list of names, holds each of ``names`` when it should.

    What else is in the list belongs to other rules.
    """
    if type(got) is not dict or type(expected) is not dict:
        return False
    listed = got.get(options["entry"])
    if type(listed) is not list or any(type(item) is not str for item in listed):
        return False
    right: list[str] = expected[options["entry"]]
    names: tuple[str, ...] = options["names"]
    return all((name in listed) == (name in right) for name in names)


def each(got: object, expected: object, options: Options) -> bool:
    """Two lists of one length, item by item by another relation: ``compare`` with ``options``."""
    if type(got) is not list or type(expected) is not list or len(got) != len(expected):
        return False
    relation, inner = RELATIONS[options["compare"]], options["options"]
    return all(relation(a, b, inner) for a, b in zip(got, expected, strict=True))


def all_but(got: object, expected: object, options: Options) -> bool:
    """Of two dicts with the same keys all entries but ``keys``, exactly."""
    if type(got) is not dict or type(expected) is not dict or set(got) != set(expected):
        return False
    left_out = set(options["keys"])
    mine, theirs = (
        {key: value for key, value in side.items() if key not in left_out}
        for side in (got, expected)
    )
    return same(mine, theirs)


def close(got: object, expected: object, options: Options) -> bool:
    """Equal in type, shape and dtype; floating values within ``rtol`` and ``atol``, NaN as NaN."""
    if type(got) is not type(expected):
        return False
    if isinstance(expected, float) and isinstance(got, float):
        return _near(got, expected, options)
    if isinstance(expected, dict) and isinstance(got, dict):
        return set(got) == set(expected) and all(
            close(got[key], value, options) for key, value in expected.items()
        )
    if isinstance(expected, list | tuple) and isinstance(got, list | tuple):
        pairs = zip(got, expected, strict=False)
        return len(got) == len(expected) and all(close(a, b, options) for a, b in pairs)
    if hasattr(expected, "dtype"):
        return _tensors(got, expected, options)
    return same(got, expected)


def _near(got: float, expected: float, options: Options) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return got == expected or (math.isnan(got) and math.isnan(expected))
    allowed: float = options["atol"] + options["rtol"] * abs(expected)
    return abs(got - expected) <= allowed


def _tensors(got: Any, expected: Any, options: Options) -> bool:
    import torch

    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    rtol, atol = options["rtol"], options["atol"]
    return bool(torch.allclose(got, expected, rtol=rtol, atol=atol, equal_nan=True))


RELATIONS: Mapping[str, Callable[[object, object, Options], bool]] = {
    "exact": exact,
    "any_order": any_order,
    "entries": entries,
    "member": member,
    "all_but": all_but,
    "close": close,
    "each": each,
    **PLAIN,
    **RANKS,
}
