"""Sets of time as sorted disjoint half-open intervals, in seconds."""

from collections.abc import Iterable

Interval = tuple[float, float]
Intervals = list[Interval]


def union(parts: Iterable[Iterable[float]]) -> Intervals:
    """All time that is in any part; parts may overlap, nest or be empty."""
    merged: Intervals = []
    for start, end in sorted((start, end) for start, end in parts if end > start):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def minus(whole: Intervals, hole: Intervals) -> Intervals:
    """The time in ``whole`` and not in ``hole``; both as ``union`` gives them."""
    left: Intervals = []
    position = 0
    for start, end in whole:
        while position < len(hole) and hole[position][1] <= start:
            position += 1
        at = position
        while at < len(hole) and hole[at][0] < end:
            if hole[at][0] > start:
                left.append((start, hole[at][0]))
            start = max(start, hole[at][1])
            at += 1
        if start < end:
            left.append((start, end))
    return left


def within(parts: Intervals, start: float, end: float) -> Intervals:
    """The time in ``parts`` between two moments."""
    return [(max(a, start), min(b, end)) for a, b in parts if a < end and b > start]


def total(parts: Intervals) -> float:
    """How long it is in all."""
    return sum(end - start for start, end in parts)
