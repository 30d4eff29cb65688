"""What is wrong with a record, a decision or a timeline: by its schema and in itself."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, TypeGuard

import parlab
from parlab.lesson.trace_cases import PARTS

BASELINE, DECISION = "baseline", "decision"
AXES = ("pp", "cp", "tp")  # rank order, outer to inner
LARGEST = 1e24  # what a picture can still reckon with
_SLACK_MS = 1e-3  # a timeline is rounded
Record = Mapping[str, Any]


def faults(record: Any) -> list[str]:
    """What is wrong with a record or decision, its path first, one line each; empty if sound."""
    is_decision = isinstance(record, dict) and record.get("name") == DECISION
    lines = [
        *unsound_values(record),
        *_against_schema(DECISION if is_decision else "record", record),
    ]
    if not lines:
        try:
            lines = [*(contradictions_of_choice if is_decision else contradictions)(record)]
        except (AttributeError, IndexError, KeyError, TypeError) as error:  # no schema said so
            lines = [f"$: not what a record holds ({type(error).__name__}: {error})"]
    return sorted(lines)


def _against_schema(name: str, record: Any) -> Iterator[str]:
    validator = _validator(name)
    for error in validator.iter_errors(record) if validator else ():
        # The value that a message begins with may be a whole table.
        said = error.message
        yield f"{error.json_path}: {said if len(said) <= 160 else f'{said[:60]} … {said[-90:]}'}"


@lru_cache
def _validator(name: str) -> Any:
    """A schema's validator; None in a notebook that has no jsonschema, where nothing is run."""
    try:
        from jsonschema import Draft202012Validator
    except ImportError:
        return None
    # The benchmark's own file, which a twin unpacks beside its modules.
    file = Path(list(parlab.__path__)[0]) / "bench" / f"{name}.schema.json"
    return Draft202012Validator(json.loads(file.read_text(encoding="utf-8")))


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
    size = sizes[0] * sizes[1] * sizes[2]
    if size != ranks:
        yield f"$.mesh: {' × '.join(map(str, sizes))} = {size}, not world_size {ranks}"
    elif len(coordinates) != ranks:
        yield f"$.mesh.coordinates: {len(coordinates)} ranks, not {ranks}"
    else:
        made = product(*map(range, sizes))
        for rank, (got, at) in enumerate(zip(coordinates, made, strict=True)):
            if got != {"rank": rank, **dict(zip(AXES, at, strict=True))}:
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
    return _trace_fault(timeline.get("trace", []), ranks)


def _trace_fault(trace: object, ranks: int) -> str:
    """The first thing wrong with the events that a timeline was made of; they may be left out."""
    if not isinstance(trace, list) or not all(isinstance(row, dict) for row in trace):
        return "$.trace: no list of objects"
    if trace and [row.get("rank") for row in trace] != list(range(ranks)):
        return f"$.trace: not one row for each of {ranks} ranks, in their order"
    for place, row in enumerate(trace):
        events = row.get("events")
        if not isinstance(events, list) or not _lasts(row):
            return f"$.trace[{place}]: no step of events"
        for number, event in enumerate(events):
            if not _event(event):
                return f"$.trace[{place}].events[{number}]: {event!r:.60} is no event"
    return ""


def _event(event: object) -> bool:
    return (
        isinstance(event, dict)
        and isinstance(event.get("kind"), str)
        and _lasts(event)
        and (event["kind"] != "p2p" or _number(event.get("peer_start")))
        and isinstance(event.get("blocked"), list)
        and all(_span(span, LARGEST, -LARGEST) for span in event["blocked"])
    )


def _lasts(row: Mapping[str, Any]) -> bool:
    return _span([row.get("start"), row.get("end")], LARGEST, -LARGEST)


def _span(span: object, end: float, start: float = -_SLACK_MS) -> bool:
    return (
        isinstance(span, list)
        and len(span) == 2
        and all(map(_number, span))
        and start <= span[0] <= span[1] <= end
    )


def _number(value: object) -> TypeGuard[float]:
    return type(value) in (int, float)
