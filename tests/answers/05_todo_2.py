# Answers to TODO 2 of lesson 05, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · idle_is_what_is_left
def step_ratios(ranks):
    begin = min(r["start"] + r["clock_offset"] for r in ranks)
    length = max(r["end"] + r["clock_offset"] for r in ranks) - begin
    busy = sum(r["compute"] + r["exposed"] + r["other"] for r in ranks)
    whole = len(ranks) * length
    return {
        "step": length,
        "bubble_ratio": (whole - busy) / whole,
        "communication_ratio": sum(r["exposed"] for r in ranks) / whole,
    }


# %% right · mean_of_shares
def step_ratios(ranks):
    from statistics import mean

    shifted = [
        dict(r, start=r["start"] + r["clock_offset"], end=r["end"] + r["clock_offset"])
        for r in ranks
    ]
    first = sorted(r["start"] for r in shifted)[0]
    last = sorted(r["end"] for r in shifted)[-1]
    step = last - first
    idle = [(r["idle"] + r["start"] - first + last - r["end"]) / step for r in shifted]
    return dict(
        communication_ratio=mean(r["exposed"] / step for r in shifted),
        bubble_ratio=mean(idle),
        step=step,
    )


# %% right · loop
def step_ratios(ranks):
    first = last = None
    for r in ranks:
        a, b = r["clock_offset"] + r["start"], r["clock_offset"] + r["end"]
        first = a if first is None or a < first else first
        last = b if last is None or b > last else last
    idle = exposed = 0.0
    for r in ranks:
        own = r["end"] - r["start"]
        idle += (last - first) - own + r["idle"]
        exposed += r["exposed"]
    n = float(len(ranks) * (last - first))
    return {
        "step": float(last - first),
        "bubble_ratio": idle / n,
        "communication_ratio": exposed / n,
    }


# %% wrong · a_constant · 一个 rank
def step_ratios(ranks):
    return {"step": 100, "bubble_ratio": 0.2, "communication_ratio": 0.1}


# %% wrong · summed_over_ranks · 不是相加，也不是取最大
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    last = max(r["end"] + r["clock_offset"] for r in ranks)
    n = last - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n,
        "communication_ratio": sum(r["exposed"] for r in ranks) / n,
    }


# %% wrong · the_worst_rank · 不是相加，也不是取最大
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    last = max(r["end"] + r["clock_offset"] for r in ranks)
    n = last - first
    idle = max(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n,
        "communication_ratio": max(r["exposed"] for r in ranks) / n,
    }


# %% wrong · own_idle_only · 晚开始 20
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    last = max(r["end"] + r["clock_offset"] for r in ranks)
    n = (last - first) * len(ranks)
    return {
        "step": last - first,
        "bubble_ratio": sum(r["idle"] for r in ranks) / n,
        "communication_ratio": sum(r["exposed"] for r in ranks) / n,
    }


# %% wrong · late_start_only · 早结束 40
def step_ratios(ranks):
    starts = [r["start"] + r["clock_offset"] for r in ranks]
    ends = [r["end"] + r["clock_offset"] for r in ranks]
    n = (max(ends) - min(starts)) * len(ranks)
    idle = sum(r["idle"] + s - min(starts) for r, s in zip(ranks, starts))
    return {
        "step": max(ends) - min(starts),
        "bubble_ratio": idle / n,
        "communication_ratio": sum(r["exposed"] for r in ranks) / n,
    }


# %% wrong · early_end_only · 晚开始 20
def step_ratios(ranks):
    starts = [r["start"] + r["clock_offset"] for r in ranks]
    ends = [r["end"] + r["clock_offset"] for r in ranks]
    n = (max(ends) - min(starts)) * len(ranks)
    idle = sum(r["idle"] + max(ends) - e for r, e in zip(ranks, ends))
    return {
        "step": max(ends) - min(starts),
        "bubble_ratio": idle / n,
        "communication_ratio": sum(r["exposed"] for r in ranks) / n,
    }


# %% wrong · without_the_offset · 先加上 clock_offset
def step_ratios(ranks):
    n = max(r["end"] for r in ranks) - min(r["start"] for r in ranks)
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · the_offset_subtracted · 先加上 clock_offset
def step_ratios(ranks):
    first = min(r["start"] - r["clock_offset"] for r in ranks)
    n = max(r["end"] - r["clock_offset"] for r in ranks) - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · own_window_as_denominator · 晚开始 20
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    last = max(r["end"] + r["clock_offset"] for r in ranks)
    own = [r["end"] - r["start"] for r in ranks]
    return {
        "step": last - first,
        "bubble_ratio": sum(r["idle"] / n for r, n in zip(ranks, own)) / len(ranks),
        "communication_ratio": sum(r["exposed"] / n for r, n in zip(ranks, own)) / len(ranks),
    }


# %% wrong · the_longest_rank_is_the_step · 最先开始和最后结束的可以是不同的 rank
def step_ratios(ranks):
    longest = max(ranks, key=lambda r: r["end"] - r["start"])
    first, last = (
        longest["start"] + longest["clock_offset"],
        longest["end"] + longest["clock_offset"],
    )
    n = last - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · rank_0_is_the_step · 最先开始和最后结束的可以是不同的 rank
def step_ratios(ranks):
    n = ranks[0]["end"] - ranks[0]["start"]
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · share_of_ideal_time · 一个 rank
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    n = max(r["end"] + r["clock_offset"] for r in ranks) - first
    busy = sum(r["compute"] + r["exposed"] + r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": (n * len(ranks) - busy) / busy,
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · other_counts_as_idle · 一个 rank
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    n = max(r["end"] + r["clock_offset"] for r in ranks) - first
    idle = sum(n - r["compute"] - r["exposed"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · rounded · 占总时间的比例
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    n = max(r["end"] + r["clock_offset"] for r in ranks) - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": round(idle / n / len(ranks), 3),
        "communication_ratio": round(sum(r["exposed"] for r in ranks) / n / len(ranks), 3),
    }


# %% wrong · in_percent · 一个 rank
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    n = max(r["end"] + r["clock_offset"] for r in ranks) - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": 100 * idle / n / len(ranks),
        "communication_ratio": 100 * sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · the_step_as_a_pair · 应是
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    last = max(r["end"] + r["clock_offset"] for r in ranks)
    n = last - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": (first, last),
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · without_the_step · 缺少的键：'step'
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    n = max(r["end"] + r["clock_offset"] for r in ranks) - first
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · moves_the_clocks_of_the_input · 不能改动它的输入
def step_ratios(ranks):
    for r in ranks:
        r["start"] += r["clock_offset"] + 1
        r["end"] += r["clock_offset"] + 1
    n = max(r["end"] for r in ranks) - min(r["start"] for r in ranks)
    idle = sum(n - r["compute"] - r["exposed"] - r["other"] for r in ranks)
    return {
        "step": n,
        "bubble_ratio": idle / n / len(ranks),
        "communication_ratio": sum(r["exposed"] for r in ranks) / n / len(ranks),
    }


# %% wrong · returns_nothing · 是不是忘了 return
def step_ratios(ranks):
    first = min(r["start"] + r["clock_offset"] for r in ranks)
    print(max(r["end"] + r["clock_offset"] for r in ranks) - first)
