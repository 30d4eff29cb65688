"""TODO 3: orders that run, with uneven times, and orders that certainly come to a deadlock."""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_01.rules import EACH, SECONDS

Op = tuple[str, int, int]
Orders = list[list[Op]]
Times = dict[str, list[float]]
# The entry of the result that a rule looks at.
ENTRY = {
    "waits": "spans",
    "transfer": "spans",
    "two_stages": "spans",
    "makespan": "makespan",
    "rank_bubbles": "rank_bubbles",
    "bubble": "bubble",
    "in_flight": "in_flight",
}
NO_TRANSFER = ("waits", "makespan", "rank_bubbles", "bubble", "in_flight")
RESULT = {"spans", "makespan", "rank_bubbles", "bubble", "in_flight"}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases; deadlocks, on which a loop may not end, come last."""
    for rule, entry in ENTRY.items():
        for number in range(EACH):
            yield Case(
                rule, _running(dice, rule, number), "measured", {"keys": (entry,)}, seconds=SECONDS
            )
    for number in range(EACH):
        orders = (_own_backward_first, _crossed, _nobody_does_it)[number % 3](dice)
        stages = 1 + max(op[1] for order in orders for op in order)
        yield Case("deadlock", (orders, _times(dice, stages)), seconds=SECONDS)


def _running(dice: random.Random, rule: str, number: int) -> tuple[Any, ...]:
    """Orders, times and, where the rule is about it, a transfer."""
    ranks = dice.randint(2, 4) if number else 1 + (rule == "transfer")
    homes = list(range(ranks))
    if rule == "two_stages":
        homes = _two_each(dice, ranks, number)
    kinds = "FBW" if rule in ("waits", "in_flight") and number % 3 == 2 else "FB"
    orders = _orders(dice, homes, dice.randint(4 if "W" in kinds else 2, 6), kinds)
    times = _times(dice, len(homes), kinds)
    if rule in NO_TRANSFER:
        return orders, times
    return orders, times, dice.choice([0.25, 0.5, 1, 3])


def _two_each(dice: random.Random, ranks: int, number: int) -> list[int]:
    """The rank of each stage: in turn, neighbours, or dealt out, so that only `orders` tells."""
    homes = [stage % ranks for stage in range(2 * ranks)]
    if number % 3 == 1:
        return sorted(homes)
    if number % 3 == 2:
        dice.shuffle(homes)
    return homes


def _orders(dice: random.Random, homes: list[int], microbatches: int, kinds: str = "FB") -> Orders:
    """Orders that end: each microbatch's steps get rising random numbers, and all go by them.

    ``homes[stage]`` is the stage's rank.
    """
    stages = len(homes)
    numbered: list[tuple[float, Op]] = []
    for number in range(microbatches):
        chain = [("F", stage, number) for stage in range(stages)]
        chain += [("B", stage, number) for stage in reversed(range(stages))]
        rising = sorted(number / microbatches + dice.random() for _ in chain)
        numbered += zip(rising, chain, strict=True)
        if "W" in kinds:
            ends = {op[1]: at for at, op in zip(rising, chain, strict=True) if op[0] == "B"}
            soon = 0.3 * dice.random()  # so that forwards follow
            numbered += [(at + soon, ("W", stage, number)) for stage, at in ends.items()]
    orders: Orders = [[] for _ in range(max(homes) + 1)]
    for _, op in sorted(numbered):
        orders[homes[op[1]]].append(op)
    return orders


def _times(dice: random.Random, stages: int, kinds: str = "FB") -> Times:
    """Uneven, in halves."""
    return {kind: [dice.randint(1, 12) / 2 for _ in range(stages)] for kind in kinds}


def _own_backward_first(dice: random.Random) -> Orders:
    """A rank has a backward before the forward of the same microbatch."""
    orders = _orders(dice, list(range(dice.randint(1, 4))), dice.randint(1, 4))
    rank = dice.randrange(len(orders))
    order = orders[rank]
    back = dice.choice([op for op in order if op[0] == "B"])
    order.remove(back)
    order.insert(dice.randint(0, order.index(("F", rank, back[2]))), back)
    return orders


def _crossed(dice: random.Random) -> Orders:
    """Rank 1 begins with a forward that rank 0 does after a backward, which waits for rank 1."""
    ranks, microbatches = dice.randint(2, 4), dice.randint(2, 5)
    orders = _orders(dice, list(range(ranks)), microbatches)
    late = dice.randrange(1, microbatches)
    first = [("F", 0, number) for number in range(late)]
    rest = [("F", 0, number) for number in range(late, microbatches)]
    rest += [("B", 0, number) for number in range(1, microbatches)]
    orders[0] = [*first, ("B", 0, 0), *rest]
    orders[1].remove(("F", 1, late))
    orders[1].insert(0, ("F", 1, late))
    return orders


def _nobody_does_it(dice: random.Random) -> Orders:
    """Forwards only, and one is missing: the ranks up to there finish."""
    ranks, microbatches = dice.randint(2, 5), dice.randint(2, 4)
    orders = [[("F", rank, n) for n in range(microbatches)] for rank in range(ranks)]
    rank = dice.randrange(ranks - 1)
    orders[rank].remove(("F", rank, dice.randrange(microbatches)))
    return orders


def keeps(rule: str, arguments: tuple[Any, ...], expected: Any) -> bool:
    orders, times, *transfer = arguments
    if not orders or not all(type(time) in (int, float) and time > 0 for time in _every(times)):
        return False
    if len({len(row) for row in times.values()}) != 1 or not {"F", "B"} <= set(times):
        return False
    if not _sound(orders, times):
        return False
    if rule == "deadlock":
        return not transfer and set(expected) == {"stuck"}
    if set(expected) != RESULT or (rule in NO_TRANSFER) is bool(transfer):
        return False
    held = len(times["F"]) > len(orders)
    return held is (rule == "two_stages") and all(value >= 0 for value in transfer)


def _every(times: Times) -> Iterator[float]:
    for row in times.values():
        yield from row


def _sound(orders: Orders, times: Times) -> bool:
    """Whether each step comes once, has a time, and each stage stays on one rank."""
    steps = [op for order in orders for op in order]
    home = {(rank, op[1]) for rank, order in enumerate(orders) for op in order}
    return (
        all(orders)
        and len(set(steps)) == len(steps)
        and len({stage for _, stage in home}) == len(home)
        and all(
            type(op) is tuple
            and len(op) == 3
            and op[0] in times
            and type(op[1]) is int
            and 0 <= op[1] < len(times[op[0]])
            and type(op[2]) is int
            and op[2] >= 0
            for op in steps
        )
    )


def smaller(orders: Orders, times: Times, *transfer: float) -> Iterator[tuple[Any, ...]]:
    """A microbatch less, the last stage less, all times 1 or whole."""
    for number in sorted({op[2] for order in orders for op in order}):
        fewer = [[op for op in order if op[2] != number] for order in orders]
        renamed = [[(k, s, n - (n > number)) for k, s, n in order] for order in fewer]
        yield renamed, times, *transfer
    last = len(times["F"]) - 1
    if last and len(orders) > last:
        shorter = {kind: row[:last] for kind, row in times.items()}
        yield orders[:last], shorter, *transfer
    ones: Times = {kind: [1] * len(row) for kind, row in times.items()}
    yield orders, ones, *transfer
    twos: Times = {**ones, "B": [2] * len(times["B"])}
    yield orders, twos, *(1 for _ in transfer)
