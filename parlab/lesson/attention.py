"""Attention as one process computes it, whole or over a part of the keys.

Layouts: q and the result are [b, heads, s, d]; k and v are [b, kv_heads, t, d], where query head i
uses KV head i // (heads / kv_heads). A log-sum-exp of scores is [b, heads, s].
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import Tensor

NEVER = float("-inf")
_here = threading.local()  # each rank is a thread
Watcher = Callable[[Tensor, Tensor, Tensor], None]


def whole_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention over the whole sequence, by torch's own ``scaled_dot_product_attention``.

    KV heads are repeated here, in the yardstick only: not every torch takes fewer of them.
    """
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    out: Tensor = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return out


def partial_attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> tuple[Tensor, Tensor]:
    """Attention to some of the keys only, as if there were no others.

    Query heads are grouped by KV head; no KV head is ever repeated.

    Args:
        q: [b, heads, s, d].
        k, v: [b, kv_heads, t, d].
        seen: [s, t], true where a query may look at a key.

    Returns:
        ``out`` [b, heads, s, d], the mean of the values weighted by softmax over these t keys, and
        ``lse`` [b, heads, s], the log of the sum of exp(score). A query that sees none of the keys
        gets out = 0 and lse = -inf, and no gradient.
    """
    heads, kv_heads, length = q.shape[1], k.shape[1], q.shape[2]
    if heads % kv_heads or k.shape != v.shape or tuple(seen.shape) != (length, k.shape[2]):
        raise ValueError(
            f"partial_attention: q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)} and "
            f"seen {list(seen.shape)} do not fit together"
        )
    for watcher in getattr(_here, "watchers", ()):
        watcher(q.detach(), k.detach(), seen)
    blind = ~seen.any(dim=1)
    rows = q.unflatten(1, (kv_heads, -1)).flatten(2, 3)  # [b, kv_heads, group · s, d]
    scores = (rows @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5
    scores = scores.unflatten(2, (-1, length)).masked_fill(~seen, NEVER)
    scores = scores.masked_fill(blind[:, None], 0.0)  # finite, so that no NaN arises; blanked below
    weights = scores.softmax(dim=-1)
    out = (weights.flatten(2, 3) @ v).unflatten(2, (-1, length)).flatten(1, 2)
    lse = scores.logsumexp(dim=-1).flatten(1, 2)
    return out.masked_fill(blind[:, None], 0.0), lse.masked_fill(blind, NEVER)


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Within, ``watcher(q, k, seen)`` hears of every `partial_attention` of this thread."""
    before = getattr(_here, "watchers", ())
    _here.watchers = (*before, watcher)
    try:
        yield
    finally:
        _here.watchers = before


def random_qkv(
    batch: int, heads: int, kv_heads: int, length: int, dim: int, seed: int = 0
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k and v in float64, the same for the same numbers."""
    dice = torch.Generator().manual_seed(seed)
    shapes = ((batch, heads, length, dim), *[(batch, kv_heads, length, dim)] * 2)
    q, k, v = (torch.randn(shape, generator=dice, dtype=torch.float64) for shape in shapes)
    return q, k, v
