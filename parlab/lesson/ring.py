"""A rank's place in a ring, and what one process computes for comparison."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from parlab.lesson.attention import random_qkv, whole_attention

CLOSE = 1e-10
NAMES = ("q", "k", "v")


class Ring:
    """A rank's communicator that also remembers what every shift has brought.

    Autograd goes back only through what a result depends on. A rank whose last blocks are all
    masked does not depend on them, and yet their gradients have to pass through it: `backward`
    goes back through every shift.

    Args:
        comm: the rank's communicator.
        deaf: a rank that throws away the gradients which a shift's backward brings it.
    """

    def __init__(self, comm: Any, deaf: int | None = None) -> None:
        self.comm, self.rank, self.size = comm, comm.rank, comm.size
        self.deaf = deaf == comm.rank
        self.arrived: list[Tensor] = []

    def shift(self, x: Any) -> Any:
        """To the next rank of the ring, from the previous one; a tensor or a tuple of tensors."""
        if self.deaf:
            x = tuple(map(_Drop.apply, x)) if isinstance(x, tuple | list) else _Drop.apply(x)
        y = self.comm.shift(x)
        self.arrived += y if isinstance(y, tuple) else (y,)
        return y

    def __getattr__(self, name: str) -> Any:
        return getattr(self.comm, name)

    def ends(self, out: Tensor, gradient: Tensor) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Where backward starts, and the gradients there: zero for what the shifts brought."""
        further = tuple(x for x in self.arrived if x.requires_grad)
        return (out, *further), (gradient, *map(torch.zeros_like, further))

    def backward(self, out: Tensor, gradient: Tensor) -> None:
        """Puts gradients into the leaves, through every shift."""
        torch.autograd.backward(*self.ends(out, gradient))


class _Drop(torch.autograd.Function):  # type: ignore[misc]
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return torch.zeros_like(gradients[0])


@dataclass(frozen=True)
class Yardstick:
    """What one process computes: the output, and the gradients for a given gradient of it."""

    out: Tensor
    upstream: Tensor
    gradients: tuple[Tensor, ...]


def yardstick(q: Tensor, k: Tensor, v: Tensor) -> Yardstick:
    """Of the whole sequence, by torch's own attention; the gradient of the output is random."""
    leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
    out = whole_attention(*leaves)
    upstream = random_qkv(q.shape[0], q.shape[1], 1, q.shape[2], q.shape[3], seed=99)[0]
    out.backward(upstream)
    gradients = tuple(x.grad for x in leaves if x.grad is not None)
    return Yardstick(out.detach(), upstream, gradients)
