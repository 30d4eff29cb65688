"""A compact Llama / Qwen3 decoder whose parameters carry Hugging Face's names.

Written once for every mesh: whatever needs other ranks goes through `Operations`, whose base class
is the answer of one process. A pipeline stage is a decoder that holds a `Part` of the layers.

Shapes: b sequences of a microbatch, s tokens of a sequence on this rank, h hidden, a query heads,
k KV heads, d head dimension, f FFN width, v vocabulary; a, k, f and v are divided by tp.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from parlab.bench.kernels import causal_attention, rotate


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the whole model, the same on every rank."""

    num_layers: int
    hidden: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    ffn: int
    vocabulary: int
    rope_theta: float = 10_000.0
    norm_eps: float = 1e-6
    qk_norm: bool = False
    tied_embeddings: bool = False
    init_seed: int = 0

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> ModelConfig:
        """The fields of a workload's [model] table that belong to the decoder."""
        names = {field.name for field in fields(cls)}
        return cls(**{key: value for key, value in table.items() if key in names})


@dataclass(frozen=True)
class Part:
    """Layers first..stop-1, with or without the embedding and the final norm and head."""

    first: int
    stop: int
    embedding: bool
    head: bool

    @classmethod
    def whole(cls, config: ModelConfig) -> Part:
        return cls(0, config.num_layers, True, True)


class Operations:
    """What a decoder asks of its surroundings. This base class is one process: no communication."""

    tp = 1

    def enter(self, x: Tensor, cause: str) -> Tensor:
        """Before a column-parallel product: identity forward, sum over tp backward."""
        return x

    def leave(self, x: Tensor, cause: str) -> Tensor:
        """After a row-parallel product: sum over tp forward, identity backward."""
        return x

    def embed(self, ids: Tensor, weight: Tensor) -> Tensor:
        """ids [b, s], weight [v, h] -> [b, s, h]."""
        return F.embedding(ids, weight)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [b, a, s, d], k and v [b, k, s, d] -> [b, a, s, d], causal over the whole sequence."""
        return causal_attention(q, k, v)

    def loss(self, logits: Tensor, targets: Tensor) -> Tensor:
        """logits [b, s, v], targets [b, s] -> sum of the cross-entropy over these tokens."""
        flat = logits.flatten(0, -2).float()
        return F.cross_entropy(flat, targets.flatten(), reduction="sum")


class FusedLinear(nn.Module):  # type: ignore[misc]
    """Several projections of one input as one product; `parts` keeps the checkpoint's names.

    `parts` maps a module name (q_proj) to its number of rows on this rank.
    """

    def __init__(self, inputs: int, parts: dict[str, int]) -> None:
        super().__init__()
        self.parts = parts
        self.weight = nn.Parameter(torch.empty(sum(parts.values()), inputs))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class RMSNorm(nn.Module):  # type: ignore[misc]
    """x / rms(x) * weight over the last dim (arXiv 1910.07467), in fp32 as Hugging Face does."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


class Attention(nn.Module):  # type: ignore[misc]
    """Grouped-query attention (arXiv 2305.13245) with rotary positions (arXiv 2104.09864)."""

    def __init__(self, config: ModelConfig, operations: Operations) -> None:
        super().__init__()
        self.operations = operations
        self.heads = config.num_heads // operations.tp
        self.kv_heads = config.num_kv_heads // operations.tp
        self.head_dim = config.head_dim
        rows, kv_rows = self.heads * self.head_dim, self.kv_heads * self.head_dim
        parts = {"q_proj": rows, "k_proj": kv_rows, "v_proj": kv_rows}
        self.qkv = FusedLinear(config.hidden, parts)
        self.o_proj = nn.Linear(rows, config.hidden, bias=False)
        if config.qk_norm:
            self.q_norm = RMSNorm(self.head_dim, config.norm_eps)
            self.k_norm = RMSNorm(self.head_dim, config.norm_eps)
        self.qk_norm = config.qk_norm

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, s, _ = x.shape
        heads = self.qkv(self.operations.enter(x, "layers")).view(b, s, -1, self.head_dim)
        qk, v = heads.split([self.heads + self.kv_heads, self.kv_heads], dim=2)
        if self.qk_norm:
            q, k = qk.split([self.heads, self.kv_heads], dim=2)
            qk = torch.cat((self.q_norm(q), self.k_norm(k)), dim=2)
        q, k = rotate(qk, cos, sin).split([self.heads, self.kv_heads], dim=2)
        out = self.operations.attend(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        out = self.o_proj(out.transpose(1, 2).reshape(b, s, -1))
        return self.operations.leave(out, "layers")


class MLP(nn.Module):  # type: ignore[misc]
    """SwiGLU (arXiv 2002.05202): down(silu(gate(x)) * up(x))."""

    def __init__(self, config: ModelConfig, operations: Operations) -> None:
        super().__init__()
        self.operations = operations
        width = config.ffn // operations.tp
        self.gate_up = FusedLinear(config.hidden, {"gate_proj": width, "up_proj": width})
        self.down_proj = nn.Linear(width, config.hidden, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up(self.operations.enter(x, "layers")).chunk(2, dim=-1)
        return self.operations.leave(self.down_proj(F.silu(gate) * up), "layers")


class Layer(nn.Module):  # type: ignore[misc]
    """x + attention(norm(x)), then x + mlp(norm(x))."""

    def __init__(self, config: ModelConfig, operations: Operations) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config.hidden, config.norm_eps)
        self.self_attn = Attention(config, operations)
        self.post_attention_layernorm = RMSNorm(config.hidden, config.norm_eps)
        self.mlp = MLP(config, operations)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))


class Backbone(nn.Module):  # type: ignore[misc]
    """What Hugging Face calls `model`: of embedding, layers and final norm what `part` has."""

    def __init__(self, config: ModelConfig, operations: Operations, part: Part) -> None:
        super().__init__()
        if part.embedding:
            self.embed_tokens = nn.Embedding(config.vocabulary // operations.tp, config.hidden)
        self.layers = nn.ModuleDict(
            {str(index): Layer(config, operations) for index in range(part.first, part.stop)}
        )
        if part.head:
            self.norm = RMSNorm(config.hidden, config.norm_eps)


class Decoder(nn.Module):  # type: ignore[misc]
    """One part of the decoder. positions [s]: the global positions of this rank's tokens.

    forward: ids [b, s] where the part has the embedding, else x [b, s, h]; returns logits
    [b, s, v] where it has the head, else x. With tied embeddings and both ends in one part the
    head is the embedding's own parameter; otherwise the training step keeps the two alike.
    """

    def __init__(
        self,
        config: ModelConfig,
        positions: Tensor,
        operations: Operations | None = None,
        part: Part | None = None,
    ) -> None:
        super().__init__()
        self.config = config
        self.operations = operations or Operations()
        self.part = part or Part.whole(config)
        self.model = Backbone(config, self.operations, self.part)
        if self.part.head:
            rows = config.vocabulary // self.operations.tp
            self.lm_head = nn.Linear(config.hidden, rows, bias=False)
            if config.tied_embeddings and self.part.embedding:
                self.lm_head.weight = self.model.embed_tokens.weight
        cos, sin = rotary_tables(config, positions)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.part.embedding:
            x = self.operations.embed(x, self.model.embed_tokens.weight)
        cos, sin = self.cos.to(x.dtype), self.sin.to(x.dtype)
        for layer in self.model.layers.values():
            x = layer(x, cos, sin)
        if self.part.head:
            x = self.lm_head(self.operations.enter(self.model.norm(x), "head_loss"))
        return x


def rotary_tables(config: ModelConfig, positions: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin [s, 1, d/2] of position / theta^(2i/d), in fp32."""
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = positions.float()[:, None] / (config.rope_theta**half).to(positions.device)
    return angles.cos()[:, None, :], angles.sin()[:, None, :]
