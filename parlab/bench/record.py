"""Records on disk: checked against the schema, written whole, the predecessor kept."""

import contextlib
import json
import os
import re
from datetime import datetime, timezone
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from parlab.bench.soundness import contradictions, contradictions_of_choice, unsound_values
from parlab.lesson.files import write_whole

DECISION = "decision"
HISTORY = "history"
Record = dict[str, Any]
_STAMP = re.compile(r"\d{8}T\d{6}Z")


class BadRecord(Exception):
    """A file that is no sound record: one line with the file, the field and what to do."""


def now_utc() -> str:
    """The time as in ``20260131T235959Z``."""
    return datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")


@lru_cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("parlab.bench").joinpath(f"{name}.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def faults(record: Any) -> list[str]:
    """What is wrong with a record or decision, its path first, one line each; empty if sound."""
    is_decision = isinstance(record, dict) and record.get("name") == DECISION
    errors = _validator("decision" if is_decision else "record").iter_errors(record)
    lines = [*unsound_values(record), *(f"{e.json_path}: {_brief(e.message)}" for e in errors)]
    if not lines:
        lines = [*(contradictions_of_choice if is_decision else contradictions)(record)]
    return sorted(lines)


def _brief(message: str) -> str:
    """What a schema's error says; the value that it begins with may be a whole table."""
    return message if len(message) <= 160 else f"{message[:60]} … {message[-90:]}"


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


def write(folder: Path, record: Record) -> Path:
    """Puts a record in place; an earlier run's record of that name first moves to ``history/``.

    The new file is written whole beside its place before anything moves, so a full disk or an
    interruption leaves every record that was there.

    Raises:
        BadRecord: the record breaks the schema; nothing is written.
        OSError: the folder cannot be written.
    """
    if lines := faults(record):
        raise BadRecord(f"the record of {record.get('name')!r}: {'; '.join(lines[:3])}")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{record['name']}.json"
    data = json.dumps(record, indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def put(fresh: Path) -> None:
        with fresh.open("w", encoding="utf-8") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if target.exists() and not _same_run(target, record):
            _keep(target)

    write_whole(target, put)
    return target


def write_file(path: Path, text: str) -> None:
    """Writes a text file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, lambda fresh: fresh.write_text(text, encoding="utf-8"))


def _same_run(target: Path, record: Record) -> bool:
    """Whether what stands there is this run's own, earlier state."""
    try:
        return bool(json.loads(target.read_text("utf-8"))["run_id"] == record["run_id"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def _keep(target: Path) -> None:
    """Gives the file a second name in ``history/``, at which it stays when replaced."""
    history = target.parent / HISTORY
    history.mkdir(exist_ok=True)
    stamp = _stamp(target)
    for number in range(1000):
        extra = f"-{number}" if number else ""
        kept = history / f"{target.stem}-{stamp}{extra}.json"
        if kept.exists():
            continue
        try:
            os.link(target, kept)
        except OSError:  # a file system without hard links
            os.replace(target, kept)
        return
    raise OSError(f"{history} already holds a thousand records of {target.stem} at {stamp}")


def _stamp(target: Path) -> str:
    """When the run in a file started; of a damaged file, when it was last written."""
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        started = json.loads(target.read_text("utf-8"))["started"]
        if _STAMP.fullmatch(started):
            return str(started)
    return datetime.fromtimestamp(target.stat().st_mtime, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
