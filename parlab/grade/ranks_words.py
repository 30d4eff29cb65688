"""A case on ranks in words: the call by shapes, and where two runs first differ."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from parlab.grade.cases import Case
from parlab.grade.ranks import Weight
from parlab.grade.relations_ranks import first_difference, worded
from parlab.lesson.compare import cut, safe_repr

_SHOWN = 64  # numbers of a tensor of whole numbers, such as positions


def call(function: str, case: Case) -> str:
    """``run_ranks(3, function, x=float64[2, 6], …)``: what a rank gets."""
    assert case.ranks
    ranks = case.ranks(*case.arguments)
    given = ranks.arguments[0]
    lines = [f"{name}={_kind(value)}" for name, value in given.items()]
    return "run_ranks(\n    " + ",\n    ".join([str(ranks.size), function, *lines]) + ",\n)"


def sides(case: Case, expected: Any, got: Any) -> tuple[str, str]:
    """Expected and actual, of the first rank and the first part that differ."""
    if type(got) is not list or len(got) != len(expected):
        return cut(f"rank 0: {worded(expected[0], case.options['parts'][0])}"), cut(safe_repr(got))
    parts: Sequence[str] = case.options["parts"]
    rank, part = first_difference(got, expected, case.options) or (0, parts[-1])
    right = f"≤ {expected[rank]['limit']}" if part == "largest" else worded(expected[rank], part)
    return cut(f"rank {rank}: {right}"), cut(f"rank {rank}: {worded(got[rank], part)}")


def _kind(value: Any) -> str:
    if isinstance(value, Weight):
        return f"Stored{list(value.whole.shape)}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_kind(item)}" for key, item in value.items()) + "}"
    if not isinstance(value, Tensor):
        return repr(value)
    if not value.is_floating_point() and value.numel() <= _SHOWN:
        return f"tensor({value.tolist()})"
    strided = "" if value.is_contiguous() else " (not contiguous)"
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}{strided}"
