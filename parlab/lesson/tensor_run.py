"""Runs a learner's function on ranks: each has its part of x, and weights of which it reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from parlab.lesson import tensor_cases as cases
from parlab.lesson.rank_failure import RankFailed
from parlab.lesson.rank_threads import PerRank, RankRun, run_ranks
from parlab.lesson.stored import Stored

Function = Callable[..., Any]


@dataclass
class Ran:
    """A function's run on the ranks of a case.

    Attributes:
        cuts: the dim along which each weight is cut, None where every rank has all of it.
        stored: by rank, the weights with what was read of them.
        outputs: by rank, what the function returned.
        ended: why there are no outputs, as (aspect, what happened), where there are none.
    """

    case: cases.Case
    cuts: dict[str, int | None]
    stored: list[dict[str, Stored]]
    run: RankRun | None = None
    ended: tuple[str, str] | None = None
    outputs: list[Any] = field(default_factory=list)

    @property
    def ranks(self) -> range:
        return range(self.case["tp"])

    def done(self) -> RankRun:
        assert self.run
        return self.run

    def own(self, rank: int, name: str) -> Tensor:
        """True where the weight is this rank's; everywhere where it is not cut."""
        mask, dim = torch.zeros(self.stored[rank][name].shape, dtype=torch.bool), self.cuts[name]
        (mask if dim is None else mask.tensor_split(len(self.ranks), dim)[rank]).fill_(True)
        return mask

    def read_elsewhere(self, rank: int) -> list[str]:
        """The weights of which the rank has read something that is not its own."""
        return [
            name
            for name, stored in self.stored[rank].items()
            if (stored.covered() & ~self.own(rank, name)).any()
        ]


def run_column(function: Function, case: cases.Case) -> Ran:
    """``function(comm, x, weight, bias)`` where every rank has the whole x."""
    whole = cases.linear(case)
    stored = _stored_linear(whole, case["tp"])
    return _run(function, Ran(case, {"weight": 1, "bias": 0}, stored), [whole.x.detach()])


def run_row(function: Function, case: cases.Case) -> Ran:
    """``function(comm, x, weight, bias)`` where each rank has its part of x's last dim."""
    whole = cases.linear(case)
    parts = [_kept_order(part, whole.x) for part in whole.x.detach().tensor_split(case["tp"], -1)]
    stored = _stored_linear(whole, case["tp"])
    return _run(function, Ran(case, {"weight": 0, "bias": None}, stored), parts)


def run_block(function: Function, case: cases.Case) -> Ran:
    """``function(comm, x, weights, heads, kv_heads)``, which returns y and the bytes sent."""
    tp, weights = case["tp"], cases.block_weights(case)
    stored = [{name: Stored(whole) for name, whole in weights.items()} for _ in range(tp)]
    x, _ = cases.block_input(case)
    ran = Ran(case, {name: _block_dim(name) for name in weights}, stored)
    return _run(function, ran, [x], [case["heads"], case["kv_heads"]])


def _block_dim(name: str) -> int | None:
    return 1 if name in cases.COLUMNS else 0 if name in cases.ROWS else None


def _stored_linear(whole: cases.Linear, tp: int) -> list[dict[str, Stored]]:
    parts = {"weight": whole.weight, "bias": whole.bias}
    present = {name: part for name, part in parts.items() if part is not None}
    return [{name: Stored(part) for name, part in present.items()} for _ in range(tp)]


def _kept_order(part: Tensor, whole: Tensor) -> Tensor:
    """A copy of ``part`` that is contiguous only where ``whole`` is."""
    if whole.is_contiguous():
        return part.contiguous()
    return part.transpose(0, -1).contiguous().transpose(0, -1)


def _run(
    function: Function, ran: Ran, inputs: Sequence[Tensor], heads: Sequence[int] | None = None
) -> Ran:
    tp, stored = ran.case["tp"], ran.stored
    inputs = list(inputs) * tp if len(inputs) == 1 else inputs
    x = PerRank([part.clone().requires_grad_() for part in inputs])
    rest: list[Any] = [PerRank([of.get(name) for of in stored]) for name in ("weight", "bias")]
    if heads is not None:
        rest = [PerRank(stored), *heads]
    try:
        ran.run = run_ranks(tp, function, x, *rest)
    except RankFailed as failure:
        if failure.kind == "raised" and failure.__cause__:
            if not ran.read_elsewhere(failure.rank or 0):
                raise failure.__cause__ from None
            ran.ended = ("raised", str(failure))  # what it read says more than what it raised
        else:
            ran.ended = ("late" if failure.kind == "late" else "ranks", str(failure))
    else:
        ran.outputs = list(ran.run.results)
    return ran
