"""What is compared of a group with one process, and with which run of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from parlab.bench.workload import BASELINE

Record = dict[str, Any]


def correctness(
    record: Record, documents: Sequence[Mapping[str, Any]], baseline: Record | None
) -> tuple[dict[str, Any] | None, str]:
    """A record's ``correctness`` from what the ranks wrote, or None and the reason."""
    if record["name"] == BASELINE:
        return None, "it is what the groups are compared with"
    found = [d["correctness"] for d in documents if d["correctness"]]
    values = [one for one in found if one["largest_gradient_error"] is not None]
    if not values:
        told = next((one["reason"] for one in found if one.get("reason")), None)
        return None, told or _no_baseline(record, baseline) or "the ranks compared nothing"
    worst = max(values, key=lambda one: one["largest_gradient_error"])
    return {
        "loss_difference": max(abs(one["loss_difference"]) for one in values),
        "largest_gradient_error": worst["largest_gradient_error"],
        "parameter": worst["parameter"],
        "largest_parameter_error": max(one["largest_parameter_error"] for one in values),
        "parameters_after_steps": worst["parameters_after_steps"],
    }, ""


def yardstick(record: Record, baseline: Record | None) -> tuple[Record | None, str]:
    """The baseline to compare the throughput with; None and the reason where there is none."""
    if record["name"] == BASELINE:
        return None, "it is what the groups are compared with"
    if why := _no_baseline(record, baseline):
        return None, why
    assert baseline
    return {**baseline, "evidence_level": record["evidence_level"]}, ""


def _no_baseline(record: Record, baseline: Record | None) -> str:
    """Why there is no one-rank run to compare with; empty where there is one."""
    if baseline is None:
        return "no baseline has run"
    if baseline["failure"]:
        return f"the baseline failed: {baseline['failure']['message'][:300]}"
    if baseline["metrics"]["throughput"] is None:
        return "the baseline did not measure its throughput"
    if baseline["workload"]["fingerprint"] != record["workload"]["fingerprint"]:
        return "the baseline ran another workload"
    if baseline["evidence_level"] == record["evidence_level"]:
        different = ("cpu", "gpu") if record["hardware"]["device"] == "cuda" else ("cpu", "cores")
        if all(baseline["hardware"][key] == record["hardware"][key] for key in different):
            return ""
        return "the baseline ran on other hardware"
    if {baseline["evidence_level"], record["evidence_level"]} <= {
        "gpu_single_node", "gpu_multi_node"
    }:  # fmt: skip
        return ""  # one rank never spans machines
    return f"the baseline's evidence level is {baseline['evidence_level']}"
