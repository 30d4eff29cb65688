"""Comparison of measured numbers: equal but for rounding, in dicts, lists and alone."""

import math
from typing import Any

TOLERANCE = 1e-9


def nearly(got: Any, expected: Any) -> bool:
    """Equal all the way down; an int may stand for a float, and rounding does not count.

    Args:
        got: a learner's value, whose own ``__eq__`` is never asked.
        expected: plain values.
    """
    if _number(expected):
        return _number(got) and math.isclose(got, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    if isinstance(expected, list | tuple):
        return (
            isinstance(got, list | tuple)
            and len(got) == len(expected)
            and all(map(nearly, got, expected))
        )
    if type(got) is not type(expected):
        return False
    if isinstance(expected, dict):
        if any(type(key) is not str for key in got) or set(got) != set(expected):
            return False
        return all(nearly(got[key], value) for key, value in expected.items())
    return bool(got == expected)


def _number(value: object) -> bool:
    return type(value) in (int, float)
