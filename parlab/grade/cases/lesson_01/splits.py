"""TODO 1: layers whose best split is decided by one rule, found by looking at every split."""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_01.rules import EACH, SECONDS

Costs = list[int]
DECIDED = ("slowest", "squares", "first")
MOST = 11  # layers of a case whose splits are all looked at


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases; those that are too large for trying every split come last."""
    for rule in (*DECIDED, "whole"):
        for number in range(EACH):
            yield _case(rule, *_found(rule, dice, tempting=number % 2 == 0))
    for number in range(EACH):
        yield _case("edges", *_edge(dice, number))
    for number in range(3):
        yield _case("large", *_large(dice, number))


def _case(rule: str, costs: Costs, stages: int) -> Case:
    return Case(rule, (costs, stages), seconds=SECONDS)


def _found(rule: str, dice: random.Random, tempting: bool) -> tuple[Costs, int]:
    """Layers that are a case of the rule: the first that the dice give.

    ``tempting``: where the fastest split is asked for, another has the smallest squares.
    """
    while True:
        count = dice.randint(5, 9)
        stages = dice.randint(2, min(5, count - 1))
        top = dice.choice([2, 3, 9]) if rule == "first" else dice.choice([5, 9, 30])
        costs = [dice.randint(0 if place == 0 else 1, top) for place in range(count)]
        if rule == "whole":
            costs[0] += dice.randint(sum(costs) // 3, sum(costs))
        if not decides(rule, costs, stages):
            continue
        if rule != "slowest" or not tempting or _tempts(costs, stages):
            return costs, stages


def _edge(dice: random.Random, number: int) -> tuple[Costs, int]:
    """One stage, a stage for each layer, layers that cost nothing."""
    count = dice.randint(3, 9)
    costs = [dice.randint(1, 20) for _ in range(count)]
    if number % 4 == 0:
        return costs, 1
    if number % 4 == 1:
        return costs, count
    free = dice.randint(2, count - 1)
    if number % 4 == 2:  # they cost nothing at the front, so the first stages may be small
        return [0] * free + costs[free:], dice.randint(2, count)
    return [0] * count, dice.randint(2, count - 1)


def _large(dice: random.Random, number: int) -> tuple[Costs, int]:
    """Some 60 to 128 layers over 12 to 16 stages."""
    stages = dice.randint(12, 16)
    if number == 0:  # layers of one cost, and an LM head that weighs as much as a few
        layer, head = dice.randint(20, 60), dice.randint(61, 200)
        return [0, *[layer] * dice.randint(61, 126), head], stages
    if number == 1:
        return [dice.randint(1, 9) for _ in range(dice.randint(60, 100))], stages
    costs: Costs = []
    for _ in range(stages):  # stages of equal cost: no other split is as good
        cuts = sorted(dice.sample(range(1, 60), dice.randint(2, 7)))
        edges = [0, *cuts, 60]
        costs += [end - start for start, end in zip(edges, edges[1:], strict=False)]
    return costs, stages


def decides(rule: str, costs: Sequence[int], stages: int) -> bool:
    """Whether this rule leaves one split and the rules before it several."""
    splits = list(_splits(costs, stages))
    fastest = _least(splits, max)
    even = _least(fastest, _squares)
    if rule == "slowest":
        return len(splits) > len(fastest) == 1
    if rule == "squares":
        return len(fastest) > len(even) == 1
    if rule == "first":
        return len(even) > 1
    return len(even) == 1 and _misleads(costs, stages, even[0])


def _splits(costs: Sequence[int], stages: int) -> Iterator[tuple[int, ...]]:
    """The stages' costs of every split."""
    for cuts in combinations(range(1, len(costs)), stages - 1):
        edges = [0, *cuts, len(costs)]
        yield tuple(sum(costs[a:b]) for a, b in zip(edges, edges[1:], strict=False))


def _least(splits: Sequence[tuple[int, ...]], measure: Any) -> list[tuple[int, ...]]:
    least = min(map(measure, splits))
    return [split for split in splits if measure(split) == least]


def _squares(split: tuple[int, ...]) -> int:
    return sum(cost * cost for cost in split)


def _tempts(costs: Sequence[int], stages: int) -> bool:
    """Whether a split that is not the fastest has the smallest sum of squares."""
    splits = list(_splits(costs, stages))
    return not set(_least(splits, _squares)) & set(_least(splits, max))


def _misleads(costs: Sequence[int], stages: int, best: tuple[int, ...]) -> bool:
    """Whether what follows the first stage is not the best split of these layers by themselves."""
    if stages < 3:
        return False
    size, total = 1, costs[0]
    while total < best[0]:
        total += costs[size]
        size += 1
    rest = [(max(split), _squares(split)) for split in _splits(costs[size:], stages - 1)]
    return (max(best[1:]), _squares(best[1:])) != min(rest)


def keeps(rule: str, arguments: tuple[Any, ...]) -> bool:
    costs, stages = arguments
    if type(costs) is not list or not all(type(cost) is int and cost >= 0 for cost in costs):
        return False
    if type(stages) is not int or not 0 < stages <= len(costs):
        return False
    if rule in ("edges", "large"):
        return True
    return len(costs) <= MOST and decides(rule, costs, stages)


def smaller(costs: Costs, stages: int) -> Iterator[tuple[Costs, int]]:
    """A layer and a stage less at once, and all costs halved."""
    if stages > 1:
        for place in range(len(costs)):
            yield costs[:place] + costs[place + 1 :], stages - 1
    yield [cost // 2 for cost in costs], stages
    yield [min(cost, 2) for cost in costs], stages
