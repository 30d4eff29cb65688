"""What the checks of lesson 01 compare with: none of it computes what a TODO asks for.

A split is compared with every other split of a small case, an order with what must be true of it,
simulated times with each other.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, combinations
from typing import Any

from parlab.lesson.pipeline_charts import Op, Orders, word_of

Times = Mapping[str, Sequence[float]]
# The rule that is broken, what was expected and what came instead.
Fault = tuple[str, str, str]


# ------------------------------------------------------------------------------------------ splits
def stage_costs(costs: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """The cost of each stage when the first ``sizes[0]`` layers are stage 0, and so on."""
    ends = list(accumulate(sizes))
    return [sum(costs[end - size : end]) for end, size in zip(ends, sizes, strict=True)]


def small_splits(seed: int = 0) -> Iterator[tuple[list[int], int, list[int]]]:
    """Costs, stages and the best split, found by looking at every split there is."""
    dice = random.Random(seed)
    for count in (2, 4, 6, 7, 8):
        for stages in range(1, count + 1):
            top = dice.choice([1, 2, 4, 9])
            costs = [dice.randint(0, top) for _ in range(count)]
            yield costs, stages, _best_of_all(costs, stages)


def _best_of_all(costs: Sequence[int], stages: int) -> list[int]:
    found = []
    for cuts in combinations(range(1, len(costs)), stages - 1):
        edges = [0, *cuts, len(costs)]
        sizes = [end - start for start, end in zip(edges, edges[1:], strict=False)]
        parts = stage_costs(costs, sizes)
        found.append((max(parts), sum(part * part for part in parts), sizes))
    return min(found)[2]


def even_splits(seed: int = 0) -> Iterator[tuple[list[int], int, list[int]]]:
    """Larger ones: stages of equal cost were put together, so no other split is as good."""
    dice = random.Random(seed)
    for stages in (5, 12, 16):
        sizes = [dice.randint(1, 8) for _ in range(stages)]
        costs: list[int] = []
        for size in sizes:
            cuts = sorted(dice.sample(range(1, 100), size - 1))
            costs += [end - start for start, end in zip([0, *cuts], [*cuts, 100], strict=True)]
        yield costs, stages, sizes


def split_fault(
    costs: Sequence[int], stages: int, got: object, best: Sequence[int]
) -> Fault | None:
    """Which rule a split breaks, ``best`` being the right one.

    The rules: ``sizes`` (not that many positive sizes which use up the layers), ``slowest``,
    ``squares``, ``first``.
    """
    wanted = f"{stages} × (int > 0), Σ = {len(costs)}"
    if type(got) is not list or not all(type(size) is int and size > 0 for size in got):
        return "sizes", wanted, repr(got)
    if len(got) != stages or sum(got) != len(costs):
        return "sizes", wanted, repr(got)
    if got == list(best):
        return None
    here, there = stage_costs(costs, best), stage_costs(costs, got)
    if max(there) > max(here):
        return "slowest", f"{list(best)}, max {max(here)}", f"{got}, max {max(there)}"
    squares = [sum(cost * cost for cost in parts) for parts in (here, there)]
    if squares[1] > squares[0]:
        return "squares", f"{list(best)}, Σ² = {squares[0]}", f"{got}, Σ² = {squares[1]}"
    return "first", repr(list(best)), repr(got)


# ------------------------------------------------------------------------------------------ orders
def order_fault(got: object, rank: int, stages: int, microbatches: int) -> Fault | None:
    """Which rule of 1F1B a rank's order breaks; together they leave one order.

    The rules: ``form``, ``own`` (stage), ``once``, ``sequence``, ``before`` (a backward before its
    forward), ``warm_up``, ``alternate``.
    """
    if not isinstance(got, list) or not all(_is_op(op) for op in got):
        return "form", f"[('F', {rank}, 0), …]", repr(got)
    shown = " ".join(map(word_of, got))
    foreign = [op for op in got if op[1] != rank]
    if foreign:
        return "own", f"({foreign[0][0]!r}, {rank}, {foreign[0][2]})", repr(foreign[0])
    numbers = {kind: [op[2] for op in got if op[0] == kind] for kind in "FB"}
    for kind, found in numbers.items():
        if sorted(found) != list(range(microbatches)):
            wanted = f"{kind}: 0 … {microbatches - 1}"
            return "once", wanted, f"{kind}: {', '.join(map(str, found)) or '–'}"
    for kind, found in numbers.items():
        if found != sorted(found):
            return "sequence", " ".join(f"{kind}{n}" for n in range(microbatches)), shown
    kinds = "".join(op[0] for op in got)
    for place, op in enumerate(got):
        if op[0] == "B" and kinds[:place].count("F") <= op[2]:
            return "before", f"F{op[2]} … B{op[2]}", shown
    warm_up = [f"F{number}" for number in range(microbatches)][: stages - rank]
    first = len(warm_up)
    if kinds.index("B") != first:
        return "warm_up", " ".join([*warm_up, "B0", "…"]), shown
    rest = kinds[first:]
    pairs = microbatches - first
    for place, kind in enumerate(rest[: 2 * pairs]):
        if kind != "BF"[place % 2]:
            return "alternate", f"B0 F{first} B1 F{first + 1} …", shown
    return None


def _is_op(op: object) -> bool:
    return (
        isinstance(op, tuple)
        and len(op) == 3
        and op[0] in ("F", "B")
        and all(type(number) is int for number in op[1:])
    )


# -------------------------------------------------------------------------------------- simulation
def loose_orders(seed: int = 0) -> Iterator[tuple[Orders, dict[str, list[float]], float]]:
    """Orders that do not deadlock, with uneven times and a transfer; some ranks hold two stages.

    A microbatch's chunks are one chain: forward through the stages, then back. Each chain gets
    rising random numbers, and every rank works by them.
    """
    dice = random.Random(seed)
    for ranks in (1, 2, 3, 4):
        for held in (1, 2):
            stages, microbatches = ranks * held, dice.randint(1, 5)
            numbered: list[tuple[float, Op]] = []
            for number in range(microbatches):
                chain = [("F", stage, number) for stage in range(stages)]
                chain += [("B", stage, number) for stage in reversed(range(stages))]
                rising = sorted(dice.random() for _ in chain)
                numbered += zip(rising, chain, strict=True)
            orders: Orders = [[] for _ in range(ranks)]
            for _, op in sorted(numbered):
                orders[op[1] % ranks].append(op)
            times = {kind: [dice.randint(1, 9) / 2 for _ in range(stages)] for kind in "FB"}
            yield orders, times, dice.choice([0, 0.5, 2])


def simulation_fault(orders: Orders, times: Times, transfer: float, got: object) -> Fault | None:
    """What in a simulation contradicts the orders, the times or itself.

    Only what was simulated is looked at: whether each chunk begins when the last thing that it
    waited for was there, and whether the sums agree. The rules: ``keys``, ``spans``, ``duration``,
    ``own_rank``, ``own_forward``, ``input``, ``transfer``, ``late``, ``makespan``,
    ``rank_bubbles``, ``bubble``, ``in_flight``.
    """
    names = ("spans", "makespan", "rank_bubbles", "bubble", "in_flight")
    if not isinstance(got, dict) or sorted(map(str, got)) != sorted(names):
        found = ", ".join(map(str, got)) if isinstance(got, dict) else repr(got)
        return "keys", ", ".join(names), found
    if not _fits(orders, got["spans"]):
        lengths = ", ".join(str(len(order)) for order in orders)
        return "spans", f"[(start, end), …] × {lengths}", repr(got["spans"])
    return _times_fault(orders, times, transfer, got["spans"]) or _sums_fault(orders, times, got)


def _fits(orders: Orders, spans: Any) -> bool:
    if not isinstance(spans, list) or len(spans) != len(orders):
        return False
    for order, row in zip(orders, spans, strict=True):
        if not isinstance(row, list) or len(row) != len(order):
            return False
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in row):
            return False
        if not all(_is_number(value) for pair in row for value in pair):
            return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _close(one: float, other: float) -> bool:
    return abs(one - other) < 1e-9


def _times_fault(orders: Orders, times: Times, transfer: float, spans: Any) -> Fault | None:
    """The earliest chunk that begins too soon or too late, or lasts too short or long."""
    when = {
        op: (*spans[rank][place], rank, spans[rank][place - 1][1] if place else 0)
        for rank, order in enumerate(orders)
        for place, op in enumerate(order)
    }
    last = len(times["F"]) - 1
    for op, (start, end, rank, free) in sorted(when.items(), key=lambda item: item[1][0]):
        name = f"rank {rank}, {word_of(op)}"
        lasts = times[op[0]][op[1]]
        if not _close(end - start, lasts):
            return "duration", f"{name}: {lasts:g}", f"{name}: {end - start:g}"
        waits: list[tuple[float, str]] = [(free, "own_rank")]
        if op[0] == "B":
            waits.append((when["F", op[1], op[2]][1], "own_forward"))
        source = op[1] + {"F": -1, "B": 1}.get(op[0], last + 1)
        if 0 <= source <= last:
            before = when[op[0], source, op[2]]
            waits.append((before[1], "input"))
            waits.append((before[1] + (transfer if before[2] != rank else 0), "transfer"))
        allowed = max(time for time, _ in waits)
        if start < allowed - 1e-9:
            broken = next(rule for time, rule in waits if start < time - 1e-9)
            return (
                broken,
                f"{name}: ≥ {max(t for t, r in waits if r == broken):g}",
                f"{name}: {start:g}",
            )
        if start > allowed + 1e-9:
            return "late", f"{name}: {allowed:g}", f"{name}: {start:g}"
    return None


def _sums_fault(orders: Orders, times: Times, got: Mapping[str, Any]) -> Fault | None:
    """Whether what was counted agrees with the times."""
    spans, ranks = got["spans"], len(orders)
    latest = max(end for row in spans for _, end in row)
    if not _is_number(got["makespan"]) or not _close(got["makespan"], latest):
        return "makespan", f"{latest:g}", repr(got["makespan"])
    shares = got["rank_bubbles"]
    if not _list_of(shares, ranks):
        return "rank_bubbles", f"[…] × {ranks}", repr(shares)
    for rank, (order, share) in enumerate(zip(orders, shares, strict=True)):
        busy = sum(times[op[0]][op[1]] for op in order)
        if not _close(busy + share * latest, latest):
            wanted = f"rank {rank}: 1 − {busy:g} / {latest:g}"
            return "rank_bubbles", wanted, f"rank {rank}: {share:g}"
    if not _is_number(got["bubble"]) or not _close(got["bubble"] * ranks, sum(shares)):
        return "bubble", f"{sum(shares) / ranks:g}", repr(got["bubble"])
    peaks = got["in_flight"]
    if not _list_of(peaks, ranks):
        return "in_flight", f"[…] × {ranks}", repr(peaks)
    for rank, (order, row) in enumerate(zip(orders, spans, strict=True)):
        begun = [start for op, (start, _) in zip(order, row, strict=True) if op[0] == "F"]
        ended = [end for op, (_, end) in zip(order, row, strict=True) if op[0] == "B"]
        most = max(
            (sum(t <= now for t in begun) - sum(t <= now for t in ended) for now in begun),
            default=0,
        )
        if peaks[rank] != most:
            return "in_flight", f"rank {rank}: {most}", f"rank {rank}: {peaks[rank]}"
    return None


def _list_of(values: object, count: int) -> bool:
    return isinstance(values, list) and len(values) == count and all(map(_is_number, values))
