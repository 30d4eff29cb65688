"""A full training step on any mesh: forward, backward, gradient reductions, AdamW."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from parlab.bench.axes import Axes
from parlab.bench.collectives import Axis, all_reduce
from parlab.bench.context_parallel import ContextParallel
from parlab.bench.loop import Loop
from parlab.bench.model import Decoder, ModelConfig
from parlab.bench.optimizer import AdamW
from parlab.bench.parameters import Shard, load, shards
from parlab.bench.split import owners, parts
from parlab.bench.tensor_parallel import ParallelOperations
from parlab.bench.trace import chunk

BUCKET_BYTES = 64 << 20
Read = Callable[[str, tuple[int, ...]], Tensor]


@dataclass(frozen=True)
class Plan:
    """How one job trains: the batch in sequences and tokens, and the choices of a workload."""

    global_batch: int
    micro_batch: int
    sequence_length: int
    schedule: str = "1F1B"
    chunks_per_rank: int = 1
    split: str = "even"
    cp_method: str = "allgather"
    dtype: torch.dtype = torch.float32
    learning_rate: float = 1e-3

    @property
    def microbatches(self) -> int:
        return self.global_batch // self.micro_batch


class Trainer:
    """One rank's share of the model, its schedule and its optimizer."""

    def __init__(self, config: ModelConfig, plan: Plan, axes: Axes, read: Read) -> None:
        self.config, self.plan, self.axes = config, plan, axes
        self.context = ContextParallel(axes.cp, plan.cp_method)
        self.operations = ParallelOperations(axes.tp, self.context)
        self.positions = self.context.positions(plan.sequence_length)
        self.owners = owners(plan.schedule, axes.pp.size, plan.chunks_per_rank)
        self.decoders = self._decoders()
        self.runner = self._runner()
        self.load(read)

    def load(self, read: Read) -> None:
        """(Re)start from the weights that `read` gives, with a fresh optimizer."""
        with torch.no_grad():
            for decoder in self.decoders.values():
                load(decoder, self.axes.tp.index, read)
        self.optimizer = AdamW(self.parameters(), self.plan.learning_rate)

    def parameters(self) -> Iterator[nn.Parameter]:
        """Every parameter of this rank once, in stage order."""
        unique = {id(p): p for d in self.decoders.values() for p in d.parameters()}
        return iter(unique.values())

    def shards(self) -> Iterator[Shard]:
        """Every checkpoint parameter of this rank, in stage order."""
        for decoder in self.decoders.values():
            yield from shards(decoder)

    def step(self, ids: Tensor, targets: Tensor) -> Tensor:
        """One step on the whole batch [global batch, sequence], alike on every rank.

        Returns this rank's share of the mean loss a token: summed over cp (and taken once along
        tp) on the last stage it is the loss; elsewhere it is 0.
        """
        self.optimizer.zero_grad()
        own = (x[:, self.positions].to(self.axes.device) for x in (ids, targets))
        losses = self.runner.step(*own)
        self.reduce_gradients()
        with chunk("optimizer"):
            self.optimizer.step()
        if not losses:
            return torch.zeros((), device=self.axes.device)
        return torch.stack([loss.detach().float() for loss in losses]).sum()

    def reduce_gradients(self) -> None:
        """Sum what ranks hold parts of: QK norms over tp, everything over cp, ends if tied."""
        if self.config.qk_norm and self.axes.tp.size > 1:
            reduce_over(list(self._qk_norms()), self.axes.tp, "norm_gradients")
        if self.axes.cp.size > 1:
            reduce_over(list(self.parameters()), self.axes.cp, "cp_gradients")
        ends = self.axes.ends
        if self.config.tied_embeddings and ends is not None and self.owners[0] != self.owners[-1]:
            reduce_over(list(self._ends()), ends, "tied")

    def _qk_norms(self) -> Iterator[nn.Parameter]:
        """Replicated over tp, but each rank applies them to its own heads."""
        for decoder in self.decoders.values():
            for layer in decoder.model.layers.values():
                yield layer.self_attn.q_norm.weight
                yield layer.self_attn.k_norm.weight

    def _ends(self) -> Iterator[nn.Parameter]:
        for decoder in self.decoders.values():
            if decoder.part.embedding:
                yield decoder.model.embed_tokens.weight
            if decoder.part.head:
                yield decoder.lm_head.weight

    def _decoders(self) -> dict[int, Decoder]:
        all_parts = parts(self.config, len(self.owners), self.plan.split, self.plan.sequence_length)
        decoders = {
            stage: Decoder(self.config, self.positions, self.operations, all_parts[stage]).to(
                self.axes.device, self.plan.dtype
            )
            for stage, owner in enumerate(self.owners)
            if owner == self.axes.pp.index
        }
        first, last = decoders.get(0), decoders.get(len(self.owners) - 1)
        if self.config.tied_embeddings and first is not None and last is not None:
            last.lm_head.weight = first.model.embed_tokens.weight
        return decoders

    def _runner(self) -> Any:
        plan, tokens = self.plan, self.positions.numel()
        total = plan.global_batch * plan.sequence_length

        def loss(logits: Tensor, targets: Tensor) -> Tensor:
            return self.operations.loss(logits, targets) / total

        if self.axes.pp.size == 1:
            return Loop(self.decoders[0], plan.microbatches, loss)
        from parlab.bench.pipeline import Pipeline, examples

        shapes = examples(self.decoders, plan.micro_batch, tokens, plan.dtype)
        stages: dict[int, nn.Module] = dict(self.decoders)
        return Pipeline(
            stages, shapes, self.owners, plan.schedule, plan.microbatches, loss, self.axes
        )


def reduce_over(owners: list[nn.Parameter], axis: Axis, cause: str) -> None:
    """Sum the parameters' gradients over the axis, in buckets that each take one operation."""
    gradients = [p.grad if p.grad is not None else torch.zeros_like(p) for p in owners]
    for p, gradient in zip(owners, gradients, strict=True):
        p.grad = gradient
    for bucket in _buckets(gradients):
        flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
        all_reduce(flat, axis, "step", cause)
        pieces = flat.split([gradient.numel() for gradient in bucket])
        for gradient, piece in zip(bucket, pieces, strict=True):
            gradient.copy_(piece.view_as(gradient))


def _buckets(tensors: list[Tensor]) -> Iterator[list[Tensor]]:
    bucket: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if bucket and size + tensor.nbytes > BUCKET_BYTES:
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket
