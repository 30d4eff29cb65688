"""What a run leaves beside its record: the log and the timeline, without this machine's paths."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from parlab.bench.driver import Outcome
from parlab.bench.measure import split_step, timeline, trace_in_ms, traces
from parlab.bench.record import BadRecord, write_file
from parlab.bench.soundness import timeline_fault

LOGS, TIMELINES = "logs", "timelines"


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


def load_timeline(record: Mapping[str, Any], folder: Path) -> dict[str, Any] | None:
    """The timeline of a record that lies in ``folder``, wherever that folder has gone since.

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
