"""Traces of one rank, put together piece by piece so that its four parts are known.

A step is laid out first, as a row of pieces (compute, exposed, idle, other); then events are made
that mean just that. Nothing here reads events, so there is no copy of the rule.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from parlab.lesson.intervals import total, union
from parlab.lesson.nearly import nearly

PARTS = ("compute", "exposed", "idle", "other")
Event = dict[str, Any]
Spans = list[tuple[float, float]]
Parts = dict[str, Spans]
# The parts of the lesson's first example, told by hand, in ms.
BY_HAND: Parts = {
    "compute": [(8, 12), (15, 18), (19, 26), (32, 36)],
    "exposed": [(6, 8), (12, 15), (26, 27), (31, 32)],
    "idle": [(0, 6), (27, 31), (36, 40)],
    "other": [(18, 19)],
}


def compute(start: float, end: float, name: str = "F") -> Event:
    """A forward, backward or optimizer chunk."""
    return {"kind": "compute", "name": name, "start": start, "end": end}


def collective(start: float, end: float, *blocked: list[float]) -> Event:
    """An all-reduce or the like, under way from ``start`` to ``end``."""
    return {"kind": "collective", "start": start, "end": end, "blocked": list(blocked)}


def p2p(start: float, end: float, peer_start: float, *blocked: list[float]) -> Event:
    """A pipeline transfer: posted here at ``start`` and by its peer at ``peer_start``."""
    times = {"start": start, "peer_start": peer_start, "end": end}
    return {"kind": "p2p", **times, "blocked": list(blocked)}


def parts(**spans: Sequence[Sequence[float]]) -> Parts:
    """All four parts; those not named are empty."""
    return {part: [(a, b) for a, b in spans.get(part, ())] for part in PARTS}


def untidy(got: object) -> str:
    """What keeps a result from being four lists of intervals, as a sentence's end; else empty."""
    if type(got) is not dict or set(map(str, got)) != set(PARTS):
        return ""  # the comparison itself says that
    for part, spans in got.items():
        if type(spans) is not list:
            return f"{part}: {type(spans).__name__}"
        for span in spans:
            pair = isinstance(span, list | tuple) and len(span) == 2
            if not pair or any(type(x) not in (int, float) for x in span):
                return f"{part}: {span!r}"
        if abs(total(spans) - total(union(spans))) > 1e-9:
            return f"{part}: {spans}"
    return ""


def tidied(got: dict[str, Any]) -> Parts:
    """The same time, each part's intervals joined where they touch, and sorted."""
    return {part: union(spans) for part, spans in got.items()}


def seconds(got: Parts) -> dict[str, float]:
    """How long each part is."""
    return {part: total(spans) for part, spans in got.items()}


def traces(seed: int = 0, count: int = 60) -> Iterator[tuple[list[Event], tuple[int, int], Parts]]:
    """Events of one rank in any order, the step, and the parts that they make."""
    dice = random.Random(seed)
    for _ in range(count):
        yield _trace(dice)


def _trace(dice: random.Random) -> tuple[list[Event], tuple[int, int], Parts]:
    at = dice.choice([0, 40, -25])
    pieces: list[tuple[str, int, int]] = []
    first = dice.choice(["idle", "compute", "exposed"])
    for label in [first, *_labels(dice), dice.choice(["idle", "compute", "exposed"])]:
        length = dice.randint(1, 9)
        pieces.append((label, at, at + length))
        at += length
    step = (pieces[0][1], pieces[-1][2])
    events = [event for index, piece in enumerate(pieces) for event in _made(dice, pieces, index)]
    events += _idle_talk(dice, pieces)
    dice.shuffle(events)
    known = {part: union([a, b] for label, a, b in pieces if label == part) for part in PARTS}
    return events, step, known


def _labels(dice: random.Random) -> list[str]:
    """A row that starts and ends with work, so that what lies between is no edge of the step."""
    inner = [dice.choice(PARTS) for _ in range(dice.randint(2, 9))]
    row = ["compute", *inner, dice.choice(["compute", "exposed"])]
    return [label for label, _ in groupby(row)]


def _made(dice: random.Random, pieces: list[tuple[str, int, int]], index: int) -> Iterator[Event]:
    """Events that make piece ``index`` what it is."""
    label, start, end = pieces[index]
    outer = index in (0, len(pieces) - 1)
    if label == "compute":
        yield compute(start, end)
        if dice.random() < 0.4:  # a chunk within a chunk, or one that overlaps it
            yield compute(start + (end - start) // 2, end, "W")
    elif label == "exposed":
        yield from _under(dice, start, end)
        if dice.random() < 0.3:  # and another transfer that has not begun
            yield p2p(start, end + 2, end + 2, [start, end])
        if dice.random() < 0.5:
            yield collective(start, end + 3, [start, end])
        else:  # the peer was there already, or came at that very moment
            early = dice.randint(0, 4)
            yield p2p(start, end, start - early, [start, end])
    elif label == "idle" and not (outer and dice.random() < 0.5):
        yield from _under(dice, start, end)
        late = 0 if index + 1 < len(pieces) and pieces[index + 1][0] == "exposed" else 2
        # Blocked until the peer posts; what flows after that is a piece of its own, if any.
        yield p2p(start, end + late, end + late, [start, end])


def _under(dice: random.Random, start: int, end: int) -> Iterator[Event]:
    """Often the blocked time lies within a compute chunk."""
    if dice.random() < 0.5:
        yield compute(start, end, "B")


def _idle_talk(dice: random.Random, pieces: list[tuple[str, int, int]]) -> Iterator[Event]:
    """Events that change nothing: hidden communication, and intervals of no length."""
    for label, start, end in pieces:
        if label == "compute" and dice.random() < 0.5:
            yield collective(start, end, [end, end])
        if label == "compute" and dice.random() < 0.3:
            yield p2p(start, end, end + 5)
        if label == "other":
            yield compute(start + 1, start + 1)
    begin, end = pieces[0][1], pieces[-1][2]
    if dice.random() < 0.4:  # of the step before, and of the one after
        yield compute(begin - 9, begin - 4)
        yield collective(end + 1, end + 6, [end + 2, end + 6])
    if pieces[0][0] == "compute" and dice.random() < 0.5:
        yield compute(begin - 3, begin + 1)


def groups(
    seed: int = 0, count: int = 40
) -> Iterator[tuple[list[dict[str, Any]], dict[str, float]]]:
    """Ranks as they report themselves, each on its own clock, and the step's ratios.

    The step is laid out first, on one clock; each rank is then given a part of it and a clock.
    """
    dice = random.Random(seed)
    for _ in range(count):
        size, length = dice.randint(1, 5), dice.randint(60, 200)
        begin = dice.randint(-50, 500)
        heads = [0, *(dice.randint(0, 12) for _ in range(size - 1))]
        tails = [*(dice.randint(0, 12) for _ in range(size - 1)), 0]
        ranks, idle, exposed = [], 0, 0
        for rank, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            cuts = sorted(dice.randint(0, length - head - tail) for _ in range(3))
            edges = [0, *cuts, length - head - tail]
            sizes = [b - a for a, b in zip(edges, edges[1:], strict=False)]
            offset = dice.choice([0, 0, -300, 1000, 7])
            ranks.append(
                {"rank": rank, "clock_offset": offset, "start": begin + head - offset,
                 "end": begin + length - tail - offset, **dict(zip(PARTS, sizes, strict=True))}
            )  # fmt: skip
            exposed += sizes[1]
            idle += sizes[2] + head + tail
        share = size * length
        dice.shuffle(ranks)
        yield ranks, {
            "step": length, "bubble_ratio": idle / share, "communication_ratio": exposed / share
        }  # fmt: skip


def a_rank(
    start: float, end: float, lengths: Sequence[float], clock_offset: float = 0
) -> dict[str, float]:
    """What a rank says about its own step, on its own clock: the lengths fill it.

    Args:
        lengths: of compute, exposed, idle and other.
    """
    assert sum(lengths) == end - start, (lengths, start, end)
    window = {"start": start, "end": end, "clock_offset": clock_offset}
    return {**window, **dict(zip(PARTS, lengths, strict=True))}


def agrees(got: object, expected: Parts) -> bool:
    """Whether a result holds the expected time in each part, however its intervals are cut."""
    if type(got) is not dict or set(map(str, got)) != set(PARTS) or untidy(got):
        return False
    return nearly(tidied(got), expected)
