"""Cases with tensors in words: a call as Python that runs, and where two runs first differ."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from parlab.grade.cases import Case
from parlab.grade.relations_ranks import first_difference, worded
from parlab.grade.types import Result
from parlab.lesson.compare import cut, safe_repr


def call(function: str, case: Case, expected: Any, got: Result | None) -> str:
    """Python that makes this very run again, and prints what the page shows of it."""
    assert case.ranks
    made = case.ranks.__name__
    lines = [
        f"from {case.ranks.__module__} import {made}",
        "from parlab.grade.here import run_here",
    ]
    values = got[1] if got and got[0] == "value" else None
    rank, part = place(case, expected, values) or (0, "")
    run = [
        f"ranks = {made}({', '.join(map(repr, case.arguments))})",
        f"print(ranks.arguments[{rank}])  # rank {rank}",
        f"outcome = run_here({function}, ranks)",
    ]
    if not part:
        return "\n".join([*lines, *run, "print(outcome)"])
    lines.append("from parlab.grade.relations_ranks import worded")
    shown = f'print("rank {rank}:", worded(outcome[1][{rank}], "{part}"))'
    return "\n".join([*lines, *run, shown])


def place(case: Case, expected: Any, got: Any) -> tuple[int, str] | None:
    """The first rank and part that differ; None where the run has no facts to compare."""
    if type(got) is not list or len(got) != len(expected):
        return None
    parts: Sequence[str] = case.options["parts"]
    return first_difference(got, expected, case.options) or (0, parts[-1])


def as_source(tensor: Tensor) -> str:
    """Python that makes the tensor."""
    numbers = str(tensor.tolist()).replace("inf", "float('inf')").replace("nan", "float('nan')")
    grad = ", requires_grad=True" if tensor.requires_grad else ""
    return f"torch.tensor({numbers}, dtype={tensor.dtype}{grad})"


def sides(case: Case, expected: Any, got: Any) -> tuple[str, str]:
    """Expected and actual, of the first rank and the first part that differ."""
    found = place(case, expected, got)
    if found is None:
        return cut(f"rank 0: {worded(expected[0], case.options['parts'][0])}"), cut(safe_repr(got))
    rank, part = found
    right = f"≤ {expected[rank]['limit']}" if part == "largest" else worded(expected[rank], part)
    return cut(f"rank {rank}: {right}"), cut(f"rank {rank}: {worded(got[rank], part)}")
