"""What is wrong with a record, a decision or a timeline although a schema lets it through."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeGuard

from parlab.bench.measure import PARTS
from parlab.bench.mesh import AXES, Mesh

LARGEST = 1e24  # what a picture can still reckon with
_SLACK_MS = 1e-3  # a timeline is rounded
Record = Mapping[str, Any]


def unsound_values(value: object, path: str = "$") -> Iterator[str]:
    """Numbers that are not finite or beyond all measure, and texts that no file can hold."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from unsound_values(item, f"{path}.{key}")
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from unsound_values(item, f"{path}[{place}]")
    elif isinstance(value, int | float):
        if not abs(value) <= LARGEST:  # NaN too
            shown = value if isinstance(value, float) else f"an integer of {len(str(value))} digits"
            yield f"{path}: {shown} is no finite number up to {LARGEST:g}"
    elif isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            yield f"{path}: {ascii(value)[:60]} is no text"


def contradictions(record: Record) -> Iterator[str]:
    """Where a record that fits its schema says two things at once, each with its path."""
    for key, value in record["metrics"].items():
        if value is None and f"metrics.{key}" not in record["reasons"]:
            yield f"$.metrics.{key}: null without a reason"
    yield from _of_mesh(record)
    yield from _of_metrics(record["metrics"], record["workload"]["world_size"])
    yield from _of_gates(record)
    for key in ("timeline", "log"):
        path, own = record["artifact"][key], f"{record['name']}-{record['run_id']}"
        if path and Path(path).stem != own:
            yield f"$.artifact.{key}: {Path(path).name} is that of another run, not of {own}"


def _of_mesh(record: Record) -> Iterator[str]:
    sizes, ranks = [record["mesh"][axis] for axis in AXES], record["workload"]["world_size"]
    coordinates = record["mesh"]["coordinates"]
    product = sizes[0] * sizes[1] * sizes[2]
    if product != ranks:
        yield f"$.mesh: {' × '.join(map(str, sizes))} = {product}, not world_size {ranks}"
    elif len(coordinates) != ranks:
        yield f"$.mesh.coordinates: {len(coordinates)} ranks, not {ranks}"
    else:
        made = Mesh(**dict(zip(AXES, sizes, strict=True))).coordinates()
        for rank, (got, right) in enumerate(zip(coordinates, made, strict=True)):
            if got != {"rank": rank, **right}:
                yield f"$.mesh.coordinates[{rank}]: {got} is not where rank {rank} stands"


def _of_metrics(metrics: Record, ranks: int) -> Iterator[str]:
    for key in ("throughput", "step_ms"):
        spread = metrics[key]
        if spread and not spread["min"] <= spread["median"] <= spread["max"]:
            yield f"$.metrics.{key}: min ≤ median ≤ max does not hold"
    if memory := metrics["peak_memory_mb"]:
        if len(memory["ranks"]) != ranks:
            yield f"$.metrics.peak_memory_mb.ranks: {len(memory['ranks'])} values, not {ranks}"
        elif memory["max"] != max(memory["ranks"]):
            yield f"$.metrics.peak_memory_mb.max: {memory['max']}, not the largest of its ranks"
    if (parts := metrics["parts_ms"]) and [row["rank"] for row in parts] != list(range(ranks)):
        yield f"$.metrics.parts_ms: not one row for each of {ranks} ranks, in their order"


def _of_gates(record: Record) -> Iterator[str]:
    """The gates see what was measured; of a failed run 0 for what was not."""
    metrics, decision = record["metrics"], record["decision"]
    measured = {
        "throughput": metrics["throughput"] and metrics["throughput"]["median"],
        "peak_memory_mb": metrics["peak_memory_mb"] and metrics["peak_memory_mb"]["max"],
        "bubble_ratio": metrics["bubble_ratio"],
        "communication_ratio": metrics["communication_ratio"],
    }
    for key, value in measured.items():
        if value is None and record["failure"]:
            value = 0
        if decision["gates"][key] != value:
            yield f"$.decision.gates.{key}: {decision['gates'][key]}, but measured was {value}"
    if decision["accepted"] == bool(decision["gate_failures"]):
        yield f"$.decision.accepted: {decision['accepted']} with {decision['gate_failures']}"


def contradictions_of_choice(choice: Record) -> Iterator[str]:
    """Where a decision that fits its schema says two things at once."""
    for place, item in enumerate(choice["candidates"]):
        if item["eligible"] == bool(item["gate_failures"]):
            yield f"$.candidates[{place}].eligible: {item['eligible']} with {item['gate_failures']}"
    eligible = [item["name"] for item in choice["candidates"] if item["eligible"]]
    taken = choice["candidate"]
    if (choice["decision"] == "accept") != (taken is not None):
        yield f"$.candidate: {taken!r} with decision {choice['decision']}"
    elif taken is not None and taken not in eligible:
        yield f"$.candidate: {taken!r} is no eligible candidate"


def timeline_fault(timeline: object, ranks: int) -> str:
    """The first thing wrong with a timeline, with its path; empty for a sound one.

    Args:
        timeline: what the file holds; only what pictures show is looked at.
        ranks: how many ranks the run had.
    """
    if not isinstance(timeline, dict):
        return "$: no object"
    length, rows = timeline.get("step_ms"), timeline.get("ranks")
    if not _number(length) or not 0 < length <= LARGEST:
        return f"$.step_ms: {length!r:.60} is no length"
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return "$.ranks: no list of objects"
    if [row.get("rank") for row in rows] != list(range(ranks)):
        return f"$.ranks: not one row for each of {ranks} ranks, in their order"
    for place, row in enumerate(rows):
        for part in PARTS:
            if not isinstance(row.get(part), list):
                return f"$.ranks[{place}].{part}: no list"
            for number, span in enumerate(row[part]):
                if not _span(span, length + _SLACK_MS):
                    return f"$.ranks[{place}].{part}[{number}]: {span!r:.60} is no span of the step"
    return ""


def _span(span: object, end: float) -> bool:
    return (
        isinstance(span, list)
        and len(span) == 2
        and all(map(_number, span))
        and -_SLACK_MS <= span[0] <= span[1] <= end
    )


def _number(value: object) -> TypeGuard[float]:
    return type(value) in (int, float)
