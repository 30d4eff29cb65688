"""Autograd-aware collectives over one axis. Each says its axis, direction and cause to the trace.

Sums over tp follow Megatron's f and g (arXiv 1909.08053 section 3): `enter_sharded` is the
identity forward and a sum backward, `leave_sharded` a sum forward and the identity backward.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.bench.trace import Label, Pending, start

# Their names from torch 2.13 on, and before.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor


@dataclass(frozen=True)
class Axis:
    """One axis of the mesh as this rank sees it.

    ranks: global ranks along the axis through this rank, in order; index: this rank's place.
    """

    name: str
    index: int
    ranks: tuple[int, ...]
    group: Any

    @property
    def size(self) -> int:
        return len(self.ranks)


ONE_PROCESS = Axis("tp", 0, (0,), None)


def all_reduce(x: Tensor, axis: Axis, direction: str, cause: str) -> None:
    """Sum x over the axis in place."""
    why = Label(axis.name, direction, cause)
    start(
        why, "all_reduce", axis.ranks,
        lambda: [dist.all_reduce(x, group=axis.group, async_op=True)],
    ).wait()  # fmt: skip


def all_gather(x: Tensor, axis: Axis, direction: str, cause: str) -> Tensor:
    """x of shape [...] -> [n, ...], in the axis's order."""
    source = x.contiguous()
    # Gloo and torch 2.8 want the output as one concatenation along the first dim.
    out = x.new_empty((axis.size * source.numel(),))
    why = Label(axis.name, direction, cause)
    start(
        why, "all_gather", axis.ranks,
        lambda: [_all_gather(
            out, source.view(-1), group=axis.group, async_op=True
        )],
    ).wait()  # fmt: skip
    return out.view(axis.size, *x.shape)


def reduce_scatter(x: Tensor, axis: Axis, direction: str, cause: str) -> Tensor:
    """x of shape [n, ...] -> the sum over the axis of slice `index`, of shape [...]."""
    source = x.contiguous()
    out = x.new_empty((source[0].numel(),))
    why = Label(axis.name, direction, cause)
    start(
        why, "reduce_scatter", axis.ranks,
        lambda: [_reduce_scatter(
            out, source.view(-1), group=axis.group, async_op=True
        )],
    ).wait()  # fmt: skip
    return out.view(x.shape[1:])


class Shift:
    """A tensor on its way to the next rank of a ring while one comes from the previous rank."""

    def __init__(self, x: Tensor, axis: Axis, direction: str, cause: str) -> None:
        self.sent = x.contiguous()
        self.received = torch.empty_like(self.sent)
        following = axis.ranks[(axis.index + 1) % axis.size]
        previous = axis.ranks[axis.index - 1]
        operations = [
            dist.P2POp(dist.isend, self.sent, following, axis.group),
            dist.P2POp(dist.irecv, self.received, previous, axis.group),
        ]
        self.pending: Pending = start(
            Label(axis.name, direction, cause), "shift", axis.ranks,
            lambda: dist.batch_isend_irecv(operations), kind="ring",
        )  # fmt: skip

    def wait(self) -> Tensor:
        self.pending.wait()
        return self.received


class _Enter(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, cause: str) -> Tensor:
        ctx.axis, ctx.cause = axis, cause
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        # The gradient of a product is fresh and has no other reader, so the sum may replace it.
        total = gradients[0].contiguous()
        all_reduce(total, ctx.axis, "backward", ctx.cause)
        return total, None, None


class _Leave(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, cause: str) -> Tensor:
        ctx.mark_dirty(x)
        all_reduce(x, axis, "forward", cause)
        return x

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return gradients[0], None, None


class _GatherStacked(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor, axis: Axis, cause: str) -> Tensor:
        ctx.axis, ctx.cause = axis, cause
        return all_gather(x, axis, "forward", cause)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        return reduce_scatter(gradients[0], ctx.axis, "backward", ctx.cause), None, None


def enter_sharded(x: Tensor, axis: Axis, cause: str) -> Tensor:
    """Identity forward; backward sums the gradient over the axis."""
    return x if axis.size == 1 else _Enter.apply(x, axis, cause)


def leave_sharded(x: Tensor, axis: Axis, cause: str) -> Tensor:
    """Sum of x over the axis, in place; backward hands the gradient on as it is."""
    return x if axis.size == 1 else _Leave.apply(x, axis, cause)


def gather_stacked(x: Tensor, axis: Axis, cause: str) -> Tensor:
    """[...] -> [n, ...] over the axis; backward sums each rank's slice (reduce-scatter)."""
    return x[None] if axis.size == 1 else _GatherStacked.apply(x, axis, cause)
