"""Cases for ring attention: splits written by hand, sizes that differ from one another."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parlab.lesson.attention import random_qkv

Rows = list[list[int]]


def _span(first: int, last: int) -> list[int]:
    return list(range(first, last + 1))


@dataclass(frozen=True)
class Case:
    """One ring.

    Attributes:
        positions: what each rank holds.
        heads, kv_heads, dim, batch: sizes of q, k and v.
        needed: scores a head that each rank cannot do without.
    """

    positions: Rows
    needed: list[int]
    heads: int
    kv_heads: int
    dim: int
    batch: int = 1

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """q, k and v of the whole sequence, and the positions as a tensor."""
        length = sum(map(len, self.positions))
        q, k, v = random_qkv(self.batch, self.heads, self.kv_heads, length, self.dim, seed=length)
        return q, k, v, torch.tensor(self.positions)


RINGS = [
    Case([_span(0, 5)], [36], heads=4, kv_heads=2, dim=3),
    Case([_span(0, 5), _span(6, 11)], [36, 72], heads=4, kv_heads=2, dim=3, batch=2),
    Case([_span(0, 4), _span(5, 9), _span(10, 14)], [25, 50, 75], heads=6, kv_heads=2, dim=4),
    Case(  # head-tail, every query head with a KV head of its own
        [[0, 1, 2, 9, 10, 11], [3, 4, 5, 6, 7, 8]], [54, 54], heads=3, kv_heads=3, dim=5,
    ),
    Case(  # head-tail
        [
            [*_span(0, 3), *_span(28, 31)], [*_span(4, 7), *_span(24, 27)],
            [*_span(8, 11), *_span(20, 23)], _span(12, 19),
        ],
        [160, 160, 160, 160], heads=4, kv_heads=1, dim=6,
    ),
    Case(  # striped: dealt out one by one
        [[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]], [34, 41, 48], heads=4, kv_heads=2, dim=3,
    ),
]  # fmt: skip
