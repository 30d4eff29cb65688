"""Records on their way to the disk: checked, written whole, the predecessor kept."""

import contextlib
import json
import os
import re
from datetime import datetime, timezone
from pathlib import Path

from parlab.lesson.files import write_whole
from parlab.lesson.record_files import HISTORY, BadRecord, Record
from parlab.lesson.soundness import faults

_STAMP = re.compile(r"\d{8}T\d{6}Z")


def now_utc() -> str:
    """The time as in ``20260131T235959Z``."""
    return datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ")


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
