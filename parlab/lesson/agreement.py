"""Does a group train as one process does?"""

from collections.abc import Mapping
from typing import Any

BOUND = 1e-5  # of a gradient's relative error in fp32: rounding stays below
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


def unfit(record: Mapping[str, Any]) -> str:
    """Why a group takes no part in a choice, whatever the others are; empty where it does."""
    if None in record["decision"]["gates"].values():
        return "it did not measure what the gates ask for"
    return disagreement(record)
