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

from parlab.lesson.files import write_whole

DECISION = "decision"
HISTORY = "history"
Record = dict[str, Any]
_STAMP = re.compile(r"\d{8}T\d{6}Z")


class BadRecord(Exception):
    """A file that is no record, or a record that breaks the schema; says where and what to do."""


def now_utc() -> str:
    """The time as in ``20260131T235959Z``."""
    return datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")


@lru_cache
def _validator(name: str) -> Draft202012Validator:
    text = resources.files("parlab.bench").joinpath(f"{name}.schema.json").read_text("utf-8")
    return Draft202012Validator(json.loads(text))


def faults(record: Any) -> list[str]:
    """Where a record breaks its schema, one line each; empty for a valid one."""
    is_decision = isinstance(record, dict) and record.get("name") == DECISION
    errors = _validator("decision" if is_decision else "record").iter_errors(record)
    lines = [f"{error.json_path}: {error.message[:200]}" for error in errors]
    if not lines and not is_decision:
        lines = [
            f"$.metrics.{key}: null without a reason"
            for key, value in record["metrics"].items()
            if value is None and f"metrics.{key}" not in record["reasons"]
        ]
    return sorted(lines)


def read(path: Path) -> Record:
    """The record in a file.

    Raises:
        BadRecord: the file is damaged; it is left as it is.
    """
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadRecord(
            f"{path.name} is damaged ({error}). It stays as it is; a new run of the group moves it "
            f"to {HISTORY}/"
        ) from None
    if lines := faults(record):
        raise BadRecord("\n  ".join([f"{path.name} breaks the schema:", *lines[:8]]))
    return dict(record)


def read_folder(folder: Path) -> tuple[dict[str, Record], list[str]]:
    """Every group's record in a folder, and a line about each file that could not be read."""
    records, complaints = {}, []
    for path in sorted(folder.glob("*.json")):
        if path.stem == DECISION:
            continue
        try:
            records[path.stem] = read(path)
        except (BadRecord, OSError) as error:
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
        raise BadRecord("\n  ".join([f"the record of {record.get('name')!r}:", *lines[:8]]))
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
    except (ValueError, KeyError, TypeError):
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
    with contextlib.suppress(ValueError, KeyError, TypeError):
        started = json.loads(target.read_text("utf-8"))["started"]
        if _STAMP.fullmatch(started):
            return str(started)
    return datetime.fromtimestamp(target.stat().st_mtime, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
