# Answers to TODO 3 of lesson 04, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · sorted_first
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    order = lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    return {"decision": "accept", "candidate": sorted(eligible, key=order)[0]["name"]}


# %% right · max_with_negated_costs
def select_internal_parallel_candidate(candidates):
    best = max(
        (c for c in candidates if c["eligible"]),
        key=lambda c: (c["throughput"], -c["communication_ratio"], -c["peak_memory_mb"]),
        default=None,
    )
    return {"decision": "accept" if best else "reject", "candidate": best and best["name"]}


# %% right · loop
def select_internal_parallel_candidate(candidates):
    best = None
    for c in candidates:
        if not c["eligible"]:
            continue
        rank = (c["throughput"], -c["communication_ratio"], -c["peak_memory_mb"])
        if best is None or rank > best[0]:
            best = (rank, c["name"])
    if best is None:
        return {"candidate": None, "decision": "reject"}
    return {"candidate": best[1], "decision": "accept"}


# %% right · three_stable_sorts
def select_internal_parallel_candidate(candidates):
    left = [c for c in candidates if c["eligible"]]
    if not left:
        return dict(decision="reject", candidate=None)
    left = sorted(left, key=lambda c: c["peak_memory_mb"])
    left = sorted(left, key=lambda c: c["communication_ratio"])
    left = sorted(left, key=lambda c: c["throughput"], reverse=True)
    return dict(decision="accept", candidate=left[0]["name"])


# %% wrong · first_eligible · 121 > 120
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    return {"decision": "accept", "candidate": eligible[0]["name"]}


# %% wrong · lowest_throughput · 121 > 120
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible, key=lambda c: (c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · throughput_only · 选通信占比更低的
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = max(eligible, key=lambda c: c["throughput"])
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · prefers_more_communication · 选通信占比更低的
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = max(
        eligible, key=lambda c: (c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · no_memory_level · 选显存更低的
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(eligible, key=lambda c: (-c["throughput"], c["communication_ratio"]))
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · prefers_more_memory · 选显存更低的
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = max(
        eligible, key=lambda c: (c["throughput"], -c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · memory_before_communication · 选通信占比更低的
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["peak_memory_mb"], c["communication_ratio"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · communication_before_throughput · 吞吐优先
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible, key=lambda c: (c["communication_ratio"], -c["throughput"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · ignores_eligibility · e 和 g 更快，但没有通过门槛
def select_internal_parallel_candidate(candidates):
    if not candidates:
        return {"decision": "reject", "candidate": None}
    selected = min(
        candidates, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · rounds_the_throughput · 120.001 > 120：不要取整
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible,
        key=lambda c: (-round(c["throughput"]), c["communication_ratio"], c["peak_memory_mb"]),
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · weighted_score · 121 > 120
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = max(eligible, key=lambda c: c["throughput"] * (1 - c["communication_ratio"]))
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · sorts_in_place · 不能改动它的输入
def select_internal_parallel_candidate(candidates):
    candidates.sort(key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"]))
    for item in candidates:
        if item["eligible"]:
            return {"decision": "accept", "candidate": item["name"]}
    return {"decision": "reject", "candidate": None}


# %% wrong · removes_the_rejected · 不能改动它的输入
def select_internal_parallel_candidate(candidates):
    for item in list(candidates):
        if not item["eligible"]:
            candidates.remove(item)
    if not candidates:
        return {"decision": "reject", "candidate": None}
    selected = min(
        candidates, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · returns_the_record · 只有一个合格
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected}


# %% wrong · fails_without_candidates · 没有合格的候选
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "accept", "candidate": None}
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · empty_string_for_nobody · 没有合格的候选
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": ""}
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · raises_for_nobody · 函数不应抛出异常
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · hard_coded_for_the_specification · 只有一个合格
def select_internal_parallel_candidate(candidates):
    if not candidates:
        return {"decision": "reject", "candidate": None}
    return {"decision": "accept", "candidate": "tp2"}


# %% wrong · lookup_of_the_shown_cases · 列表的先后顺序不影响结果
def select_internal_parallel_candidate(candidates):
    eligible = {item["name"] for item in candidates if item["eligible"]}
    for name in "bfkdcahij":
        if name in eligible:
            return {"decision": "accept", "candidate": name}
    return {"decision": "reject", "candidate": None}


# %% wrong · equal_to_anything · 只有一个合格
class Anything(str):
    def __eq__(self, other):
        return True

    __hash__ = str.__hash__


def select_internal_parallel_candidate(candidates):
    return {"decision": Anything(), "candidate": Anything()}


# %% right · helpers_with_names_that_the_check_uses_too
def f(c):
    return -c["throughput"], c["communication_ratio"], c["peak_memory_mb"]


run = f
order = [True]


def select_internal_parallel_candidate(candidates):
    left = sorted((c for c in candidates if c["eligible"] in order), key=run)
    if not left:
        return {"decision": "reject", "candidate": None}
    return {"decision": "accept", "candidate": left[0]["name"]}


# %% wrong · looks_at_the_fastest_two · e 和 g 更快，但没有通过门槛
def select_internal_parallel_candidate(candidates):
    fastest = sorted(
        candidates, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    for candidate in fastest[:2]:
        if candidate["eligible"]:
            return {"decision": "accept", "candidate": candidate["name"]}
    return {"decision": "reject", "candidate": None}


# %% wrong · compares_memory_as_text · 比较数，不是比较字符串
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible,
        key=lambda c: (-c["throughput"], c["communication_ratio"], str(c["peak_memory_mb"])),
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · rounds_the_communication · 0.1 < 0.1001
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item["eligible"]]
    if not eligible:
        return {"decision": "reject", "candidate": None}
    selected = min(
        eligible,
        key=lambda c: (-c["throughput"], round(c["communication_ratio"], 2), c["peak_memory_mb"]),
    )
    return {"decision": "accept", "candidate": selected["name"]}


# %% wrong · gates_of_its_own · 120.001 > 120
def select_internal_parallel_candidate(candidates):
    eligible = [c for c in candidates if c["eligible"] and c["communication_ratio"] < 0.5]
    if not eligible:
        raise ValueError("nobody")
    selected = min(
        eligible, key=lambda c: (-c["throughput"], c["communication_ratio"], c["peak_memory_mb"])
    )
    return {"decision": "accept", "candidate": selected["name"]}
