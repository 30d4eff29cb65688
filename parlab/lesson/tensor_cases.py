"""Layers to cut: sizes, their tensors, and what one process computes with torch's own autograd.

Products have small whole numbers in float64, so that sums are exact in whatever order.
"""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Case = dict[str, Any]
# No two sizes of a case are alike, and the whole weight is larger than anything that a rank needs.
_LINEAR = (
    {"tp": 4, "x": (2, 3, 12), "weight": (12, 20), "bias": True, "contiguous": True},
    {"tp": 2, "x": (5, 6), "weight": (6, 14), "bias": False, "contiguous": True},
    {"tp": 3, "x": (2, 1, 2, 9), "weight": (9, 6), "bias": True, "contiguous": False},
    {"tp": 5, "x": (2, 3, 10), "weight": (10, 15), "bias": True, "contiguous": False},
)
_BLOCK_KEYS = ("tp", "batch", "tokens", "hidden", "heads", "kv_heads", "head_dim", "ffn", "dtype")
_BLOCKS = (
    (3, 2, 5, 21, 6, 3, 4, 36, "float64"),
    (2, 3, 4, 10, 8, 2, 3, 14, "float32"),
    (4, 1, 6, 24, 8, 4, 6, 32, "float64"),
    (2, 2, 3, 12, 4, 4, 5, 22, "float64"),
)
NORMS = ("norm1", "norm2")
COLUMNS = ("wq", "wk", "wv", "w_gate", "w_up")
ROWS = ("wo", "w_down")


@dataclass(frozen=True)
class Linear:
    """y = x · weight + bias in one process, and the gradients for ``gradient`` at y."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    y: Tensor
    gradient: Tensor


def linear_cases() -> list[Case]:
    """Sizes of products, each with the number of ranks that share it."""
    return [{**case, "seed": seed} for seed, case in enumerate(_LINEAR)]


def linear(case: Case) -> Linear:
    """The product of a case, forward and backward done."""
    dice = torch.Generator().manual_seed(case["seed"])

    def whole(*shape: int) -> Tensor:
        return torch.randint(-4, 5, shape, generator=dice).double().requires_grad_()

    shape = case["x"]
    x, weight = whole(*shape), whole(*case["weight"])
    bias = whole(case["weight"][1]) if case["bias"] else None
    if not case["contiguous"]:  # the same numbers, in another order in memory
        x = x.detach().transpose(0, -1).contiguous().transpose(0, -1).requires_grad_()
    y = x @ weight if bias is None else x @ weight + bias
    gradient = torch.randint(-4, 5, y.shape, generator=dice).double()
    y.backward(gradient)
    return Linear(x, weight, bias, y.detach(), gradient)


def block_cases() -> list[Case]:
    """Sizes of decoder blocks; a head's size is not the hidden size over the heads."""
    return [dict(zip(_BLOCK_KEYS, sizes, strict=True)) for sizes in _BLOCKS]


def block_shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """The whole shape of each weight, [in, out]."""
    hidden, ffn = case["hidden"], case["ffn"]
    q, kv = case["heads"] * case["head_dim"], case["kv_heads"] * case["head_dim"]
    return {
        "norm1": (hidden,), "wq": (hidden, q), "wk": (hidden, kv), "wv": (hidden, kv),
        "wo": (q, hidden), "norm2": (hidden,), "w_gate": (hidden, ffn), "w_up": (hidden, ffn),
        "w_down": (ffn, hidden),
    }  # fmt: skip


def block_weights(case: Case, seed: int = 0) -> dict[str, Tensor]:
    """Random weights of a block, scaled so that activations stay near 1."""
    dice = torch.Generator().manual_seed(seed)
    dtype = getattr(torch, case["dtype"])
    weights = {}
    for name, shape in block_shapes(case).items():
        values = torch.randn(shape, generator=dice, dtype=torch.float64)
        values = 1 + values / 4 if name in NORMS else values / shape[0] ** 0.5
        weights[name] = values.to(dtype)
    return weights


def block_input(case: Case, seed: int = 1) -> tuple[Tensor, Tensor]:
    """x and the gradient at the output, both [batch, tokens, hidden]."""
    dice = torch.Generator().manual_seed(seed)
    shape = (case["batch"], case["tokens"], case["hidden"])
    values = torch.randn((2, *shape), generator=dice, dtype=torch.float64)
    x, gradient = values.to(getattr(torch, case["dtype"]))
    return x, gradient


def reference_block(x: Tensor, weights: dict[str, Tensor], heads: int, kv_heads: int) -> Tensor:
    """The block in one process, on torch's own operators: [b, s, h] -> [b, s, h]."""
    size = weights["wq"].shape[1] // heads
    normed = F.rms_norm(x, x.shape[-1:], weights["norm1"])
    q, k, v = (
        (normed @ weights[name]).unflatten(-1, (-1, size)).transpose(1, 2)
        for name in ("wq", "wk", "wv")
    )
    k, v = (part.repeat_interleave(heads // kv_heads, dim=1) for part in (k, v))
    mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    x = x + mixed.transpose(1, 2).flatten(2) @ weights["wo"]
    normed = F.rms_norm(x, x.shape[-1:], weights["norm2"])
    return x + (F.silu(normed @ weights["w_gate"]) * (normed @ weights["w_up"])) @ weights["w_down"]
