# Answers to TODO 1 of lesson 05, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · sets_of_cut_points
def split_rank_step(events, step):
    start, end = step
    cuts = {start, end}
    spans = []
    for event in events:
        if event["kind"] == "compute":
            spans.append(("compute", event["start"], event["end"]))
            continue
        begin = max(event["start"], event.get("peer_start", event["start"]))
        for a, b in event["blocked"]:
            if event["kind"] == "p2p" and a < begin:
                spans.append(("waiting", a, min(b, begin)))
            if event["kind"] != "p2p" or b > begin:
                spans.append(("exposed", a if event["kind"] != "p2p" else max(a, begin), b))
    for _, a, b in spans:
        cuts |= {min(max(x, start), end) for x in (a, b)}
    row = []
    points = sorted(cuts)
    for a, b in zip(points, points[1:]):
        here = {kind for kind, x, y in spans if x <= a and b <= y and x < y}
        label = next((k for k in ("exposed", "waiting", "compute") if k in here), "other")
        row.append([label, a, b])
    works = [i for i, (label, _, _) in enumerate(row) if label in ("exposed", "compute")]
    result = {"compute": [], "exposed": [], "idle": [], "other": []}
    for i, (label, a, b) in enumerate(row):
        edge = not works or i < works[0] or i > works[-1]
        result["idle" if label == "waiting" or edge else label].append((a, b))
    return result


# %% right · lists_and_other_order
def split_rank_step(events, step):
    inside = lambda parts: within(union(parts), *step)
    flowing = [b for e in events if e["kind"] in ("collective", "ring") for b in e["blocked"]]
    waiting = []
    for e in [e for e in events if e["kind"] == "p2p"]:
        begin = e["peer_start"] if e["peer_start"] > e["start"] else e["start"]
        flowing += [[max(a, begin), b] for a, b in e["blocked"] if b > begin]
        waiting += [[a, min(b, begin)] for a, b in e["blocked"] if a < begin]
    exposed = inside(flowing)
    waiting = minus(inside(waiting), exposed)
    chunks = inside([(e["start"], e["end"]) for e in events if e["kind"] == "compute"])
    compute = minus(minus(chunks, exposed), waiting)
    work = union([*exposed, *compute])
    left = minus([tuple(step)], union([*work, *waiting]))
    if not work:
        return {"compute": [], "exposed": [], "idle": [list(step)], "other": []}
    other = within(left, work[0][0], work[-1][1])
    return {
        "other": [list(x) for x in other],
        "idle": [list(x) for x in union([*waiting, *minus(left, other)])],
        "exposed": [list(x) for x in exposed],
        "compute": [list(x) for x in compute],
    }


# %% right · floats_and_pieces
def split_rank_step(events, step):
    start, end = map(float, step)
    points = {start, end}
    for e in events:
        points |= {e["start"], e["end"], e.get("peer_start", start)}
        points |= {x for span in e.get("blocked", []) for x in span}
    points = sorted(x for x in points if start <= x <= end)
    label = {}
    for a, b in zip(points, points[1:]):
        label[a, b] = "other"
        found = set()
        for e in events:
            if e["kind"] == "compute" and e["start"] <= a and b <= e["end"]:
                found.add("compute")
            elif any(x <= a and b <= y for x, y in e.get("blocked", [])):
                late = e["kind"] == "p2p" and a < max(e["start"], e["peer_start"])
                found.add("idle" if late else "exposed")
        for name in ("compute", "idle", "exposed"):
            if name in found:
                label[a, b] = name
    busy = [cell for cell in label if label[cell] in ("compute", "exposed")]
    result = {name: [] for name in ("compute", "exposed", "idle", "other")}
    for cell, name in label.items():
        if not busy or cell[1] <= busy[0][0] or cell[0] >= busy[-1][1]:
            name = "idle"
        result[name].append(cell)
    return result


# %% wrong · all_compute · 夹在工作之间
def split_rank_step(events, step):
    return {"compute": [step], "exposed": [], "idle": [], "other": []}


# %% wrong · other_is_idle · 夹在工作之间
def split_rank_step(events, step):
    start, end = step
    busy = union([(e["start"], e["end"]) for e in events if e["kind"] == "compute"])
    flow, wait = [], []
    for e in events:
        if e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        elif e["kind"] != "compute":
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    compute = minus(minus(within(busy, start, end), exposed), union(wait))
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": minus([step], union(compute + exposed)),
        "other": [],
    }


# %% wrong · edges_are_other · 第一份工作之前
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    idle = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + idle))
    other = minus([step], union(compute + exposed + idle))
    return {"compute": compute, "exposed": exposed, "idle": idle, "other": other}


# %% wrong · in_flight_is_exposed · 只有 blocked 的 4 到 6 是暴露
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        elif e["end"] > e["start"]:
            flow.append((e["start"], e["end"]))
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · overlapped_is_not_subtracted · 它不再算计算
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    compute = within(union(busy), start, end)
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*within(union(wait), start, end), (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · exposed_only_outside_compute · 只有 blocked 的 4 到 6 是暴露
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    compute = within(union(busy), start, end)
    exposed = minus(within(union(flow), start, end), compute)
    waited = minus(within(union(wait), start, end), union(compute + exposed))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · no_union_of_chunks · 互不重叠
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(busy, start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · begins_at_the_own_post · 传输在 max(2, 6) = 6 开始
def split_rank_step(events, step):
    start, end = step
    busy, flow = [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    compute = minus(within(union(busy), start, end), exposed)
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([(start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · p2p_is_all_idle · 传输在 max(2, 6) = 6 开始
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        else:
            (wait if e["kind"] == "p2p" else flow).extend(e["blocked"])
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · earlier_of_the_posts · 传输在 max(2, 6) = 6 开始
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = min(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · peer_s_post_only · 整步都是空转
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            wait += within(e["blocked"], start, e["peer_start"])
            flow += within(e["blocked"], e["peer_start"], end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (start, start)
    idle = minus(union([*waited, (start, first)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": union(idle + [(last, end)]) if work else idle,
        "other": minus([step], union(work + idle + ([(last, end)] if work else []))),
    }


# %% wrong · waiting_inside_a_chunk_is_compute · 计算块里等对方的时间是空转
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    compute = minus(within(union(busy), start, end), exposed)
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*within(union(wait), start, end), (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · waiting_before_exposed · 又在等、又有别的通信暴露
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    waited = within(union(wait), start, end)
    exposed = minus(within(union(flow), start, end), waited)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · work_is_compute_only · 暴露的通信也是工作
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    first, last = (compute[0][0], compute[-1][1]) if compute else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), exposed)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(compute + exposed + idle)),
    }


# %% wrong · not_cut_to_the_step · 只看 0 到 10 之间
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += [(a, min(b, begin)) for a, b in e["blocked"]]
            flow += [(max(a, begin), b) for a, b in e["blocked"]]
        else:
            flow += e["blocked"]
    exposed = union(flow)
    waited = minus(union(wait), exposed)
    compute = minus(union(busy), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · no_work_breaks_it · IndexError
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        else:
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    idle = minus(union([*waited, (start, work[0][0]), (work[-1][1], end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · ring_forgotten · ring 和 collective 一样
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"], start, begin)
            flow += within(e["blocked"], begin, end)
        elif e["kind"] == "collective":
            flow += e["blocked"]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · first_blocked_only · blocked 可以有好几段
def split_rank_step(events, step):
    start, end = step
    busy, flow, wait = [], [], []
    for e in events:
        if e["kind"] == "compute":
            busy.append((e["start"], e["end"]))
        elif e["kind"] == "p2p":
            begin = max(e["start"], e["peer_start"])
            wait += within(e["blocked"][:1], start, begin)
            flow += within(e["blocked"][:1], begin, end)
        else:
            flow += e["blocked"][:1]
    exposed = within(union(flow), start, end)
    waited = minus(within(union(wait), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    return {
        "compute": compute,
        "exposed": exposed,
        "idle": idle,
        "other": minus([step], union(work + idle)),
    }


# %% wrong · lengths_instead_of_intervals · 互不重叠
def split_rank_step(events, step):
    return {"compute": step[1] - step[0], "exposed": 0, "idle": 0, "other": 0}


# %% wrong · changes_the_events · 不能改动它的输入
def split_rank_step(events, step):
    events.sort(key=lambda e: e["start"])
    for e in events:
        e["blocked"] = []
    return {"compute": [step], "exposed": [], "idle": [], "other": []}


# %% wrong · returns_a_tuple · 应返回 dict
def split_rank_step(events, step):
    return [step], [], [], []
