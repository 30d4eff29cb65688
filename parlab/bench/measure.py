"""What the ranks wrote → the four parts of a step, ratios, traffic. Pure functions.

A step runs from the first rank's start to the last rank's end on one clock. Each rank's step is
split without rest into *compute*, *exposed* communication, *idle* and *other*.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from parlab.bench.intervals import Interval, Intervals, minus, total, union, within

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
    shifted = [_on_one_clock(document) for document in documents]
    step = (min(one["start"] for one in shifted), max(one["end"] for one in shifted))
    posts, arrivals = _posts(shifted), _arrivals(shifted)
    return step, [_split(one, step, posts, arrivals) for one in shifted]


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


def _posts(shifted: Sequence[Document]) -> dict[tuple[int, int, int], float]:
    """When each transfer begins: the later of its two posts."""
    begins: dict[tuple[int, int, int], float] = {}
    for one in shifted:
        for event in one["events"]:
            if event["kind"] == "p2p":
                key = _transfer(one["rank"], event)
                begins[key] = max(begins.get(key, event["start"]), event["start"])
    return begins


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
    one: Document,
    step: Interval,
    posts: Mapping[tuple[int, int, int], float],
    arrivals: Mapping[tuple[str, tuple[int, ...], int], float],
) -> Split:
    busy, communicating, waiting = [], [], []
    skewed: Intervals = []
    for event in one["events"]:
        if event["kind"] == "compute":
            busy.append((event["start"], event["end"]))
        elif event["kind"] == "p2p":
            begin = posts[_transfer(one["rank"], event)]
            waiting += within(event["blocked"], step[0], begin)
            communicating += within(event["blocked"], begin, step[1])
        else:
            communicating += event["blocked"]
            skewed += within(event["blocked"], step[0], arrivals[_meeting(event)])
    exposed = within(union(communicating), *step)
    before = minus(within(union(waiting), *step), exposed)
    compute = minus(minus(within(union(busy), *step), exposed), before)
    active = union([*compute, *exposed])
    first, last = (active[0][0], active[-1][1]) if active else (step[1], step[1])
    edges = [(step[0], first), (last, step[1])]
    idle = minus(union([*before, *edges]), active)
    other = minus([step], union([*active, *idle]))
    return Split(one["rank"], compute, exposed, idle, other, total(within(union(skewed), *step)))


def ratios(step: Interval, splits: Sequence[Split]) -> dict[str, float]:
    """Means over the ranks of idle / step and exposed / step; ``other_ratio`` and skew beside."""
    length = step[1] - step[0]
    mean = {
        part: statistics.fmean(split.seconds()[part] for split in splits) / length for part in PARTS
    }
    return {
        "bubble_ratio": mean["idle"],
        "communication_ratio": mean["exposed"],
        "compute_ratio": mean["compute"],
        "other_ratio": mean["other"],
        "skew_ratio": statistics.fmean(split.skew for split in splits) / length,
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
                part: [
                    [round((a - step[0]) * 1e3, 4), round((b - step[0]) * 1e3, 4)]
                    for a, b in getattr(split, part)
                ]
                for part in PARTS
            },
        }
        for split in splits
    ]
