"""TODO 1: lengths of a sequence and numbers of ranks."""

import random
from collections.abc import Iterator

from parlab.grade.cases import Case

EACH = 8  # cases of one rule

_LOOKS = {
    "chunks": ("same_tokens", {}),
    "ascending": ("entries", {"keys": ("positions",)}),
    "inverse": ("inverts", {}),
    "work": ("entries", {"keys": ("work",)}),
}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases: 2 to 9 ranks, chunks of 1 to 6 tokens."""
    for rule, (compare, options) in _LOOKS.items():
        for cp in dice.sample(range(2, 10), EACH):
            chunk = dice.randrange(1, 7)
            yield Case(rule, (2 * cp * chunk, cp), compare, options)


def keeps(rule: str, sequence: int, cp: int) -> bool:
    """Whether the sequence can be split, and there is something to split."""
    return cp >= 2 and sequence > 0 and sequence % (2 * cp) == 0


def smaller(sequence: int, cp: int) -> Iterator[tuple[int, int]]:
    """Fewer ranks, shorter chunks."""
    yield from ((2 * ranks * chunk, ranks) for ranks in (2, 3) for chunk in (1, 2, 3))
