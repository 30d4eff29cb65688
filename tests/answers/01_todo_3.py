# Answers to TODO 3 of lesson 01, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.


# %% right · round_and_round
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% right · recursion
def simulate(orders, times, transfer=0):
    place = {op: (r, i) for r, order in enumerate(orders) for i, op in enumerate(order)}
    known, open_ = {}, set()

    def end(op):
        """When op ends; None where it never runs."""
        if op not in place or op in open_:
            return None
        if op not in known:
            open_.add(op)
            known[op] = work_out(op)
            open_.discard(op)
        return known[op]

    def work_out(op):
        kind, stage, number = op
        rank, index = place[op]
        waits = [(orders[rank][index - 1], 0)] if index else []
        if kind == "B":
            waits.append((("F", stage, number), 0))
        neighbour = {"F": stage - 1, "B": stage + 1}.get(kind, -1)
        if 0 <= neighbour < len(times["F"]):
            source = (kind, neighbour, number)
            far = source in place and place[source][0] != rank
            waits.append((source, transfer if far else 0))
        moments = [0.0]
        for source, delay in waits:
            moment = end(source)
            if moment is None:
                return None
            moments.append(moment + delay)
        return max(moments) + times[kind][stage]

    for order in orders:
        for op in order:
            end(op)
    stuck = [next((op for op in order if known[op] is None), None) for order in orders]
    if any(stuck):
        return {"stuck": stuck}
    spans = [[(known[op] - times[op[0]][op[1]], known[op]) for op in order] for order in orders]
    total = max(known.values())
    idle = [total - sum(b - a for a, b in row) for row in spans]
    flights = []
    for order in orders:
        now = most = 0
        for kind, *_ in order:
            now += (kind == "F") - (kind == "B")
            most = max(most, now)
        flights.append(most)
    return dict(
        spans=spans,
        makespan=total,
        rank_bubbles=[x / total for x in idle],
        bubble=sum(idle) / total / len(orders),
        in_flight=flights,
    )


# %% right · events_in_order_of_time
import heapq


def simulate(orders, times, transfer=0):
    stages = len(times["F"])
    arrived, spans, events = {}, [[] for _ in orders], []
    free = [True] * len(orders)

    def inputs(op):
        kind, s, j = op
        if kind == "F":
            return [("F", s - 1, j)] if s else []
        if kind == "B":
            return [("F", s, j)] + ([("B", s + 1, j)] if s + 1 < stages else [])
        return []

    def try_to_start(rank, now):
        if free[rank] and len(spans[rank]) < len(orders[rank]):
            op = orders[rank][len(spans[rank])]
            if all(arrived.get((x, rank), float("inf")) <= now for x in inputs(op)):
                stop = now + times[op[0]][op[1]]
                spans[rank].append((now, stop))
                free[rank] = False
                heapq.heappush(events, (stop, 0, rank, op))

    for rank in range(len(orders)):
        try_to_start(rank, 0)
    now = 0
    while events:
        now, what, rank, op = heapq.heappop(events)
        if what == 0:
            free[rank] = True
            for other in range(len(orders)):
                delay = 0 if other == rank else transfer
                heapq.heappush(events, (now + delay, 1, other, op))
        else:
            arrived[op, rank] = now
        try_to_start(rank, now)
    if any(len(row) < len(order) for row, order in zip(spans, orders)):
        waiting = [order[len(row)] if len(row) < len(order) else None
                   for row, order in zip(spans, orders)]
        return {"stuck": waiting}
    makespan = max(b for row in spans for _, b in row)
    shares = [sum(b - a for a, b in row) / makespan for row in spans]
    peaks = []
    for order in orders:
        flying, most = set(), 0
        for kind, s, j in order:
            if kind == "F":
                flying.add((s, j))
            if kind == "B":
                flying.discard((s, j))
            most = max(most, len(flying))
        peaks.append(most)
    return {"in_flight": peaks, "bubble": 1 - sum(shares) / len(shares), "makespan": makespan,
            "rank_bubbles": [1 - share for share in shares], "spans": spans}


# %% wrong · formula_for_equal_stages · 一个 rank 的气泡占比
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    m = len({op[2] for op in home})
    p = len(orders)
    formula = (p - 1) / (m + p - 1)
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [formula] * p,
        "bubble": formula,
        "in_flight": in_flight,
    }


# %% wrong · compared_with_the_ideal_time · 一个 rank 的气泡占比
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [makespan / b - 1 for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · idle_time_instead_of_its_share · 一个 rank 的气泡占比
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [makespan - b for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · only_gaps_between_steps · 一个 rank 的气泡占比
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / (r[-1][1] - r[0][0]) for b, r in zip(busy, spans)],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · the_worst_rank_as_a_whole · 总的气泡占比
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": max(1 - b / makespan for b in busy),
        "in_flight": in_flight,
    }


# %% wrong · transfer_forgotten · 还要再等传输
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need])
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · transfer_on_the_same_rank_too · 同一个 rank 上不用传
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer)
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · transfer_occupies_the_sender · 传输不占用任何 rank
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] + transfer if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · transfer_makes_the_step_longer · 一步的用时是
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s] + transfer
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · transfer_paid_twice · 等的东西一到齐就开始
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + 2 * transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · own_forward_forgotten · 死锁时返回
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · backward_runs_downwards · 反向等下一个阶段的反向
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s > 0:
                    needs.append(("B", s - 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · next_backward_not_waited_for · 反向等下一个阶段的反向
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · forwards_do_not_wait · 前向等上一个阶段的前向
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · a_rank_does_everything_at_once · 上一步结束才能开始
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · times_of_stage_0 · 一步的用时是
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][0]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · backward_is_twice_the_forward · 一步的用时是
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times["F"][s] * (2 if kind == "B" else 1)
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · whole_units_only · 等的东西一到齐就开始
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                start = -int(-start // 1)
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · last_step_of_rank_0 · makespan 是最后一步结束的时刻
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = spans[0][0][1]
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · deadlock_loops_for_ever · 每次调用都要在 3 秒内结束
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while len(ends) < len(home):
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · deadlock_raises · 函数不应抛出异常
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        raise RuntimeError("deadlock")
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · deadlock_gives_none · 死锁时返回
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        return None
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · finished_ranks_left_out · 死锁时返回
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] for steps in left if steps]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · all_that_is_left · 死锁时返回
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": left}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · deadlock_goes_unnoticed · 函数不应抛出异常
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · every_microbatch_in_flight · 在途
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(change.count(1))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · in_flight_of_1f1b_always · 在途
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(min(change.count(1), len(orders) - len(in_flight)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · in_flight_at_the_end · 在途
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(sum(change))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · starts_only · 每一步一对 (开始, 结束)
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": [[start for start, _ in row] for row in spans],
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · one_key_missing · 恰好有这 5 个键
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
    }


# %% wrong · uses_up_the_orders · 函数不能改动它的输入
def simulate(orders, times, transfer=0):
    last = len(times["F"]) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while len(spans[rank]) < len(order):
                op = kind, s, j = order[len(spans[rank])]
                needs = [("F", s, j)] if kind == "B" else []
                if kind == "F" and s > 0:
                    needs.append(("F", s - 1, j))
                if kind == "B" and s < last:
                    needs.append(("B", s + 1, j))
                if any(need not in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + transfer * (home[need] != rank))
                ends[op] = start + times[kind][s]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < len(home):
        left = [order[len(row) :] for order, row in zip(orders, spans)]
        return {"stuck": [steps[0] if steps else None for steps in left]}
    makespan = max(ends.values())
    busy = [sum(times[kind][s] for kind, s, _ in order) for order in orders]
    in_flight = []
    for order in orders:
        change = [{"F": 1, "B": -1}.get(op[0], 0) for op in order]
        in_flight.append(max(sum(change[:n]) for n in range(len(order) + 1)))
    for order in orders:
        order.clear()
    return {
        "spans": spans,
        "makespan": makespan,
        "rank_bubbles": [1 - b / makespan for b in busy],
        "bubble": 1 - sum(busy) / (makespan * len(orders)),
        "in_flight": in_flight,
    }


# %% wrong · a_constant · 每个 rank 一个列表
def simulate(orders, times, transfer=0):
    return {"spans": [], "makespan": 33, "rank_bubbles": [0.2], "bubble": 0.2, "in_flight": [4]}
