"""Context parallelism behind one adapter: which tokens this rank holds, and how it attends.

The sequence is cut as lesson 03 teaches (head-tail, see `head_tail`), so that every rank has the
same share of the causal triangle. Two methods give the same numbers:

allgather  every rank gathers K and V and masks by position (Llama 3, arXiv 2407.21783 section 3.3)
ring       K and V travel from rank to rank, partial results merge by their log-sum-exp
           (arXiv 2310.01889); see `ring_attention`
"""

from __future__ import annotations

import torch
from torch import Tensor

from parlab.bench.collectives import Axis, gather_stacked
from parlab.bench.head_tail import chunks, head_tail
from parlab.bench.kernels import causal_attention, masked_attention
from parlab.bench.ring_attention import ring_attention

METHODS = ("allgather", "ring")


class ContextParallel:
    """The cp axis of one rank and the method by which its tokens see the others'."""

    def __init__(self, axis: Axis, method: str = "allgather") -> None:
        if method not in METHODS:
            raise ValueError(f"cp_method {method!r} is none of {', '.join(METHODS)}")
        self.axis, self.method = axis, method
        self._masks: dict[tuple[int, int, torch.device], Tensor] = {}

    def positions(self, sequence: int) -> Tensor:
        """Global positions [sequence / cp] of this rank's tokens, ascending."""
        if self.axis.size == 1:  # nothing is cut, so any length will do
            return torch.arange(sequence)
        return head_tail(sequence, self.axis.size, self.axis.index)

    def attend(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """q [b, a, s/cp, d], k and v [b, k, s/cp, d] -> [b, a, s/cp, d], causal over all of s."""
        if self.axis.size == 1:
            return causal_attention(q, k, v)
        if self.method == "ring":
            return ring_attention(q, k, v, self.axis)
        return self._gathered(q, k, v)

    def _gathered(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        chunk = q.shape[2] // 2
        everyone = gather_stacked(torch.stack((k, v)), self.axis, "kv_gather")
        held, places = chunks(self.axis.size)
        pieces = [half for rank in everyone.unbind() for half in rank.split(chunk, dim=3)]
        ordered = torch.stack([pieces[place] for place in places])  # [2n, 2, b, k, chunk, d]
        # Chunk c sees chunks 0..c; what it cannot see is not computed.
        parts = []
        for queries, c in zip(q.split(chunk, dim=2), held[self.axis.index], strict=True):
            keys, values = ordered[: c + 1].permute(1, 2, 3, 0, 4, 5).flatten(3, 4)
            parts.append(masked_attention(queries, keys, values, self._mask(chunk, c, q.device)))
        return torch.cat(parts, dim=2)

    def _mask(self, chunk: int, c: int, device: torch.device) -> Tensor:
        """[chunk, (c+1)·chunk], true where a token of chunk c sees a token of chunks 0..c."""
        key = (chunk, c, device)
        if key not in self._masks:
            rows = torch.arange(c * chunk, (c + 1) * chunk, device=device)
            columns = torch.arange((c + 1) * chunk, device=device)
            self._masks[key] = columns[None, :] <= rows[:, None]
        return self._masks[key]
