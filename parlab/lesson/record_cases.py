"""Runs to be made into records, each put together so that the record is known."""

import random
from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import product
from typing import Any

from parlab.lesson.nearly import nearly

LIMITS = {"memory_mb": 1000.0, "bubble_ratio": 0.45, "communication_ratio": 0.45}
MISSING = "(missing)"
Record = dict[str, Any]
Judge = Callable[[Record, Record], Record]

_MACHINE = ("device", "nodes", "cores")


def a_run(**change: Any) -> Record:
    """A run of four ranks that went well, on two cores of one machine.

    Args:
        change: ``device``, ``nodes``, ``cores``, ``world_size``, ``fingerprint``, ``failure`` (a
            kind), ``reasons``, and any metric; a metric that is None was not measured.
    """
    failed = change.get("failure")
    metrics: Record = {
        "throughput": {"median": 6000.0, "min": 5500.0, "max": 6400.0},
        "peak_memory_mb": {"max": 352.6, "ranks": [352.6, 348.6, 344.4, 344.5]},
        "bubble_ratio": 0.29,
        "communication_ratio": 0.14,
        "correctness": {"loss_difference": 0.0, "largest_gradient_error": 2e-7},
        "mfu": None,
        "scaling_efficiency": None,
    }
    if failed:
        metrics = dict.fromkeys(metrics)
    metrics |= {key: value for key, value in change.items() if key in metrics}
    machine = {"device": "cpu", "nodes": 1, "cores": 2, "torch": "2.13.0"}
    machine |= {key: change[key] for key in _MACHINE if key in change}
    return {
        "name": "G1_pp",
        "workload": {
            "name": "tiny-cpu", "fingerprint": change.get("fingerprint", "7800b01c"),
            "world_size": change.get("world_size", 4), "limits": dict(LIMITS),
        },
        "hardware": machine,
        "mesh": {"pp": 4, "cp": 1, "tp": 1, "order": ["pp", "cp", "tp"]},
        "metrics": metrics,
        "artifact": {"command": ["python", "-m", "torch.distributed.run"], "commit": "1f0493c"},
        "failure": {"kind": failed, "rank": 2, "message": "rank 2 …"} if failed else None,
        "reasons": dict(change.get("reasons", {"metrics.mfu": "ran on CPU"})),
    }  # fmt: skip


def a_baseline(**change: Any) -> Record:
    """The record of the one-rank run on the same machine.

    Args:
        change: ``evidence_level``, ``fingerprint``, ``failure`` (a kind), ``median`` (tokens/s).
    """
    failed = change.get("failure")
    speed = None if failed else {"median": change.get("median", 3000.0)}
    return {
        "name": "baseline",
        "workload": {"fingerprint": change.get("fingerprint", "7800b01c"), "world_size": 1},
        "metrics": {"throughput": speed},
        "failure": {"kind": failed, "rank": 0, "message": "rank 0 …"} if failed else None,
        "evidence_level": change.get("evidence_level", "cpu_gloo"),
    }


def a_judge(*failures: str) -> tuple[Judge, list[Any]]:
    """Gates that always say the same, and the list of what they have been handed."""
    seen: list[Any] = []

    def judge(metrics: Record, limits: Record) -> Record:
        seen.append(deepcopy((metrics, limits)))
        return {**metrics, "eligible": not failures, "gate_failures": list(failures)}

    return judge, seen


def look(record: Any, path: str) -> Any:
    """What stands at a path like ``decision.gates.throughput``; `MISSING` where nothing does.

    Keys may hold dots themselves, as those of ``reasons`` do.
    """
    if type(record) is not dict:
        return MISSING
    if path in record:
        return record[path]
    head, dot, rest = path.partition(".")
    return look(record[head], rest) if dot and head in record else MISSING


def short(found: dict[str, Any]) -> str:
    """Paths and values on one line."""
    return ", ".join(f"{path} = {value!r}" for path, value in found.items())


LEVELS = {
    ("cpu", 1): "cpu_gloo",
    ("cpu", 3): "cpu_gloo",
    ("cuda", 1): "gpu_single_node",
    ("cuda", 3): "gpu_multi_node",
}


def runs(seed: int = 0) -> Iterator[tuple[Record, Record | None, dict[str, Any]]]:
    """A run, a baseline and what must stand in the record, by path: every combination."""
    dice = random.Random(seed)
    for (place, level), usable, failed in product(LEVELS.items(), (True, False), (False, True)):
        device, nodes = place
        cores, ranks = dice.choice([(2, 8), (4, 5), (8, 8), (16, 12)])
        speed, alone = float(dice.randrange(500, 9000)), float(dice.randrange(500, 4000))
        run = a_run(
            device=device, nodes=nodes, cores=cores, world_size=ranks,
            failure=dice.choice(["killed", "hang", "memory"]) if failed else None,
            **({} if failed else {"throughput": {"median": speed, "min": 1.0, "max": 2 * speed}}),
        )  # fmt: skip
        unusable = dice.choice(
            [{"failure": "memory"}, {"fingerprint": "0ther"}, {"evidence_level": "analytic"}, None]
        )
        baseline: Record | None = a_baseline(evidence_level=level, median=alone)
        if not usable:
            baseline = None if unusable is None else a_baseline(
                **{"evidence_level": level, "median": alone, **unusable}
            )  # fmt: skip
        yield (
            run,
            baseline,
            {
                "evidence_level": level,
                "oversubscribed": device == "cpu" and ranks > cores * nodes,
                "metrics.scaling_efficiency": speed / ranks / alone
                if usable and not failed
                else None,
                "decision.gates.throughput": 0 if failed else speed,
                "decision.gates.bubble_ratio": 0 if failed else 0.29,
            },
        )


def unlike(run: Record, got: Any) -> str:
    """Where a record has lost or changed what the run held, in words; empty where it has not.

    The efficiency may be filled in, and reasons may be added.
    """
    if type(got) is not dict:
        return f"{type(got).__name__}"
    for key, value in run.items():
        nested = value if key in ("metrics", "reasons") else {"": value}
        for name, item in nested.items():
            path = f"{key}.{name}".rstrip(".")
            if name != "scaling_efficiency" and not nearly(look(got, path), item):
                return f"{path} = {look(got, path)!r}"
    return ""


def unexplained(got: Record, kind: str) -> str:
    """A metric that is None without a reason, or without the failure's kind in it; else empty."""
    for name, value in got["metrics"].items():
        reason = look(got, f"reasons.metrics.{name}")
        if value is not None or reason == "ran on CPU":
            continue
        if type(reason) is not str or reason in ("", MISSING) or kind not in reason:
            return f"reasons['metrics.{name}'] = {reason!r}"
    return ""


def handed(run: Record, failed: bool) -> tuple[Record, Record]:
    """What the gates must be handed for ``run``: metrics and limits."""
    facts: Record = {
        "throughput": 6000.0, "peak_memory_mb": 352.6, "bubble_ratio": 0.29,
        "communication_ratio": 0.14,
    }  # fmt: skip
    if failed:
        facts = dict.fromkeys(facts, 0)
    return {"name": run["name"], **facts, "failure": run["failure"]}, LIMITS
