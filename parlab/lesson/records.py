"""Result records as the lesson reads them: where they lie, what is in them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import parlab

BASELINE, DECISION = "baseline", "decision"
BOUND = 1e-5  # of a gradient's relative error in fp32: rounding stays below
Record = dict[str, Any]


class NoRecords(Exception):
    """There is nothing to read; says where it was looked for."""


def course_folder() -> Path:
    """The folder that holds ``solutions/`` and ``benchmarks/``: above here, else parlab's own.

    In a hosted runtime that is the folder into which the set-up cell unpacked the course's tools.
    """
    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if (folder / "solutions").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    return Path(list(parlab.__path__)[0]).resolve().parent


def results_folder(name: str) -> Path:
    """Where a run puts its records: ``name`` in the course, or here where this is no course."""
    course = course_folder()
    base = course if (course / "pyproject.toml").is_file() else Path.cwd()
    return base / name


def records_folder(name: str) -> Path:
    """The folder to read: your own results where there are any, else the course's examples.

    Raises:
        NoRecords: neither is there.
    """
    places = [results_folder(name), course_folder() / name]
    for place in places:
        if any(path.stem != DECISION for path in place.glob("*.json")):
            return place
    raise NoRecords(f"no records in {places[0]}")


def read_records(name: str) -> dict[str, Record]:
    """The records of a results folder by group, the baseline first, then by name.

    A file that cannot be read is left out with a line that says so.
    """
    found = {}
    for path in sorted(records_folder(name).glob("*.json")):
        if path.stem == DECISION:
            continue
        try:
            record = dict(json.loads(path.read_text(encoding="utf-8")))
            found[str(record["name"])] = record
        except (OSError, ValueError, KeyError, TypeError) as error:
            print(f"{path.name}: {type(error).__name__}: {error}")
    return dict(sorted(found.items(), key=lambda item: (item[0] != BASELINE, item[0])))


def read_decision(name: str) -> Record | None:
    """``decision.json`` of a results folder, if there is one."""
    path = records_folder(name) / f"{DECISION}.json"
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_timeline(name: str, record: Mapping[str, Any]) -> Record | None:
    """A record's timeline: ``ranks`` with their parts, and ``trace`` with what they were made of.

    Times are ms from the step's start. None for a run that has none, as one that failed.
    """
    path = record["artifact"]["timeline"]
    if not path:
        return None
    file = records_folder(name) / "timelines" / Path(path).name
    return dict(json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def pipeline_group(name: str, shown: Sequence[Record]) -> tuple[Record, Record]:
    """A group with a pipeline and its timeline: the one with most stages, else an example.

    Args:
        name: the results folder of the records ``shown``.
    """
    for place, records in ((name, shown), (course_folder() / name, [])):
        known = list(records) or list(read_records(str(place)).values())
        for record in sorted(known, key=lambda record: -int(record["mesh"]["pp"])):
            timeline = read_timeline(str(place), record)
            if record["mesh"]["pp"] > 1 and timeline and "trace" in timeline:
                return record, timeline
    raise NoRecords(f"no group with a pipeline in {name} has a timeline")


def comparable(records: Mapping[str, Record]) -> list[Record]:
    """The records that may stand side by side: workload, evidence level and machine as the newest.

    For each one that may not, prints a line with the reason.
    """
    if not records:
        return []
    newest = max(records.values(), key=lambda record: str(record["started"]))
    kept = []
    for name, record in records.items():
        reason = stands_apart(record, newest)
        if reason:
            print(f"{name}: {reason}")
        else:
            kept.append(record)
    return kept


def stands_apart(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why two records may not stand side by side; empty where they may."""
    a, b = one["workload"], other["workload"]
    if a["fingerprint"] != b["fingerprint"]:
        return f"another workload: {a['name']} {a['fingerprint'][:8]}, not {b['fingerprint'][:8]}"
    if one["evidence_level"] != other["evidence_level"]:
        return f"evidence level {one['evidence_level']}, not {other['evidence_level']}"
    for key in ("cpu", "cores", "gpu", "gpus", "nodes"):
        here, there = one["hardware"][key], other["hardware"][key]
        if here != there:
            return f"other hardware: {key} {here}, not {there}"
    return ""


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows of text in columns, the first row being the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
