"""What ranks say to each other: collectives that autograd understands, and a log of them.

Each operation has a partner in backward (arXiv 1909.08053 section 3 calls the first two g and f):

    all_reduce      the sum            backward: the gradient unchanged
    enter           the input itself   backward: the sum of the gradients
    all_gather      all parts          backward: reduce-scatter
    reduce_scatter  a part of the sum  backward: all-gather
    shift           to the next rank   backward: to the previous rank
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from parlab.lesson.language import say

# Forward and backward of each operation; None moves nothing.
_PAIRS: dict[str, tuple[str | None, str | None]] = {
    "all_reduce": ("all_reduce", None),
    "enter": (None, "all_reduce"),
    "all_gather": ("all_gather", "reduce_scatter"),
    "reduce_scatter": ("reduce_scatter", "all_gather"),
    "shift": ("shift", "shift"),
}
Shape = tuple[Any, ...]


@dataclass(frozen=True)
class Record:
    """One operation of one rank.

    Attributes:
        operation: ``all_reduce``, ``all_gather``, ``reduce_scatter`` or ``shift``.
        direction: ``forward`` or ``backward``.
        shape: of what the rank handed over; of a shift of several tensors, their shapes.
        bytes: of what it handed over.
        sent: bytes that the rank sends where the operation runs round a ring.
    """

    rank: int
    operation: str
    direction: str
    shape: Shape
    bytes: int
    sent: int


@dataclass(frozen=True)
class Post:
    """What a rank brings to an operation: two posts meet only where all but the tensors agree."""

    operation: str
    direction: str
    argument: int | None
    tensors: tuple[Tensor, ...]

    @property
    def shape(self) -> Shape:
        shapes = tuple(tuple(tensor.shape) for tensor in self.tensors)
        return shapes[0] if len(shapes) == 1 else shapes

    def agrees(self, other: "Post") -> bool:
        """Whether both are the same operation on tensors of the same shapes and dtypes."""
        return self._key() == other._key()

    def _key(self) -> tuple[object, ...]:
        dtypes = [tensor.dtype for tensor in self.tensors]
        return self.operation, self.direction, self.argument, self.shape, dtypes

    def __str__(self) -> str:
        argument = (
            f", dim {self.argument}" if self.operation.endswith(("gather", "scatter")) else ""
        )
        dtypes = {str(tensor.dtype).removeprefix("torch.") for tensor in self.tensors}
        return say(
            "operation",
            operation=self.operation + argument,
            direction=say(self.direction),
            shape=f"{self.shape} {'/'.join(sorted(dtypes))}",
        )


class Communicator:
    """A rank's way to the others. What is common to threads and processes.

    Attributes:
        rank: this rank's number, from 0.
        size: how many ranks there are.
        log: what this rank has done so far.
    """

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.log: list[Record] = []

    def all_reduce(self, x: Tensor) -> Tensor:
        """The sum of every rank's ``x``, on every rank. Backward leaves the gradient as it is."""
        return self._apply("all_reduce", None, x)[0]

    def enter(self, x: Tensor) -> Tensor:
        """``x`` itself, which every rank holds alike. Backward sums the ranks' gradients."""
        return self._apply("enter", None, x)[0]

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """Every rank's ``x`` side by side along ``dim``, in order of rank, on every rank."""
        return self._apply("all_gather", _from_front(x, dim), x)[0]

    def reduce_scatter(self, x: Tensor, dim: int = 0) -> Tensor:
        """This rank's part along ``dim`` of the sum of every rank's ``x``.

        Raises:
            ValueError: where the dim cannot be cut evenly.
        """
        return self._apply("reduce_scatter", _from_front(x, dim), x)[0]

    def shift(self, x: Any) -> Any:
        """Sends ``x`` to the next rank of the ring and returns what the previous one sent.

        Args:
            x: a tensor, or a tuple of tensors that travel together; so is the result.
        """
        if isinstance(x, tuple | list):
            return self._apply("shift", 1, *x)
        return self._apply("shift", 1, x)[0]

    def _apply(self, name: str, argument: int | None, *tensors: Tensor) -> tuple[Tensor, ...]:
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise TypeError(say("need_tensor", operation=name, got=type(tensor).__name__))
        out: tuple[Tensor, ...] = _Exchange.apply(self, name, argument, *tensors)
        return out

    def run(
        self, operation: str | None, argument: int | None, direction: str, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        """The operation without autograd; None moves nothing."""
        if operation is None:
            return tuple(tensor.view_as(tensor) for tensor in tensors)
        if operation == "reduce_scatter":
            _check_even(tensors[0], argument or 0, self.size)
        post = Post(operation, direction, argument, tensors)
        handed = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
        sent = ring_bytes(operation, handed, self.rank, self.size)
        self.log.append(Record(self.rank, operation, direction, post.shape, handed, sent))
        return self._meet(post)

    def _meet(self, post: Post) -> tuple[Tensor, ...]:
        """Brings ``post`` to the other ranks; new tensors that belong to this rank alone."""
        raise NotImplementedError


class _Exchange(torch.autograd.Function):  # type: ignore[misc]
    """Any of the operations: forward one half of its pair, backward the other."""

    @staticmethod
    def forward(
        ctx: Any, comm: Communicator, name: str, argument: int | None, *tensors: Tensor
    ) -> tuple[Tensor, ...]:
        ctx.comm, ctx.name, ctx.argument = comm, name, argument
        return comm.run(_PAIRS[name][0], argument, "forward", *tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        argument = -ctx.argument if ctx.name == "shift" else ctx.argument
        back = ctx.comm.run(_PAIRS[ctx.name][1], argument, "backward", *gradients)
        return (None, None, None, *back)


def operations_behind(value: Tensor) -> Counter[str]:
    """How often a result of each operation has gone into ``value``, as autograd knows it."""
    found: Counter[str] = Counter()
    seen, ahead = set(), [value.grad_fn]
    while ahead:
        node = ahead.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if getattr(node, "_forward_cls", None) is _Exchange:
            found[node.name] += 1
        ahead += [further for further, _ in node.next_functions]
    return found


def ring_bytes(operation: str, handed: int, rank: int, size: int) -> int:
    """Bytes that ``rank`` sends: the pieces that pass through it are counted one by one.

    On a ring each rank talks to the next one only. What it has is cut into as many pieces as there
    are ranks; in every step each rank sends one piece on. An all-reduce first sums the pieces
    (reduce-scatter), then hands the sums round (all-gather).
    """
    if operation == "shift":
        return handed if size > 1 else 0
    if operation == "all_gather":
        pieces, rounds = [handed] * size, 1
    else:
        pieces = [handed // size + (piece < handed % size) for piece in range(size)]
        rounds = 2 if operation == "all_reduce" else 1
    sent = 0
    for lap in range(rounds):
        for step in range(size - 1):
            sent += pieces[(rank + lap - step) % size]
    return sent


def _from_front(x: Tensor, dim: int) -> int:
    return dim % x.dim() if isinstance(x, Tensor) and x.dim() else dim


def _check_even(x: Tensor, dim: int, size: int) -> None:
    if x.shape[dim] % size:
        raise ValueError(
            say("uneven", operation="reduce_scatter", dim=dim, size=x.shape[dim], ranks=size)
        )


def exchange(posts: Sequence[Post]) -> list[tuple[Tensor, ...]]:
    """What each rank gets of what all have brought; sums run in order of rank."""
    size, operation, dim = len(posts), posts[0].operation, posts[0].argument or 0
    if operation == "shift":
        # Copies: the sender may go on to change what it has sent.
        return [
            tuple(tensor.clone() for tensor in posts[(rank - dim) % size].tensors)
            for rank in range(size)
        ]
    if operation == "all_gather":
        gathered = torch.cat([post.tensors[0] for post in posts], dim)
        return [(gathered,)] * size
    total = posts[0].tensors[0].clone()
    for post in posts[1:]:
        total += post.tensors[0]
    if operation == "reduce_scatter":
        return [(part,) for part in total.tensor_split(size, dim)]
    return [(total,)] * size
