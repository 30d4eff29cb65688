"""What the ranks wrote → the four parts of a step, ratios, traffic. Pure functions.

A step runs from the first rank's start to the last rank's end on one clock. Each rank's step is
split without rest into *compute*, *exposed* communication, *idle* and *other*. How, and what the
ratios are, lesson 05 teaches; both rules are loaded from there.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parlab.bench.rules import lesson_rule
from parlab.lesson.intervals import Interval, Intervals, total, union, within

LESSON = "05_multi_gpu_experiments"
PARTS = ("compute", "exposed", "idle", "other")
_KEYS = ("axis", "direction", "cause", "operation")
_LARGEST = "largest_rank_payload_bytes"
_NOTHING = {"calls": 0, "payload_bytes": 0, "wire_bytes": 0, _LARGEST: 0}
Document = Mapping[str, Any]


@dataclass(frozen=True)
class Split:
    """One rank's step, as disjoint sets of time that fill it.

    Attributes:
        skew: the share of ``exposed`` before the last member of a collective arrived, seconds.
    """

    rank: int
    compute: Intervals
    exposed: Intervals
    idle: Intervals
    other: Intervals
    skew: float

    def seconds(self) -> dict[str, float]:
        """How long each part is."""
        return {part: total(getattr(self, part)) for part in PARTS}


def split_step(documents: Sequence[Document]) -> tuple[Interval, list[Split]]:
    """The traced step and its split, rank by rank.

    Args:
        documents: what each rank wrote (``rank-<rank>.json``).
    """
    shifted = traces(documents)
    step = (min(one["start"] for one in shifted), max(one["end"] for one in shifted))
    arrivals = _arrivals(shifted)
    return step, [_split(one, step, arrivals) for one in shifted]


def traces(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Each rank's traced step on one clock, seconds: ``rank``, ``start``, ``end``, ``events``."""
    return _with_peers([_on_one_clock(document) for document in documents])


def _on_one_clock(document: Document) -> dict[str, Any]:
    offset = document["clock_offset_s"]
    events = [
        {
            **event,
            "start": event["start"] + offset,
            "end": event["end"] + offset,
            "blocked": [(a + offset, b + offset) for a, b in event.get("blocked", ())],
        }
        for event in document["trace"]["events"]
    ]
    trace = document["trace"]
    return {
        "rank": document["rank"],
        "start": trace["start"] + offset,
        "end": trace["end"] + offset,
        "events": events,
    }


def _transfer(rank: int, event: Document) -> tuple[int, int, int]:
    """Sender, receiver and how many went before: the same on both sides."""
    ends = (rank, event["peer"]) if event["operation"] == "send" else (event["peer"], rank)
    return (*ends, event["sequence"])


def _with_peers(shifted: Sequence[Document]) -> list[dict[str, Any]]:
    """The same with ``peer_start`` in each transfer: when the other side posted its half."""
    posts: dict[tuple[tuple[int, int, int], str], float] = {}
    for one in shifted:
        for event in one["events"]:
            if event["kind"] == "p2p":
                posts[_transfer(one["rank"], event), event["operation"]] = event["start"]

    def known(rank: int, event: dict[str, Any]) -> dict[str, Any]:
        if event["kind"] != "p2p":
            return event
        other = "recv" if event["operation"] == "send" else "send"
        start = posts.get((_transfer(rank, event), other), event["start"])
        return {**event, "peer_start": start}

    return [
        {**one, "events": [known(one["rank"], event) for event in one["events"]]} for one in shifted
    ]


def _meeting(event: Document) -> tuple[str, tuple[int, ...], int]:
    return (event["axis"], tuple(event["group"]), event["sequence"])


def _arrivals(shifted: Sequence[Document]) -> dict[tuple[str, tuple[int, ...], int], float]:
    """When the last member of each collective or ring shift arrives."""
    arrivals: dict[tuple[str, tuple[int, ...], int], float] = {}
    for one in shifted:
        for event in one["events"]:
            if event["kind"] in ("collective", "ring"):
                key = _meeting(event)
                arrivals[key] = max(arrivals.get(key, event["start"]), event["start"])
    return arrivals


def _split(
    one: Document, step: Interval, arrivals: Mapping[tuple[str, tuple[int, ...], int], float]
) -> Split:
    skewed: Intervals = []
    for event in one["events"]:
        if event["kind"] in ("collective", "ring"):
            skewed += within(event["blocked"], step[0], arrivals[_meeting(event)])
    parts = lesson_rule(LESSON, "split_rank_step")(one["events"], step)
    return Split(one["rank"], **parts, skew=total(within(union(skewed), *step)))


def ratios(step: Interval, splits: Sequence[Split]) -> dict[str, float]:
    """Means over the ranks of idle / step and exposed / step; the other parts and skew beside."""
    length = step[1] - step[0]
    window = {"start": step[0], "end": step[1], "clock_offset": 0.0}
    found = lesson_rule(LESSON, "step_ratios")([{**window, **one.seconds()} for one in splits])

    def mean(values: Iterable[float]) -> float:
        return statistics.fmean(values) / length

    return {
        "bubble_ratio": found["bubble_ratio"],
        "communication_ratio": found["communication_ratio"],
        "compute_ratio": mean(total(split.compute) for split in splits),
        "other_ratio": mean(total(split.other) for split in splits),
        "skew_ratio": mean(split.skew for split in splits),
    }


def step_seconds(documents: Sequence[Document]) -> list[float]:
    """The length of each untraced repeat: first rank's start to last rank's end."""
    repeats = min(len(document["steps"]) for document in documents)
    lengths = []
    for number in range(repeats):
        starts = [d["steps"][number]["start"] + d["clock_offset_s"] for d in documents]
        ends = [d["steps"][number]["end"] + d["clock_offset_s"] for d in documents]
        lengths.append(max(ends) - min(starts))
    return lengths


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, least and greatest."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def traffic(documents: Sequence[Document]) -> list[dict[str, Any]]:
    """Calls and bytes of one steady step by axis, direction, cause and operation.

    Returns:
        One row each, sums over all ranks, and ``largest_rank_payload_bytes`` for the rank that
        hands over most. Payload bytes are what a rank hands to the operation (for P2P those sent).
    """
    rows: dict[tuple[str, ...], dict[str, Any]] = {}
    for document in documents:
        own: dict[tuple[str, ...], int] = {}
        for entry in document["traffic"]:
            key = tuple(entry[name] for name in _KEYS)
            row = rows.setdefault(key, {**dict(zip(_KEYS, key, strict=True)), **_NOTHING})
            for number in ("calls", "payload_bytes", "wire_bytes"):
                row[number] += entry[number]
            own[key] = own.get(key, 0) + entry["payload_bytes"]
        for key, amount in own.items():
            rows[key][_LARGEST] = max(rows[key][_LARGEST], amount)
    return [rows[key] for key in sorted(rows)]


def timeline(step: Interval, splits: Sequence[Split]) -> list[dict[str, Any]]:
    """Each rank's parts in ms from the step's start, for a picture; ``other`` is what is left."""
    return [
        {
            "rank": split.rank,
            **{
                part: [[_ms(a, step), _ms(b, step)] for a, b in getattr(split, part)]
                for part in PARTS
            },
        }
        for split in splits
    ]


def trace_in_ms(step: Interval, shifted: Sequence[Document]) -> list[dict[str, Any]]:
    """What `traces` gives, in ms from the step's start: what the parts were made of."""
    keys = ("kind", "name", "operation", "peer", "axis")

    def event_in_ms(event: Document) -> dict[str, Any]:
        times = [key for key in ("start", "peer_start", "end") if key in event]
        return {
            **{key: event[key] for key in keys if key in event},
            **{key: _ms(event[key], step) for key in times},
            "blocked": [[_ms(a, step), _ms(b, step)] for a, b in event["blocked"]],
        }

    return [
        {
            "rank": one["rank"],
            "start": _ms(one["start"], step),
            "end": _ms(one["end"], step),
            "events": [event_in_ms(event) for event in one["events"]],
        }
        for one in shifted
    ]


def _ms(moment: float, step: Interval) -> float:
    return round((moment - step[0]) * 1e3, 4)
