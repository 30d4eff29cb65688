"""Gates and choice by lesson 04's functions: this file holds no rule of theirs."""

from collections.abc import Mapping
from typing import Any

from parlab.bench.record import DECISION, now_utc
from parlab.bench.workload import BASELINE
from parlab.lesson.loader import Loaded

LESSON = "04_model_internal_parallel"
LAYOUT, GATES, CHOICE = (
    "validate_mesh_layout",
    "evaluate_internal_parallel_candidate",
    "select_internal_parallel_candidate",
)
Record = Mapping[str, Any]


def candidate(record: Record) -> dict[str, Any]:
    """What the gates see. A run that failed has measured nothing: 0 stands for each null."""
    metrics = record["metrics"]
    memory, throughput = metrics["peak_memory_mb"], metrics["throughput"]
    measured = {
        "peak_memory_mb": memory and memory["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
        "throughput": throughput and throughput["median"],
    }
    failed = record["failure"]
    missing = [key for key, value in measured.items() if value is None]
    if missing and not failed:
        raise ValueError(f"{record['name']}: {', '.join(missing)} not measured in a run that ended")
    return {
        "name": record["name"],
        **{key: 0 if value is None else value for key, value in measured.items()},
        "failure": failed,
    }


def origin(functions: Loaded) -> dict[str, str]:
    """Where the functions came from, as records tell it."""
    return {
        "origin": functions.origin,
        "source": functions.source,
        "sha256": functions.sha256,
        "note": functions.note,
    }


def judge(record: Record, functions: Loaded) -> dict[str, Any]:
    """The record's ``decision``: limits, what the gates saw and what they said."""
    limits = dict(record["workload"]["limits"])
    seen = candidate(record)
    result = functions[GATES](seen, limits)
    return {
        "limits": limits,
        "gates": {key: seen[key] for key in seen if key not in ("name", "failure")},
        "gate_failures": list(result["gate_failures"]),
        "accepted": bool(result["eligible"]),
        "functions": origin(functions),
    }


def choose(
    records: Mapping[str, Record], fingerprint: str, functions: Loaded, last: str = ""
) -> dict[str, Any] | None:
    """``decision.json``: the choice among the groups that may be compared.

    The latest run of the workload sets what the others must share with it: workload, number of
    ranks, evidence level and hardware. The baseline is the yardstick, no candidate.

    Args:
        last: the group that ran last, where that is known better than by the second.

    Returns:
        None where no group of this workload has run.
    """
    groups = {name: record for name, record in records.items() if name != BASELINE}
    ours = [r for r in groups.values() if r["workload"]["fingerprint"] == fingerprint]
    if not ours:
        return None
    latest = max(ours, key=lambda r: (r["name"] == last, r["started"], r["name"]))
    left_out = {name: why for name, r in groups.items() if (why := incomparable(r, latest))}
    compared = [record for name, record in groups.items() if name not in left_out]
    limits = dict(latest["workload"]["limits"])
    judged = [functions[GATES](candidate(record), limits) for record in compared]
    choice = functions[CHOICE](judged)
    runs = {record["name"]: record["run_id"] for record in compared}
    return {
        "schema_version": 1,
        "name": DECISION,
        "started": now_utc(),
        "workload": {"name": latest["workload"]["name"], "fingerprint": fingerprint},
        "evidence_level": latest["evidence_level"],
        "oversubscribed": latest["oversubscribed"],
        "world_size": latest["workload"]["world_size"],
        "limits": limits,
        "candidates": [{**item, "run_id": runs[item["name"]]} for item in judged],
        "left_out": left_out,
        "decision": choice["decision"],
        "candidate": choice["candidate"],
        "meaning": meaning(latest),
        "functions": origin(functions),
    }


def incomparable(one: Record, other: Record) -> str:
    """Why two runs may not be compared; empty where they may."""
    a, b = one["workload"], other["workload"]
    if a["fingerprint"] != b["fingerprint"]:
        return f"another workload: {a['name']} {a['fingerprint'][:8]}, not {b['fingerprint'][:8]}"
    if one["evidence_level"] != other["evidence_level"]:
        return f"evidence level {one['evidence_level']}, not {other['evidence_level']}"
    if a["world_size"] != b["world_size"]:
        return f"{a['world_size']} rank(s), not {b['world_size']}"
    return other_hardware(one, other)


def other_hardware(one: Record, other: Record) -> str:
    """Why the machines of two runs may not be compared; empty where they may."""
    for key in ("cpu", "cores", "gpu", "gpus", "nodes"):
        a, b = one["hardware"][key], other["hardware"][key]
        if a != b:
            return f"other hardware: {key} {a}, not {b}"
    return ""


def meaning(record: Record) -> str:
    """How far the choice may be trusted."""
    ranks, cores = record["workload"]["world_size"], record["hardware"]["cores"]
    if record["oversubscribed"]:
        return (
            f"Evidence level cpu_gloo, {ranks} ranks on {cores} cores: throughput is no evidence "
            "of speed here. The choice shows how the gates work, not which layout is faster."
        )
    if record["evidence_level"] == "cpu_gloo":
        return (
            "Evidence level cpu_gloo: a rehearsal. The choice shows how the gates work, and says "
            "nothing about GPUs."
        )
    return f"Evidence level {record['evidence_level']}: measured on {record['hardware']['gpu']}."
