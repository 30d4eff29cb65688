"""Cases for merging two partial results of attention, and what all keys at once would give."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from parlab.lesson.attention import NEVER, partial_attention, random_qkv

ROUNDING = {torch.float64: 1e-10, torch.float32: 1e-5}
PARTS = ("out", "lse", "new", "new_lse")


def numbers(lse: float, new_lse: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One query and one head of 2 dims: out = (2, -2), new = (4, 10); 0 where nothing was seen."""
    out = [0.0, 0.0] if lse == NEVER else [2.0, -2.0]
    new = [0.0, 0.0] if new_lse == NEVER else [4.0, 10.0]
    return (*result(out, lse), *result(new, new_lse))


def result(out: list[float], lse: float) -> tuple[Tensor, Tensor]:
    """[1, 1, 1, 2] and [1, 1, 1] in float64."""
    return (
        torch.tensor(out, dtype=torch.float64).view(1, 1, 1, -1),
        torch.tensor(lse, dtype=torch.float64).view(1, 1, 1),
    )


def agree(got: Any, expected: tuple[Tensor, Tensor]) -> bool:
    """A tuple of two tensors of these dtypes, shapes and values but for rounding."""
    if type(got) is not tuple or len(got) != 2:
        return False
    return all(map(_close, got, expected))


def _close(got: Any, expected: Tensor) -> bool:
    if not isinstance(got, Tensor) or (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    bound = ROUNDING[expected.dtype]
    return bool(torch.allclose(got.detach(), expected.detach(), rtol=bound, atol=bound))


@dataclass(frozen=True)
class TwoParts:
    """Keys in two parts. Query 0 sees none of either, 1 the first only, 2 the second only.

    Attributes:
        leaves: q, k, v.
        parts: out, lse, new, new_lse, computed from the leaves.
        whole: out and lse over all keys at once.
    """

    leaves: tuple[Tensor, ...]
    parts: tuple[Tensor, ...]
    whole: tuple[Tensor, Tensor]

    @property
    def arguments(self) -> list[Tensor]:
        """The parts as leaves that require gradients."""
        return [part.detach().clone().requires_grad_() for part in self.parts]

    def bad_gradient(self, got: tuple[Tensor, Tensor], given: tuple[Tensor, ...]) -> str:
        """What is wrong with the gradients of ``got`` for ``given``; empty where nothing is.

        Their way on to q, k and v must give what all keys at once give.
        """
        upstream = _upstream(self.whole)
        if not got[0].requires_grad:
            return "out.requires_grad = False"
        ends = [(x, g) for x, g in zip(got, upstream, strict=True) if x.requires_grad]
        outputs, gradients = zip(*ends, strict=True)
        found = torch.autograd.grad(outputs, given, gradients, allow_unused=True)
        for name, gradient in zip(PARTS, found, strict=True):
            if gradient is None or not bool(gradient.isfinite().all()):
                what = "None" if gradient is None else "NaN" if gradient.isnan().any() else "inf"
                return f"d{name}: {what}"
        back = torch.autograd.grad(self.parts, self.leaves, found, retain_graph=True)
        right = torch.autograd.grad(self.whole, self.leaves, upstream, retain_graph=True)
        for name, one, two in zip("qkv", back, right, strict=True):
            error = float((one - two).abs().max())
            if error > ROUNDING[one.dtype] * (1 + float(two.abs().max())):
                return f"d{name} ± {error:.3g}"
        return ""


def two_parts(seed: int, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> TwoParts:
    """2 sequences, 6 heads, 3 KV heads, 5 queries, 7 keys, 4 dims; scores times ``scale``."""
    q, _, _ = random_qkv(2, 6, 3, 5, 4, seed)
    _, k, v = random_qkv(2, 6, 3, 7, 4, seed + 100)
    leaves = [(x * s).to(dtype).requires_grad_() for x, s in ((q, scale), (k, 1.0), (v, 1.0))]
    q, k, v = leaves
    seen = torch.ones(5, 7, dtype=torch.bool)
    seen[0], seen[1, 3:], seen[2, :3] = False, False, False
    first = partial_attention(q, k[:, :, :3], v[:, :, :3], seen[:, :3])
    second = partial_attention(q, k[:, :, 3:], v[:, :, 3:], seen[:, 3:])
    return TwoParts((q, k, v), (*first, *second), partial_attention(q, k, v, seen))


def _upstream(whole: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """A gradient for out and one for lse, zero where lse is -inf."""
    dice = torch.Generator().manual_seed(5)
    out, lse = (torch.randn(x.shape, generator=dice, dtype=torch.float64) for x in whole)
    lse = lse.masked_fill(whole[1] == NEVER, 0.0)
    return out.to(whole[0].dtype), lse.to(whole[1].dtype)
