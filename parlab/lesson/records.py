"""Result records as the lesson reads them: where they lie, what is in them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import parlab
from parlab.lesson.agreement import unfit
from parlab.lesson.record_files import (
    BadRecord,
    Record,
    load_timeline,
    read,
    read_folder,
    superseded,
)
from parlab.lesson.soundness import BASELINE, DECISION


class NoRecords(Exception):
    """There is nothing to read; says where it was looked for, in one line and no stack."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


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
    """The folder to read: your own results where any can be read, else the course's examples.

    Raises:
        NoRecords: neither is there.
    """
    places = [results_folder(name), course_folder() / name]
    for place in places:
        if read_folder(place)[0]:
            return place
    raise NoRecords(f"no records that can be read in {places[0]}")


def read_records(name: str) -> dict[str, Record]:
    """The records of a results folder by group, the baseline first, then by name.

    A file that cannot be taken is left out with a line that says why.
    """
    own = results_folder(name)
    complaints = read_folder(own)[1]
    for line in complaints:
        print(f"left out: {line}")
    place = records_folder(name)
    found, others = read_folder(place)
    for line in others if place != own else ():
        print(f"left out: {line}")
    return dict(sorted(found.items(), key=lambda item: (item[0] != BASELINE, item[0])))


def read_decision(name: str) -> Record | None:
    """``decision.json`` of a results folder, if there is one that stands for its latest runs.

    For one that does not, or that is damaged, prints a line with the reason.
    """
    folder = records_folder(name)
    path = folder / f"{DECISION}.json"
    if not path.exists():
        return None
    try:
        choice = read(path)
    except BadRecord as error:
        print(f"left out: {error}")
        return None
    if reasons := superseded(choice, read_folder(folder)[0]):
        remedy = "A run that ends decides anew"
        print(f"left out: {path.name} of {choice['started']}: {'; '.join(reasons)}. {remedy}")
        return None
    return choice


def read_timeline(name: str, record: Mapping[str, Any]) -> Record | None:
    """A record's timeline: ``ranks`` with their parts, and ``trace`` with what they were made of.

    Times are ms from the step's start. None for a run that has none, as one that failed, and for
    one whose file is damaged, with a line that says how.
    """
    try:
        found = load_timeline(record, records_folder(name), needed=False)
    except BadRecord as error:
        print(f"left out: {error}")
        return None
    return found and {"trace": [], **found}


def pipeline_group(name: str, shown: Sequence[Record]) -> tuple[Record, Record]:
    """A group with a pipeline and its timeline: the one with most stages, else an example.

    Args:
        name: the results folder of the records ``shown``.
    """
    for place, records in ((name, shown), (course_folder() / name, [])):
        known = list(records) or list(read_records(str(place)).values())
        for record in sorted(known, key=lambda record: -int(record["mesh"]["pp"])):
            timeline = read_timeline(str(place), record)
            if record["mesh"]["pp"] > 1 and timeline and timeline["trace"]:
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


def choosable(records: Sequence[Record]) -> list[Record]:
    """The groups to choose from: those that trained as one process does, the baseline apart.

    They must have as many ranks as the newest. For each one left out, prints a line with the
    numbers.
    """
    groups = [record for record in records if record["name"] != BASELINE]
    newest = max(groups, key=lambda group: str(group["started"]), default={})
    kept = []
    for record in groups:
        if reason := unfit(record) or incomparable(record, newest):
            print(f"{record['name']} takes no part: {reason}")
        else:
            kept.append(record)
    return kept


def incomparable(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Why two groups may not be chosen between; empty where they may."""
    a, b = one["workload"]["world_size"], other["workload"]["world_size"]
    return stands_apart(one, other) or ("" if a == b else f"{a} rank(s), not {b}")


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
