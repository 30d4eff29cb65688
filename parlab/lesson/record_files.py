"""Result records as they lie in a folder: read whole, and refused where they are not sound."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from parlab.lesson.soundness import BASELINE, DECISION, faults, timeline_fault

HISTORY, TIMELINES = "history", "timelines"
Record = dict[str, Any]


class BadRecord(Exception):
    """A file that is no sound record: one line with the file, the field and what to do."""


def read(path: Path) -> Record:
    """The record in a file.

    Raises:
        BadRecord: the file is damaged or gone, or is not named after what it holds; it stays.
    """
    if path.exists() and not path.is_file():
        raise _bad(path, "it is no file")
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        lines = faults(record)
    except OSError as error:
        raise _bad(path, f"it cannot be read ({error.strerror})") from None
    except ValueError as error:
        raise _bad(path, str(error)) from None
    except RecursionError:
        raise _bad(path, "it is nested too deep") from None
    name = record.get("name") if isinstance(record, dict) else None
    if isinstance(name, str) and not _named_after(path, name):
        lines = [f"$.name: {name!r:.60} is not what the file is named after", *lines]
    if lines:
        more = [f"{len(lines) - 3} more"] if len(lines) > 3 else []
        raise _bad(path, "; ".join([*lines[:3], *more]))
    return dict(record)


def _bad(path: Path, why: str) -> BadRecord:
    if path.stem == DECISION:
        remedy = "a new run of `parlab bench` decides anew"
    else:
        remedy = f"run the group again, which moves it to {HISTORY}/, or take it out of the folder"
    return BadRecord(f"{path.name} is damaged: {why}. It stays as it is; {remedy}")


def _named_after(path: Path, name: str) -> bool:
    if path.resolve().parent.name == HISTORY:
        return path.stem.startswith(f"{name}-")
    return path.stem == name


def read_folder(folder: Path) -> tuple[dict[str, Record], list[str]]:
    """Every group's record in a folder, and a line about each file that could not be taken."""
    records: dict[str, Record] = {}
    complaints = []
    runs: dict[str, str] = {}
    for path in sorted(folder.glob("*.json")):
        if path.stem == DECISION:
            continue
        try:
            found = read(path)
            first = runs.setdefault(found["run_id"], path.name)
            if first != path.name:
                raise _bad(path, f"$.run_id: {found['run_id']} is the run of {first}")
            records[path.stem] = found
        except BadRecord as error:
            complaints.append(str(error))
    return records, complaints


def load_timeline(
    record: Mapping[str, Any], folder: Path, needed: bool = True
) -> dict[str, Any] | None:
    """The timeline of a record that lies in ``folder``, wherever that folder has gone since.

    Args:
        needed: whether the file must be there; a twin carries some of them only.

    Returns:
        None for a run that left none, as one that failed.

    Raises:
        BadRecord: the file is gone or damaged.
    """
    name = record["artifact"]["timeline"]
    if not name:
        return None
    places = (TIMELINES, f"../{TIMELINES}")  # of a record in history/ one up
    files = [folder / sub / Path(name).name for sub in places]
    try:
        text = next(file for file in files if file.is_file()).read_text(encoding="utf-8")
        content = json.loads(text)
        why = timeline_fault(content, record["workload"]["world_size"])
    except StopIteration:
        if not needed:
            return None
        why = "it is not there"
    except OSError as error:
        why = f"it cannot be read ({error.strerror})"
    except (ValueError, RecursionError) as error:
        why = str(error)
    if why:
        raise BadRecord(
            f"{TIMELINES}/{files[0].name} is damaged: {why}. The timeline of {record['name']} is "
            "left out; put the file back, or run the group again"
        )
    return dict(content)


def superseded(choice: Mapping[str, Any], records: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why a decision does not stand for a folder's latest runs, a line each; empty where it does.

    Args:
        records: the folder's, by name.
    """
    judged = {item["name"]: item["run_id"] for item in choice["candidates"]}
    lines = []
    for name, run in judged.items():
        if name not in records:
            lines.append(f"{name}: run {run} was judged, and its record is gone or damaged")
        elif (latest := records[name])["run_id"] != run:
            failure = latest["failure"]
            how = f"which failed ({failure['kind']})" if failure else "which was not"
            lines.append(f"{name}: run {run} was judged, the latest is {latest['run_id']}, {how}")
    return lines + [
        f"{name}: run {record['run_id']} came later and was not judged"
        for name, record in records.items()
        if name not in judged
        and name != BASELINE
        and record["workload"]["fingerprint"] == choice["workload"]["fingerprint"]
        and record["started"] > choice["started"]
    ]
