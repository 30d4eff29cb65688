"""Ring attention over the cp axis with the head-tail split (arXiv 2310.01889, 2311.09431).

In shift j rank r holds the K/V of rank o = (r - j) mod cp, and its work is a whole block:
    o = r  its own tokens, causal (both chunks are in ascending order)
    o < r  all of its queries see o's head chunk; o's tail chunk lies after all of them
    o > r  its tail queries see both of o's chunks; its head queries see nothing
So no mask is needed and nothing is computed in vain. Every shift takes place, whatever is seen:
a block that a rank has no use for still has to reach the next one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from parlab.bench.collectives import Axis, Shift
from parlab.bench.kernels import block_backward, block_forward


def ring_attention(q: Tensor, k: Tensor, v: Tensor, axis: Axis) -> Tensor:
    """q [b, a, s/cp, d], k and v [b, k, s/cp, d] -> [b, a, s/cp, d]."""
    out: Tensor = _Ring.apply(q, torch.stack((k, v)), axis)
    return out


def _view(owner: int, rank: int, length: int) -> tuple[slice, slice]:
    """(queries, keys): what of this rank's queries sees what of the owner's keys."""
    half, everything = slice(0, length // 2), slice(0, length)
    if owner == rank:
        return everything, everything
    return (everything, half) if owner < rank else (slice(length // 2, length), everything)


def _merge(out: Tensor, lse: Tensor, new: Tensor, new_lse: Tensor) -> None:
    """Merge two softmax-weighted means over disjoint keys, in place: weights by log-sum-exp."""
    total = torch.logaddexp(lse, new_lse)
    out.mul_((lse - total).exp_()[..., None]).add_(new * (new_lse - total).exp_()[..., None])
    lse.copy_(total)


class _Ring(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, q: Tensor, kv: Tensor, axis: Axis) -> Tensor:
        block, length = kv, q.shape[2]
        shift = Shift(block, axis, "forward", "ring")
        first, lse = block_forward(q, kv[0], kv[1], causal=True)
        out = first.float()
        for j in range(1, axis.size):
            block = shift.wait()
            if j + 1 < axis.size:
                shift = Shift(block, axis, "forward", "ring")
            queries, keys = _view((axis.index - j) % axis.size, axis.index, length)
            new, new_lse = block_forward(
                q[:, :, queries], block[0, :, :, keys], block[1, :, :, keys], causal=False
            )
            _merge(out[:, :, queries], lse[:, :, queries], new.float(), new_lse)
        out = out.to(q.dtype)
        ctx.axis = axis
        ctx.save_for_backward(q, kv, out, lse)
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        q, kv, out, lse = ctx.saved_tensors
        axis, length, grad = ctx.axis, q.shape[2], gradients[0].contiguous()
        shift = Shift(kv, axis, "backward", "ring")
        own = block_backward(grad, q, kv[0], kv[1], out, lse, causal=True)
        dq = own[0].float()
        home = torch.stack(own[1:]).float()
        travelling: Shift | None = None  # dK/dV follow their block and come home at the end
        for j in range(1, axis.size):
            block = shift.wait()
            if j + 1 < axis.size:
                shift = Shift(block, axis, "backward", "ring")
            queries, keys = _view((axis.index - j) % axis.size, axis.index, length)
            part = block_backward(
                grad[:, :, queries], q[:, :, queries], block[0, :, :, keys],
                block[1, :, :, keys], out[:, :, queries], lse[:, :, queries], causal=False,
            )  # fmt: skip
            dq[:, :, queries] += part[0]
            dkv = travelling.wait() if travelling else torch.zeros_like(home)
            dkv[:, :, :, keys] += torch.stack(part[1:])
            travelling = Shift(dkv, axis, "backward", "ring")
        if travelling is not None:
            home += travelling.wait()
        return dq.to(q.dtype), home.to(kv.dtype), None
