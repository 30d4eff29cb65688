# Answers to TODO 3 of lesson 05, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · table_of_levels
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    failure = record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed["median"] if speed else None,
        "peak_memory_mb": memory["max"] if memory else None,
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    levels = {None: "analytic", "cpu": "cpu_gloo"}
    several = machine["nodes"] is not None and machine["nodes"] > 1
    level = levels.get(machine["device"], "gpu_multi_node" if several else "gpu_single_node")
    crowded = False
    if machine["device"] == "cpu":
        crowded = machine["cores"] * machine["nodes"] < work["world_size"]
    if baseline and not baseline["failure"] and speed:
        same = baseline["workload"]["fingerprint"] == work["fingerprint"]
        if same and baseline["evidence_level"] == level:
            perfect = baseline["metrics"]["throughput"]["median"] * work["world_size"]
            metrics["scaling_efficiency"] = speed["median"] / perfect
    for name in [name for name in metrics if metrics[name] is None]:
        if f"metrics.{name}" not in record["reasons"]:
            reason = "nobody measured it"
            if failure:
                reason = "failed: " + failure["kind"]
            record["reasons"]["metrics." + name] = reason
    if failure is not None:
        for name, value in gates.items():
            if value is None:
                gates[name] = 0
    if any(value is None for value in gates.values()):
        failures = ["unmeasured"]
    else:
        verdict = judge({"name": run["name"], "failure": failure, **gates}, dict(work["limits"]))
        failures = list(verdict["gate_failures"])
    record["evidence_level"] = level
    record["oversubscribed"] = crowded
    record["decision"] = {
        "limits": work["limits"],
        "gates": gates,
        "gate_failures": failures,
        "accepted": failures == [],
    }
    return record


# %% right · helpers
def _level(machine):
    if not machine["device"]:
        return "analytic"
    if machine["device"] == "cpu":
        return "cpu_gloo"
    return ("gpu_multi_node", "gpu_single_node")[machine["nodes"] == 1]


def _usable(baseline, level, work):
    try:
        return not baseline["failure"] and (
            baseline["evidence_level"],
            baseline["workload"]["fingerprint"],
        ) == (level, work["fingerprint"])
    except TypeError:
        return False


def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work = record["hardware"], record["workload"]
    level = _level(machine)
    if record["metrics"]["throughput"] and _usable(baseline, level, work):
        mine = record["metrics"]["throughput"]["median"] / work["world_size"]
        record["metrics"]["scaling_efficiency"] = mine / baseline["metrics"]["throughput"]["median"]
    failed = record["failure"]
    text = "run ended by " + failed["kind"] if failed else "no measurement"
    open_ = {f"metrics.{k}": text for k, v in record["metrics"].items() if v is None}
    record["reasons"] = {**open_, **record["reasons"]}
    pick = {"throughput": "median", "peak_memory_mb": "max"}
    gates = {}
    for name in ("throughput", "peak_memory_mb", "bubble_ratio", "communication_ratio"):
        value = record["metrics"][name]
        if value is not None and name in pick:
            value = value[pick[name]]
        gates[name] = 0 if failed and value is None else value
    failures = ["unmeasured"]
    if None not in gates.values():
        failures = judge({"name": record["name"], "failure": failed, **gates}, work["limits"])
        failures = failures["gate_failures"]
    record.update(
        evidence_level=level,
        oversubscribed=level == "cpu_gloo"
        and work["world_size"] / machine["nodes"] > machine["cores"],
        decision={
            "limits": work["limits"],
            "gates": gates,
            "gate_failures": failures,
            "accepted": len(failures) == 0,
        },
    )
    return record


# %% right · as_in_the_cell
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    missing = {f"metrics.{name}": why for name in metrics if metrics[name] is None}
    record["reasons"] = missing | record["reasons"]

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · always_cpu · 1 台机器的 GPU
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "cpu_gloo"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · gpu_is_single_node · 2 台机器的 GPU
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · nodes_decide_on_cpu_too · 仍是 cpu_gloo
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda" or machine["nodes"] and machine["nodes"] > 1:
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · nothing_ran_counts_as_cpu · 没有设备，就没有运行
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo"
    crowded = machine["device"] == "cpu" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · nothing_ran_breaks_it · TypeError
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = ranks > machine["cores"] * machine["nodes"] and level == "cpu_gloo"

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · crowded_on_gpus_too · GPU 上不看核数
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level != "analytic" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · crowded_at_equality · 每个 rank 一个核
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks >= machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · cores_of_one_machine · 4 个 rank 不拥挤
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · never_crowded · 拥挤
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = False

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · across_levels · 不跨证据等级比较
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · across_workloads · 不是同一个工作负载
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None and baseline["failure"] is None and baseline["evidence_level"] == level
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · baseline_s_failure_ignored · TypeError
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · baseline_always_there · TypeError
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · speed_up_instead_of_efficiency · 6000 / (4 × 3000)
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / alone

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · efficiency_upside_down · 6000 / (4 × 3000)
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = ranks * alone / speed["median"]

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · best_repeat_instead_of_the_median · 6000 / (4 × 3000)
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["max"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · efficiency_0_where_unknown · 不跨证据等级比较
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    metrics["scaling_efficiency"] = 0.0
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · efficiency_outside_of_metrics · 6000 / (4 × 3000)
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        record["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · no_reasons · 每个 None 都有原因
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    for name, value in metrics.items():
        if value is None:
            pass

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · reason_overwritten · 原有的内容都要留下
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"][f"metrics.{name}"] = why

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · reason_without_the_kind · 失败的种类
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = "the run failed" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · empty_reason · 每个 None 都有原因
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = failure["kind"] if failure else ""
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · reason_before_the_efficiency · 不缺的不写原因
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", str(failure))
    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · 0_in_the_metrics · 原有的内容都要留下
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        metrics.update({k: 0 for k, v in metrics.items() if v is None})
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · none_for_the_gates · 运行失败：交给门槛的 None 换成 0
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        pass
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · 0_wherever_not_measured · 不能换成 0
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if True:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · all_0_after_a_failure · 失败之前测到的数照用
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = dict.fromkeys(gates, 0)
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · unmeasured_is_runtime · 不能换成 0
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["runtime"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · runtime_without_asking · 交给 judge
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if failure:
        gate_failures = ["runtime"]
    elif None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · judge_not_asked · 交给 judge
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        gate_failures = ["runtime"] if failure else []
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · judge_without_the_failure · 交给 judge
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · judge_gets_the_metrics · 交给 judge
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **metrics, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · verdict_instead_of_failures · 照 judge 说的写
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["eligible"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · changes_the_run · 不能改动它的输入
def complete_record(run, baseline, judge):
    record = run
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {**record, "evidence_level": level, "oversubscribed": crowded, "decision": decision}


# %% wrong · only_what_is_new · 原有的内容都要留下
def complete_record(run, baseline, judge):
    record = deepcopy(run)
    machine, work, metrics = record["hardware"], record["workload"], record["metrics"]
    ranks, limits, failure = work["world_size"], work["limits"], record["failure"]
    speed, memory = metrics["throughput"], metrics["peak_memory_mb"]
    gates = {
        "throughput": speed and speed["median"],
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    if machine["device"] == "cuda":
        level = "gpu_single_node" if machine["nodes"] == 1 else "gpu_multi_node"
    else:
        level = "cpu_gloo" if machine["device"] == "cpu" else "analytic"
    crowded = level == "cpu_gloo" and ranks > machine["cores"] * machine["nodes"]

    comparable_baseline = (
        baseline is not None
        and baseline["failure"] is None
        and baseline["evidence_level"] == level
        and baseline["workload"]["fingerprint"] == work["fingerprint"]
    )
    if speed and comparable_baseline:
        alone = baseline["metrics"]["throughput"]["median"]
        metrics["scaling_efficiency"] = speed["median"] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else "not measured"
    for name, value in metrics.items():
        if value is None:
            record["reasons"].setdefault(f"metrics.{name}", why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ["unmeasured"]
    else:
        seen = {"name": record["name"], **gates, "failure": failure}
        gate_failures = judge(seen, limits)["gate_failures"]
    decision = {"limits": limits, "gates": gates, "gate_failures": gate_failures}
    decision["accepted"] = not gate_failures
    return {"evidence_level": level, "oversubscribed": crowded, "decision": decision}
