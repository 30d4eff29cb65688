"""The four parts of a step: they fill it, and each wait is what the design says it is."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from parlab.bench.measure import PARTS, ratios, split_step, spread, step_seconds, timeline, traffic
from parlab.lesson.intervals import minus, total, union, within

Event = dict[str, Any]


def document(rank: int, start: float, end: float, *events: Event, offset: float = 0.0) -> Any:
    return {
        "rank": rank, "clock_offset_s": offset, "steps": [], "traffic": [],
        "trace": {"start": start, "end": end, "events": list(events)},
    }  # fmt: skip


def compute(start: float, end: float) -> Event:
    return {"kind": "compute", "name": "F", "start": start, "end": end}


def p2p(what: str, peer: int, start: float, end: float, *blocked: list[float], n: int = 0) -> Event:
    return {
        "kind": "p2p", "operation": what, "peer": peer, "sequence": n, "axis": "pp",
        "start": start, "end": end, "blocked": list(blocked),
    }  # fmt: skip


def collective(
    start: float, end: float, *blocked: list[float], n: int = 0, kind: str = ""
) -> Event:
    return {
        "kind": kind or "collective", "operation": "all_reduce", "axis": "tp", "cause": "layers",
        "group": [0, 1], "sequence": n, "start": start, "end": end, "blocked": list(blocked),
    }  # fmt: skip


def seconds(*documents: Any) -> list[dict[str, float]]:
    _, splits = split_step(documents)
    return [{part: round(s, 9) for part, s in split.seconds().items()} for split in splits]


def parts(c: float = 0, e: float = 0, i: float = 0, o: float = 0) -> dict[str, float]:
    return dict(zip(PARTS, (c, e, i, o), strict=True))


def test_transfer_begins_at_the_later_post() -> None:
    # Rank 1 posts its receive at 1, rank 0 sends from 4 to 6: 3 s of bubble, 2 s of transfer.
    sender = document(0, 0, 10, compute(0, 4), p2p("send", 1, 4, 6, [4, 6]), compute(6, 10))
    receiver = document(1, 0, 10, compute(0, 1), p2p("recv", 0, 1, 6, [1, 6]), compute(6, 10))
    assert seconds(sender, receiver) == [parts(c=8, e=2), parts(c=5, e=2, i=3)]


def test_sender_that_waits_for_the_receiver_is_idle_too() -> None:
    sender = document(0, 0, 10, compute(0, 2), p2p("send", 1, 2, 8, [2, 8]), compute(8, 10))
    receiver = document(1, 0, 10, compute(0, 7), p2p("recv", 0, 7, 8, [7, 8]), compute(8, 10))
    assert seconds(sender, receiver) == [parts(c=4, e=1, i=5), parts(c=9, e=1)]


def test_sequence_tells_transfers_apart() -> None:
    sender = document(0, 0, 10, p2p("send", 1, 1, 2, n=0), p2p("send", 1, 5, 6, n=1), compute(0, 1))
    receiver = document(
        1, 0, 10, p2p("recv", 0, 0, 2, [0, 2], n=0), compute(2, 3),
        p2p("recv", 0, 3, 6, [3, 6], n=1), compute(6, 10),
    )  # fmt: skip
    assert seconds(sender, receiver)[1] == parts(c=5, e=2, i=3)


def test_collective_blocked_is_exposed_and_skew_is_its_early_part() -> None:
    early = document(0, 0, 10, compute(0, 10), collective(2, 6, [2, 6]))
    late = document(1, 0, 10, compute(0, 10), collective(5, 6, [5, 6]))
    step, (a, b) = split_step([early, late])
    assert a.seconds() == parts(c=6, e=4) and a.skew == 3
    assert b.seconds() == parts(c=9, e=1) and b.skew == 0
    assert ratios(step, [a, b])["skew_ratio"] == pytest.approx(0.15)


def test_ring_shift_counts_like_a_collective() -> None:
    one = document(0, 0, 4, compute(0, 4), collective(1, 3, [2, 3], kind="ring"))
    assert seconds(one) == [parts(c=3, e=1)]


def test_overlapped_collective_is_not_exposed() -> None:
    one = document(0, 0, 10, compute(0, 10), collective(1, 9))
    assert seconds(one) == [parts(c=10)]


def test_nested_chunks_count_once() -> None:
    one = document(0, 0, 10, compute(0, 8), compute(1, 3), compute(2, 5), collective(2, 4, [3, 4]))
    assert seconds(one) == [parts(c=7, e=1, i=2)]


def test_edges_are_idle_and_gaps_are_other() -> None:
    one = document(0, 0, 10, compute(2, 4), compute(5, 8))
    assert seconds(one) == [parts(c=5, i=4, o=1)]


def test_step_is_the_whole_group_on_one_clock() -> None:
    first = document(0, 0, 6, compute(0, 6))
    # Rank 1's clock runs 100 s behind.
    second = document(1, -98, -90, compute(-98, -91), offset=100)
    step, splits = split_step([first, second])
    assert step == (0, 10)
    assert [split.seconds() for split in splits] == [parts(c=6, i=4), parts(c=7, i=3)]


def test_rank_without_work_is_idle() -> None:
    assert seconds(document(0, 0, 5)) == [parts(i=5)]


def pipeline(p: int, m: int, forward: float, backward: float, transfer: float) -> list[Any]:
    """GPipe by hand: every rank's clock, posts and blocked times, transfers of a fixed length."""
    events: list[list[Event]] = [[] for _ in range(p)]
    clock = [0.0] * p
    for work, chain in ((forward, range(p)), (backward, range(p)[::-1])):
        for number in range(m):
            ranks = list(chain)
            for at, rank in enumerate(ranks):
                if at:
                    previous = ranks[at - 1]
                    posted = clock[rank]
                    begin = max(posted, clock[previous])
                    end = begin + transfer
                    events[rank].append(p2p("recv", previous, posted, end, [posted, end], n=number))
                    # A send in the background: nothing blocked.
                    events[previous].append(p2p("send", rank, clock[previous], end, n=number))
                    clock[rank] = end
                events[rank].append(compute(clock[rank], clock[rank] + work))
                clock[rank] += work
    return [document(rank, 0.0, max(clock), *events[rank]) for rank in range(p)]


@pytest.mark.parametrize(("p", "m"), list(itertools.product((2, 4), (4, 8, 16))))
def test_bubble_of_a_perfect_pipeline_is_the_formula(p: int, m: int) -> None:
    step, splits = split_step(pipeline(p, m, 0.02, 0.04, 0.0))
    got = ratios(step, splits)
    assert got["bubble_ratio"] == pytest.approx((p - 1) / (m + p - 1), abs=1e-9)
    assert got["other_ratio"] == pytest.approx(0, abs=1e-9)


def random_documents(dice: random.Random) -> list[Any]:
    """Nonsense traces: parts must fill the step whatever the events are."""
    size = dice.randint(1, 4)
    documents = []
    for rank in range(size):
        start = dice.uniform(-1, 1)
        end = start + dice.uniform(0.1, 10)
        events = []
        for number in range(dice.randint(0, 12)):
            a, b = sorted(dice.uniform(start - 0.5, end + 0.5) for _ in range(2))
            inner = sorted(dice.uniform(a, b) for _ in range(4))
            blocked = [inner[:2], inner[2:]][: dice.randint(0, 2)]
            kind = dice.choice(["compute", "p2p", "collective", "ring"])
            if kind == "compute":
                events.append(compute(a, b))
            elif kind == "p2p":
                what = dice.choice(["send", "recv"])
                events.append(p2p(what, dice.randrange(size), a, b, *blocked, n=number))
            else:
                events.append(collective(a, b, *blocked, n=number, kind=kind))
        documents.append(document(rank, start, end, *events, offset=dice.choice([0.0, 3.0])))
    return documents


@pytest.mark.parametrize("seed", range(300))
def test_parts_fill_the_step_and_share_nothing(seed: int) -> None:
    step, splits = split_step(random_documents(random.Random(seed)))
    for split in splits:
        sets = [getattr(split, part) for part in PARTS]
        assert sum(map(total, sets)) == pytest.approx(step[1] - step[0], abs=1e-9)
        assert total(union(sum(sets, []))) == pytest.approx(step[1] - step[0], abs=1e-9)
        assert 0 <= split.skew <= split.seconds()["exposed"] + 1e-9
    assert sum(
        value for name, value in ratios(step, splits).items() if name != "skew_ratio"
    ) == pytest.approx(1)
    for row in timeline(step, splits):
        assert all(a <= b for part in PARTS for a, b in row[part])


@pytest.mark.parametrize("seed", range(100))
def test_interval_algebra_against_counting(seed: int) -> None:
    dice = random.Random(seed)

    def some() -> list[tuple[float, float]]:
        return [(a, a + dice.randint(0, 9)) for a in (dice.randint(0, 30) for _ in range(6))]

    def cells(parts: Any) -> set[int]:
        return {cell for a, b in parts for cell in range(int(a), int(b))}

    one, two = some(), some()
    a, b = union(one), union(two)
    assert cells(a) == cells(one) and total(a) == len(cells(one))
    assert cells(minus(a, b)) == cells(one) - cells(two)
    assert cells(within(a, 5, 20)) == cells(one) & set(range(5, 20))
    assert all(x[1] < y[0] for x, y in itertools.pairwise(a))


def test_steps_and_spread() -> None:
    one = {"clock_offset_s": 0.0, "steps": [{"start": 0, "end": 2}, {"start": 3, "end": 4}]}
    two = {"clock_offset_s": 1.0, "steps": [{"start": 0, "end": 2}, {"start": 2, "end": 4}]}
    assert step_seconds([one, two]) == [3, 2]
    assert spread([3.0, 1.0, 2.0]) == {"median": 2, "min": 1, "max": 3}


def test_traffic_sums_ranks_and_keeps_the_largest() -> None:
    def entry(axis: str, amount: int) -> dict[str, Any]:
        return {
            "axis": axis, "direction": "forward", "cause": "layers", "operation": "all_reduce",
            "calls": 2, "payload_bytes": amount, "wire_bytes": 2 * amount,
        }  # fmt: skip

    rows = traffic([
        {"traffic": [entry("tp", 10), entry("tp", 5), entry("cp", 1)]},
        {"traffic": [entry("tp", 7)]},
    ])  # fmt: skip
    assert [row["axis"] for row in rows] == ["cp", "tp"]
    assert rows[1]["calls"] == 6 and rows[1]["payload_bytes"] == 22
    assert rows[1]["wire_bytes"] == 44 and rows[1]["largest_rank_payload_bytes"] == 15
