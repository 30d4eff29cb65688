"""A group against one process: which numbers may be compared, and do the two train alike?"""

from collections.abc import Mapping, Sequence
from typing import Any

from parlab.bench.workload import BASELINE
from parlab.lesson.records import BOUND

Record = dict[str, Any]
# What rounding alone makes of loss and gradients; tests/test_bench_meshes.py measures it. Where
# gradients nearly cancel, as those of the QK norms do, bfloat16's 8 bits leave little.
LIMITS = {
    "float32": {"loss_difference": BOUND, "largest_gradient_error": BOUND},
    "bfloat16": {"loss_difference": 1e-2, "largest_gradient_error": 0.2},
}
# AdamW divides a gradient by its own size: where that is mere rounding, a parameter goes a whole
# learning rate astray.
PARAMETER = {"float32": 1e-5, "bfloat16": 1e-2}
_NAMES = {
    "loss_difference": "the loss differs by",
    "largest_gradient_error": "a gradient has the relative error",
    "largest_parameter_error": "after some steps a parameter has the relative error",
}


def limits(record: Mapping[str, Any]) -> dict[str, float]:
    """The largest differences from one process that rounding explains, by `correctness`'s keys."""
    work = record["workload"]
    parameter = max(PARAMETER[work["dtype"]], float(work["learning_rate"]))
    return {**LIMITS[work["dtype"]], "largest_parameter_error": parameter}


def disagreement(record: Mapping[str, Any]) -> str:
    """What is wrong with a group's training, with numbers and limits; empty where nothing is."""
    found = record["metrics"]["correctness"]
    if not found:
        return ""
    wrong = [
        f"{_NAMES[key]} {found[key]:.1e}{_whose(key, found)} (limit {limit:g})"
        for key, limit in limits(record).items()
        if abs(found.get(key) or 0.0) > limit
    ]
    return "its training is wrong: against one process " + ", ".join(wrong) if wrong else ""


def _whose(key: str, found: Mapping[str, Any]) -> str:
    name = found.get("parameter") if key == "largest_gradient_error" else None
    return f", in {name}" if name else ""


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
