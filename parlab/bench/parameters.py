"""Parameters under their checkpoint names: where each lives, how it is cut, how it starts.

A fused projection holds several checkpoint parameters; a pipeline stage holds some layers; a TP
rank holds a shard. This file is the one place that knows the way from a module's own tensors to
`model.layers.0.self_attn.q_proj.weight` and back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from parlab.bench.model import Decoder, FusedLinear, ModelConfig

HEAD = "lm_head.weight"
EMBEDDING = "model.embed_tokens.weight"


@dataclass(frozen=True)
class Shard:
    """One checkpoint parameter on this rank.

    rows: this parameter's rows within `owner`; dim: the dim cut over tp, None where replicated.
    """

    name: str
    owner: nn.Parameter
    rows: slice
    dim: int | None

    @property
    def value(self) -> Tensor:
        return self.owner.detach()[self.rows]

    @property
    def gradient(self) -> Tensor:
        if self.owner.grad is None:
            return torch.zeros_like(self.value)
        return self.owner.grad[self.rows]

    def cut(self, full: Tensor, index: int, tp: int) -> Tensor:
        """The shard of TP rank `index` of tp, a view of the full parameter."""
        return full if self.dim is None else full.chunk(tp, dim=self.dim)[index]


def shards(decoder: Decoder) -> Iterator[Shard]:
    """Every checkpoint parameter that this decoder holds, a tied head once, as the embedding."""
    for path, module in decoder.named_modules():
        if isinstance(module, FusedLinear):
            yield from _fused(path.rpartition(".")[0], module)
            continue
        for leaf, owner in module.named_parameters(recurse=False):
            name = f"{path}.{leaf}"
            if name == HEAD and decoder.config.tied_embeddings and decoder.part.embedding:
                continue
            yield Shard(name, owner, slice(None), _cut_dim(path.rpartition(".")[2]))


def _fused(parent: str, module: FusedLinear) -> Iterator[Shard]:
    start = 0
    for leaf, rows in module.parts.items():
        yield Shard(f"{parent}.{leaf}.weight", module.weight, slice(start, start + rows), 0)
        start += rows


def _cut_dim(leaf: str) -> int | None:
    """Megatron's cut (arXiv 1909.08053 section 3): vocabulary by rows, o and down by columns."""
    if leaf in ("embed_tokens", "lm_head"):
        return 0
    return 1 if leaf in ("o_proj", "down_proj") else None


def checkpoint_name(shard: Shard, config: ModelConfig) -> str:
    """The name under which a checkpoint keeps it: a tied head is the embedding."""
    return EMBEDDING if shard.name == HEAD and config.tied_embeddings else shard.name


def full_shape(shard: Shard, tp: int) -> tuple[int, ...]:
    """The shape of the whole parameter."""
    shape = list(shard.value.shape)
    if shard.dim is not None:
        shape[shard.dim] *= tp
    return tuple(shape)


def load(decoder: Decoder, index: int, read: Callable[[str, tuple[int, ...]], Tensor]) -> None:
    """Fill the decoder of TP rank `index` from read(name, full shape) -> full parameter."""
    tp = decoder.operations.tp
    for shard in shards(decoder):
        name, shape = checkpoint_name(shard, decoder.config), full_shape(shard, tp)
        full = read(name, shape)
        if tuple(full.shape) != shape:
            raise ValueError(f"{name} is {tuple(full.shape)} in the checkpoint, {shape} wanted")
        shard.value.copy_(shard.cut(full, index, tp))


def random_weights(seed: int) -> Callable[[str, tuple[int, ...]], Tensor]:
    """Seeded by name, so that every mesh starts from the same model: N(0, 1/columns), norms 1."""

    def read(name: str, shape: tuple[int, ...]) -> Tensor:
        if len(shape) == 1:
            return torch.ones(shape)
        generator = torch.Generator().manual_seed(seed * 1_000_003 + zlib.crc32(name.encode()))
        return torch.randn(shape, generator=generator) * shape[1] ** -0.5

    return read
