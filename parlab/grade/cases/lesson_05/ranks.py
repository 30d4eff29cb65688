"""TODO 2: ranks of one step, laid out on one clock, each then given a clock of its own."""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_05.rules import EACH
from parlab.lesson.trace_cases import PARTS, a_rank

Ranks = list[dict[str, float]]
KEYS = {
    "average": ("bubble_ratio", "communication_ratio"),
    "edges": ("bubble_ratio",),
    "denominator": ("communication_ratio",),
    "step": ("step",),
    "clocks": ("step", "bubble_ratio", "communication_ratio"),
}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    for rule, keys in KEYS.items():
        for number in range(EACH):
            yield Case(rule, (_ranks(dice, rule, number),), "measured", {"keys": keys})


def _ranks(dice: random.Random, rule: str, number: int) -> Ranks:
    """One to five ranks; those that begin and end the step are not the same."""
    count = dice.randint(2, 5)
    if rule == "average" and number == 0:
        count = 1
    length, begin = dice.randint(60, 200), dice.choice([0, 0, dice.randint(-50, 500)])
    heads, tails = [0] * count, [0] * count
    if rule != "average":  # who ends last has begun late
        heads = [0, *(dice.randint(1, 15) for _ in heads[1:])]
        tails = [*(dice.randint(1, 15) for _ in tails[1:]), 0]
    made = []
    for head, tail in zip(heads, tails, strict=True):
        own = length - head - tail
        cuts = sorted(dice.randint(0, own) for _ in range(3))
        edges = [0, *cuts, own]
        lengths = [b - a for a, b in zip(edges, edges[1:], strict=False)]
        offset = dice.choice([-300, 1000, 7, 0, -12]) if rule == "clocks" else 0
        start = begin + head - offset
        made.append(a_rank(start, start + own, lengths, offset))
    dice.shuffle(made)
    return made


def keeps(rule: str, ranks: Ranks) -> bool:
    windows = []
    for rank in ranks:
        numbers = [rank[key] for key in ("start", "end", "clock_offset", *PARTS)]
        if not all(type(number) in (int, float) for number in numbers):
            return False
        lengths = [rank[part] for part in PARTS]
        if min(lengths) < 0 or abs(sum(lengths) - (rank["end"] - rank["start"])) > 1e-9:
            return False
        if rank["end"] - rank["start"] < 1:
            return False
        windows.append(tuple(rank[key] + rank["clock_offset"] for key in ("start", "end")))
    offsets = {rank["clock_offset"] for rank in ranks}
    if rule == "average":
        return offsets == {0} and len(set(windows)) == 1
    if len(set(windows)) < 2:
        return False
    return rule == "clocks" or offsets == {0}


def smaller(ranks: Ranks) -> Iterator[Ranks]:
    """Fewer ranks, later or earlier clocks, and lengths with their window along."""
    for place in range(len(ranks)):
        yield ranks[:place] + ranks[place + 1 :]
    first = min(rank["start"] + rank["clock_offset"] for rank in ranks)
    yield [_moved(rank, -first, 0) for rank in ranks]
    for place, rank in enumerate(ranks):
        for offset in {0, 1, rank["clock_offset"]}:
            yield _with(ranks, place, _moved(rank, 0, rank["clock_offset"] - offset))
        for part in PARTS:
            for length in (0, 1, 10):
                if length < rank[part]:
                    yield _with(ranks, place, _shorter(rank, part, length))
    for scale in (10, 2):
        yield [_scaled(rank, scale) for rank in ranks]


def _with(ranks: Ranks, place: int, rank: dict[str, float]) -> Ranks:
    return [*ranks[:place], rank, *ranks[place + 1 :]]


def _moved(rank: dict[str, float], by: float, less: float) -> dict[str, float]:
    """Later by ``by``, and on a clock whose offset is smaller by ``less``."""
    moved = {key: rank[key] + by + less for key in ("start", "end")}
    return {**rank, **moved, "clock_offset": rank["clock_offset"] - less}


def _shorter(rank: dict[str, float], part: str, length: float) -> dict[str, float]:
    return {**rank, part: length, "end": rank["end"] - rank[part] + length}


def _scaled(rank: dict[str, float], by: int) -> dict[str, Any]:
    scaled: dict[str, Any] = {**rank, **{part: rank[part] // by for part in PARTS}}
    start = (rank["start"] + rank["clock_offset"]) // by - rank["clock_offset"]
    return {**scaled, "start": start, "end": start + sum(scaled[part] for part in PARTS)}
