"""What a run leaves beside its record: the log and the timeline, without this machine's paths."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parlab.bench.driver import Outcome
from parlab.bench.measure import split_step, timeline, trace_in_ms, traces
from parlab.bench.record import write_file
from parlab.lesson.record_files import TIMELINES

LOGS, REPORT = "logs", "report.md"
_NO_REPORT = """# Model-internal parallelism: what was measured

There is no report on the latest runs. `parlab bench --report DIR`, DIR being this folder, makes it.
"""


def cleaner(root: Path) -> Callable[[str], str]:
    """A function that takes the folders of this machine out of a text."""
    names = {
        str(root.resolve()): ".",
        str(Path(__file__).resolve().parents[2]): ".",
        sys.prefix: "<python>",
        sys.base_prefix: "<python>",
        str(Path.home()): "~",
    }
    ordered = sorted(names, key=len, reverse=True)

    def clean(text: str) -> str:
        for name in ordered:
            if len(name) > 1:
                text = text.replace(name, names[name])
        return text

    return clean


def withdraw_report(folder: Path) -> None:
    """Takes a report away that is about to become old, so that nobody reads it as the present."""
    path = folder / REPORT
    if path.is_file():
        write_file(path, _NO_REPORT)


def save_artifacts(
    record: dict[str, Any], outcome: Outcome, folder: Path, root: Path
) -> dict[str, Any]:
    """Writes log and timeline; the record that comes back names them, or says why it cannot.

    A folder that has become full or read-only costs the artifact, not the record.
    """
    name = f"{record['name']}-{record['run_id']}"
    contents = {"log": (folder / LOGS / f"{name}.log", cleaner(root)(outcome.log))}
    if outcome.documents:
        step, splits = split_step(outcome.documents)
        content = {
            "step_ms": (step[1] - step[0]) * 1e3,
            "ranks": timeline(step, splits),
            "trace": trace_in_ms(step, traces(outcome.documents)),
        }
        text = json.dumps(content, separators=(",", ":"))
        contents["timeline"] = (folder / TIMELINES / f"{name}.json", text)
    artifact, reasons = dict(record["artifact"]), dict(record["reasons"])
    for key in ("log", "timeline"):
        reasons.pop(f"artifact.{key}", None)
        if key not in contents:
            reasons[f"artifact.{key}"] = "the run failed"
            continue
        path, text = contents[key]
        try:
            write_file(path, text)
            artifact[key] = shown(path, folder, root)
        except OSError as error:
            reasons[f"artifact.{key}"] = f"could not be written: {error.strerror}"
    return {**record, "artifact": artifact, "reasons": reasons}


def shown(path: Path, folder: Path, root: Path) -> str:
    """A path as a record tells it: from the course's folder, or else from the record's own."""
    for base in (root, folder):
        try:
            return path.resolve().relative_to(base.resolve()).as_posix()
        except ValueError:
            continue
    return path.name
