"""Tensor parallelism on local shards: two sums a layer and direction, vocabulary-parallel ends.

Column-parallel q, k, v, gate, up and head, row-parallel o and down, embedding and head cut over
the vocabulary (arXiv 1909.08053 section 3). The hot path computes on plain local tensors; DTensors
of the same storage describe the shards where something saves or gathers them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from parlab.bench.collectives import Axis, all_gather, enter_sharded, leave_sharded
from parlab.bench.context_parallel import ContextParallel
from parlab.bench.model import Decoder, Operations
from parlab.bench.parameters import shards

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


class ParallelOperations(Operations):
    """A decoder's surroundings on a mesh: tp for the products, cp for the attention."""

    def __init__(self, tp: Axis, context: ContextParallel) -> None:
        self.axis, self.context = tp, context
        self.tp = tp.size

    def enter(self, x: Tensor, cause: str) -> Tensor:
        return enter_sharded(x, self.axis, cause)

    def leave(self, x: Tensor, cause: str) -> Tensor:
        return leave_sharded(x, self.axis, cause)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return self.context.attend(q, k, v)

    def embed(self, ids: Tensor, weight: Tensor) -> Tensor:
        """ids [b, s], weight [v/tp, h] -> [b, s, h]: ids of other shards give zero, then a sum."""
        if self.axis.size == 1:
            return F.embedding(ids, weight)
        local = ids - self.axis.index * weight.shape[0]
        elsewhere = (local < 0) | (local >= weight.shape[0])
        x = F.embedding(local.masked_fill(elsewhere, 0), weight)
        return self.leave(x.masked_fill(elsewhere[..., None], 0), "embedding")

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """logits [b, s, v/tp], targets [b, s] -> sum of the cross-entropy, alike on all of tp."""
        if self.axis.size == 1:
            return super().loss(logits, targets)
        total: Tensor = _VocabularyLoss.apply(logits.flatten(0, -2), targets.flatten(), self.axis)
        return total


class _VocabularyLoss(torch.autograd.Function):  # type: ignore[misc]
    """Cross-entropy over logits that are cut by vocabulary.

    One gather of two numbers a token and rank (log-sum-exp and the target's logit) is enough:
    the log-sum-exp of the whole is the log-sum-exp of the parts.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, axis: Axis) -> Tensor:
        x = logits.float()
        local = targets - axis.index * x.shape[1]
        here = (local >= 0) & (local < x.shape[1])
        local = local.masked_fill(~here, 0)
        chosen = x.gather(1, local[:, None])[:, 0].masked_fill(~here, 0)
        parts = torch.stack((x.logsumexp(1), chosen))
        gathered = all_gather(parts, axis, "forward", "head_loss")
        normalizer = gathered[:, 0].logsumexp(0)
        ctx.save_for_backward(logits, normalizer, local, here)
        return (normalizer - gathered[:, 1].sum(0)).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        logits, normalizer, local, here = ctx.saved_tensors
        probabilities = (logits.float() - normalizer[:, None]).exp_()
        probabilities.scatter_add_(1, local[:, None], -here.to(probabilities.dtype)[:, None])
        return probabilities.mul_(gradients[0]).to(logits.dtype), None, None


def distributed_state(decoder: Decoder, mesh: Any) -> dict[str, DTensor]:
    """Checkpoint name -> DTensor over the tp axis `mesh` (a one-dim DeviceMesh), on the storage
    of the parameters: for saving, loading and `full_tensor()`."""
    from torch.distributed.tensor import DTensor, Replicate, Shard

    return {
        shard.name: DTensor.from_local(
            shard.value, mesh, [Replicate() if shard.dim is None else Shard(shard.dim)],
            run_check=False,
        )
        for shard in shards(decoder)
    }  # fmt: skip
