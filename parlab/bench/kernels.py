"""Attention and rotary positions as one device computes them, without expanding KV heads."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.torch_version import TorchVersion

_GROUPS = torch.__version__ >= TorchVersion("2.13")


def causal_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """q [b, a, s, d], k and v [b, k, s, d] -> [b, a, s, d]; token i sees tokens 0..i."""
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)


def masked_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> Tensor:
    """Like `causal_attention` with q of s rows, k and v of t, and mask [s, t] of what is seen."""
    grouped = q.shape[1] != k.shape[1]
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=grouped)


class Rotate(torch.autograd.Function):  # type: ignore[misc]
    """Turns the two halves of each head by the position's angle; backward turns back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        ctx.save_for_backward(cos, sin)
        return _turn(x, cos, sin)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        cos, sin = ctx.saved_tensors
        return _turn(gradients[0], cos, -sin), None, None


def _turn(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    one, two = out.chunk(2, dim=-1)
    torch.mul(first, cos, out=one).addcmul_(second, sin, value=-1)
    torch.mul(second, cos, out=two).addcmul_(first, sin)
    return out


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions, Hugging Face's half-split form: x [b, s, a, d], cos and sin [s, 1, d/2]."""
    turned: Tensor = Rotate.apply(x, cos, sin)
    return turned


def block_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    """Attention of q [b, a, s, d] to one block of k, v [b, k, t, d]: out [b, a, s, d] and the
    log-sum-exp of the scores [b, a, s] in fp32, by which blocks merge."""
    if _has_operator(q, k):
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal)
        return out, lse
    return _plain_forward(q, k, v, causal)


def block_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """dq, dk, dv of one block, given the output and log-sum-exp merged over all blocks."""
    if _has_operator(q, k):
        dq, dk, dv = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
            grad, q, k, v, out, lse, 0.0, causal
        )
        return dq, dk, dv
    return _plain_backward(grad, q, k, v, out, lse, causal)


def _has_operator(q: Tensor, k: Tensor) -> bool:
    """Whether torch's CPU operator is to be trusted: for fewer KV heads than heads, torch 2.8's
    writes beyond its memory; 2.13's is right, and nothing between them was tried."""
    return q.device.type == "cpu" and (q.shape[1] == k.shape[1] or _GROUPS)


def _scores(q: Tensor, k: Tensor, causal: bool) -> Tensor:
    """Scaled scores [b, k, a/k, s, t] in fp32; query heads are grouped, KV heads never repeated."""
    grouped = q.float().unflatten(1, (k.shape[1], -1))
    scores = torch.einsum("bkgsd,bktd->bkgst", grouped, k.float()) * q.shape[-1] ** -0.5
    if causal:
        unseen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
        scores = scores.masked_fill(unseen, float("-inf"))
    return scores


def _plain_forward(q: Tensor, k: Tensor, v: Tensor, causal: bool) -> tuple[Tensor, Tensor]:
    scores = _scores(q, k, causal)
    lse = scores.logsumexp(-1)
    out = torch.einsum("bkgst,bktd->bkgsd", (scores - lse[..., None]).exp(), v.float())
    return out.flatten(1, 2).to(q.dtype), lse.flatten(1, 2)


def _plain_backward(
    grad: Tensor, q: Tensor, k: Tensor, v: Tensor, out: Tensor, lse: Tensor, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The flash backward (arXiv 2205.14135 appendix B.4) on whole blocks."""
    shape, scale = (k.shape[1], -1), q.shape[-1] ** -0.5
    weights = (_scores(q, k, causal) - lse.unflatten(1, shape)[..., None]).exp()
    upstream, queries = grad.float().unflatten(1, shape), q.float().unflatten(1, shape)
    rows = (grad.float() * out.float()).sum(-1).unflatten(1, shape)[..., None]
    through = weights * (torch.einsum("bkgsd,bktd->bkgst", upstream, v.float()) - rows) * scale
    dq = torch.einsum("bkgst,bktd->bkgsd", through, k.float()).flatten(1, 2)
    dk = torch.einsum("bkgst,bkgsd->bktd", through, queries)
    dv = torch.einsum("bkgst,bkgsd->bktd", weights, upstream)
    return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype)
