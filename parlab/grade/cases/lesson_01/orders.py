"""TODO 2: ranks, stages and microbatches."""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_01.rules import EACH, SECONDS

_LOOK = {"warm_up": "first", "each_once": "each"}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases, with different results."""
    for rule in ("warm_up", "each_once", "alternate", "few", "single"):
        seen: set[tuple[int, int, int]] = set()
        for number in range(2 * EACH):
            given = _sizes(dice, rule, number)
            if given not in seen:
                seen.add(given)
                look = {"look": _LOOK.get(rule, "all")}
                yield Case(rule, given, "steps", look, seconds=SECONDS)


def _sizes(dice: random.Random, rule: str, number: int) -> tuple[int, int, int]:
    """Rank, stages and microbatches."""
    stages = dice.randint(2, 9)
    rank = dice.randrange(stages)
    if rule == "few":  # fewer than stages: for the first ranks too few, for the last ones enough
        stages = dice.randint(4, 9)
        rank = dice.randrange(stages - 1)
        if number % 2 and rank > 1:
            return rank, stages, dice.randint(stages - rank + 1, stages - 1)
        return rank, stages, dice.randint(1, stages - max(rank, 1))
    if rule == "single":
        if number % 3 == 0:
            return 0, 1, dice.randint(1, 20)
        if number % 3 == 1:
            return rank, stages, 1
        return stages - 1, stages, dice.randint(2, 20)
    if rule == "alternate":
        rank = dice.randrange(stages - 1)
    more = dice.choice([1, 2, 3, dice.randint(4, 12)])
    return rank, stages, stages - rank + more


def keeps(rule: str, arguments: tuple[Any, ...]) -> bool:
    if not all(type(number) is int for number in arguments):
        return False
    rank, stages, microbatches = arguments
    if not 0 <= rank < stages or microbatches < 1:
        return False
    if rule == "few":
        return rank < stages - 1 and bool(microbatches < stages)
    if rule == "single":
        return bool(stages == 1 or microbatches == 1 or rank == stages - 1)
    return bool(microbatches > stages - rank)
