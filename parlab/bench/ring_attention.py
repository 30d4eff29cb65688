"""Ring attention over the cp axis with the head-tail split (arXiv 2310.01889, 2311.09431).

In shift j rank r holds the K/V of rank o = (r - j) mod cp. Where o = r its work is causal; else
it is one whole block: those of its two chunks that see a chunk of o's, and those that they see. So
no mask is needed and nothing is computed in vain. Every shift takes place, whatever is seen: a
block that a rank has no use for still has to reach the next one. Blocks merge as lesson 03 teaches.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from parlab.bench.collectives import Axis, Shift
from parlab.bench.head_tail import chunks
from parlab.bench.kernels import block_backward, block_forward
from parlab.bench.rules import lesson_rule


def ring_attention(q: Tensor, k: Tensor, v: Tensor, axis: Axis) -> Tensor:
    """q [b, a, s/cp, d], k and v [b, k, s/cp, d] -> [b, a, s/cp, d]."""
    out: Tensor = _Ring.apply(q, torch.stack((k, v)), axis)
    return out


def _view(step: int, axis: Axis, length: int) -> tuple[slice, slice]:
    """(queries, keys) of another rank's block: which of this rank's chunks see which of those."""
    held, half = chunks(axis.size)[0], length // 2
    mine, theirs = held[axis.index], held[(axis.index - step) % axis.size]
    asking = sum(chunk < theirs[0] for chunk in mine)  # chunks ascend, and so does what they see
    seen = sum(chunk < mine[-1] for chunk in theirs)
    return slice(asking * half, length), slice(0, seen * half)


class _Ring(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, q: Tensor, kv: Tensor, axis: Axis) -> Tensor:
        merge = lesson_rule("03_context_parallel", "merge")
        block, length = kv, q.shape[2]
        shift = Shift(block, axis, "forward", "ring")
        first, lse = block_forward(q, kv[0], kv[1], causal=True)
        out = first.float()
        for j in range(1, axis.size):
            block = shift.wait()
            if j + 1 < axis.size:
                shift = Shift(block, axis, "forward", "ring")
            queries, keys = _view(j, axis, length)
            new, new_lse = block_forward(
                q[:, :, queries], block[0, :, :, keys], block[1, :, :, keys], causal=False
            )
            merged = merge(out[:, :, queries], lse[:, :, queries], new.float(), new_lse)
            out[:, :, queries], lse[:, :, queries] = merged
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
            queries, keys = _view(j, axis, length)
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
