"""Cases with tensors in words: a call as Python that runs, and where two runs first differ."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from parlab.grade.cases import Case
from parlab.grade.ranks import Weight
from parlab.grade.relations_ranks import first_difference, worded
from parlab.lesson.compare import cut, safe_repr


def call(function: str, case: Case) -> str:
    """Python that runs the function on ranks, with numbers of other values and the same shapes."""
    assert case.ranks
    ranks = case.ranks(*case.arguments)
    lines = [f"{_made(value)},  # {name}" for name, value in ranks.arguments[0].items()]
    head = (
        "from parlab.lesson.rank_threads import run_ranks\nfrom parlab.lesson.stored import Stored"
    )
    inner = "\n    ".join([f"{ranks.size}, {function},", *lines])
    return f"{head}\nrun_ranks(\n    {inner}\n)"


def as_source(tensor: Tensor) -> str:
    """Python that makes the tensor."""
    numbers = str(tensor.tolist()).replace("inf", "float('inf')").replace("nan", "float('nan')")
    grad = ", requires_grad=True" if tensor.requires_grad else ""
    return f"torch.tensor({numbers}, dtype={tensor.dtype}{grad})"


def sides(case: Case, expected: Any, got: Any) -> tuple[str, str]:
    """Expected and actual, of the first rank and the first part that differ."""
    if type(got) is not list or len(got) != len(expected):
        return cut(f"rank 0: {worded(expected[0], case.options['parts'][0])}"), cut(safe_repr(got))
    parts: Sequence[str] = case.options["parts"]
    rank, part = first_difference(got, expected, case.options) or (0, parts[-1])
    right = f"≤ {expected[rank]['limit']}" if part == "largest" else worded(expected[rank], part)
    return cut(f"rank {rank}: {right}"), cut(f"rank {rank}: {worded(got[rank], part)}")


def _made(value: Any) -> str:
    if isinstance(value, Weight):
        return f"Stored({_random(value.whole)})"
    if isinstance(value, dict):
        items = [f"{key!r}: {_made(item)}" for key, item in value.items()]
        return "{" + ",\n     ".join(items) + "}"
    if not isinstance(value, Tensor):
        return repr(value)
    if not value.is_floating_point():
        return f"torch.tensor({value.tolist()})"
    return _random(value)


def _random(tensor: Tensor) -> str:
    if tensor.is_contiguous():
        grad = ", requires_grad=True" if tensor.requires_grad else ""
        return f"torch.randn({tuple(tensor.shape)}, dtype={tensor.dtype}{grad})"
    turned = tuple(tensor.transpose(0, -1).shape)  # not contiguous
    return f"torch.randn({turned}, dtype={tensor.dtype}).transpose(0, -1).requires_grad_()"
