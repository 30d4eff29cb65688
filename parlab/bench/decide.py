"""Gates and choice by lesson 04's functions: this file holds no rule of theirs."""

from collections.abc import Mapping
from typing import Any

from parlab.bench.record import now_utc
from parlab.bench.workload import BASELINE
from parlab.lesson.agreement import unfit
from parlab.lesson.loader import Loaded
from parlab.lesson.records import incomparable
from parlab.lesson.soundness import DECISION

LESSON = "04_model_internal_parallel"
LAYOUT, GATES, CHOICE = (
    "validate_mesh_layout",
    "evaluate_internal_parallel_candidate",
    "select_internal_parallel_candidate",
)
Record = Mapping[str, Any]


def candidate(record: Record) -> dict[str, Any]:
    """What the gates saw of a run; its own decision keeps it."""
    return {"name": record["name"], **record["decision"]["gates"], "failure": record["failure"]}


def origin(functions: Loaded) -> dict[str, str]:
    """Where the functions came from, as records tell it."""
    return {
        "origin": functions.origin,
        "source": functions.source,
        "sha256": functions.sha256,
        "note": functions.note,
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
    left_out = {
        name: why for name, r in groups.items() if (why := unfit(r) or incomparable(r, latest))
    }
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
    if record["evidence_level"] == "analytic":
        return "Evidence level analytic: predicted. Nothing ran."
    return f"Evidence level {record['evidence_level']}: measured on {record['hardware']['gpu']}."
