"""What a rank of a ring does with the keys at hand: who looks at whom, and which copies it makes.

Blocks are counted in steps: block 0 is the rank's own, block n has come n ranks far.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode


@dataclass(frozen=True)
class Look:
    """One `partial_attention`: global positions of its queries and keys, and who sees whom.

    Attributes:
        arrived: how many blocks of K and V the rank had received by then.
        swapped: whether its keys are rows of V.
    """

    queries: Tensor
    keys: Tensor
    seen: Tensor
    arrived: int = 0
    swapped: bool = False

    @property
    def known(self) -> bool:
        """Whether every query and key is one of the sequence's."""
        return bool((self.queries >= 0).all() and (self.keys >= 0).all())

    @property
    def rows(self) -> int:
        return int(self.seen.shape[0])

    @property
    def columns(self) -> int:
        return int(self.seen.shape[1])

    def times(self, length: int) -> Tensor:
        """[length, length], 1 where a query has seen a key."""
        table = torch.zeros(length, length, dtype=torch.long)
        rows, columns = self.seen.nonzero(as_tuple=True)
        ones = torch.ones(len(rows), dtype=torch.long)
        return table.index_put((self.queries[rows], self.keys[columns]), ones, accumulate=True)

    def steps(self, rank: int, positions: Tensor) -> set[int]:
        """Which blocks its keys are from, for this rank."""
        holds = torch.isin(positions, self.keys).any(dim=1).nonzero().flatten().tolist()
        return {(rank - owner) % len(positions) for owner in holds}


def held(looks: Sequence[tuple[int, set[int]]]) -> list[int]:
    """The blocks that a rank held at the moment when it held most: arrived, and looked at later.

    Args:
        looks: by look, how many blocks had arrived by then, and which ones it looks at.
    """
    most: set[int] = set()
    for index, (arrived, _) in enumerate(looks):
        later = set().union(*(steps for _, steps in looks[index:]))
        most = max(most, {step for step in later if step <= arrived}, key=len)
    return sorted(most)


def blocks_by_number(k: Tensor, v: Tensor, arrived: Sequence[Tensor]) -> dict[float, int]:
    """Which block a number is from: as much as a rank can tell of what it had and has received."""
    block, brought = k.nbytes + v.nbytes, 0
    found = dict.fromkeys(k.flatten().tolist(), 0)
    for x in arrived:
        found.update(dict.fromkeys(x.flatten().tolist(), brought // block + 1))
        brought += x.nbytes
    return found


class Places:
    """Finds the global position of a row of q or k by its first number; -1 where it is unknown."""

    def __init__(self, q: Tensor, k: Tensor, v: Tensor) -> None:
        self.of_query, self.of_key, self.of_value = (
            {number: place for place, number in enumerate(x[0, 0, :, 0].tolist())}
            for x in (q, k, v)
        )

    def look(self, q: Tensor, k: Tensor, seen: Tensor, arrived: int) -> Look:
        queries = [self.of_query.get(number, -1) for number in q[0, 0, :, 0].tolist()]
        numbers = k[0, 0, :, 0].tolist()
        keys = [self.of_key.get(number, -1) for number in numbers]
        swapped = bool(numbers) and all(number in self.of_value for number in numbers)
        return Look(torch.tensor(queries), torch.tensor(keys), seen.clone(), arrived, swapped)


class KeyCopies(TorchFunctionMode):  # type: ignore[misc]
    """Within, notes what repeats K up to the number of query heads in memory.

    It sees what is called, not what torch does inside: a product that broadcasts over groups of
    heads, or attention with ``enable_gqa``, repeats nothing here.

    Attributes:
        found: the first operation that did, and the shape of what it made.
    """

    def __init__(self, q: Tensor, k: Tensor) -> None:
        super().__init__()
        self.heads, self.kv_heads = q.shape[1], k.shape[1]
        self.numbers = set(k[0, :, :, 0].flatten().tolist())
        self.found: tuple[str, list[int]] | None = None

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if not self.found and self.heads > self.kv_heads and isinstance(made, Tensor):
            self._see(made, getattr(func, "__name__", str(func)))
        return made

    def _see(self, made: Tensor, operation: str) -> None:
        whole = made.dim() == 4 and made.shape[1] == self.heads and made.numel() > 0
        if not whole or made.untyped_storage().nbytes() < made.numel() * made.element_size():
            return  # an expanded view takes no memory
        first = made.detach()[0, :, 0, 0].tolist()
        if len(set(first)) <= self.kv_heads and self.numbers.issuperset(first):
            self.found = operation, list(made.shape)
