"""Runs a rebuilt notebook with nbval in the sandbox."""

# mypy: untyped-calls-exclude=nbformat

import json
import shutil
import time
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from parlab.grade.forkserver import Connection
from parlab.grade.types import RunOutcome
from parlab.grade.warm import KERNEL, RunContext

_OUTCOME_BYTES = 1024 * 1024
_GRACE = 30  # seconds beyond the submission's own wall time


def run_notebook(
    notebook: NotebookNode, context: RunContext, skip: Collection[str] = ()
) -> RunOutcome:
    """What nbval, lax and made sound, finds.

    Args:
        notebook: the lesson's exercise with a student's answers; its outputs are left out.
        skip: ids of cells that need not run, such as those that only draw; checks always run.
    """
    began = time.monotonic()
    folder = Path(context.warm.folder, context.warm.new_name("run"))
    folder.mkdir()
    try:
        bare = _without_outputs(notebook)
        folder.joinpath("notebook.ipynb").write_text(nbformat.writes(bare), encoding="utf-8")
        request = {
            "folder": str(folder),
            "limits": asdict(context.limits),
            "skip": sorted(skip),
            "kernel": KERNEL,
        }
        reader = Connection(context.warm.reader, request)
        in_time = reader.wait(context.limits.wall_seconds + _GRACE)
        ended = reader.kill()
        found = _outcome(folder / "outcome.json", ended, in_time)
        if found["status"] == "grader_error":
            found["notes"].append(("grader_error", {"cell": "", "text": _tail(folder)}))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return RunOutcome(
        status=found["status"],
        checks={int(number): state for number, state in found["checks"].items()},
        notes=tuple((key, values) for key, values in found["notes"]),
        seconds=round(time.monotonic() - began, 3),
        peak_memory_mb=found["peak_memory_mb"],
    )


def _outcome(path: Path, ended: dict[str, Any], in_time: bool) -> dict[str, Any]:
    """What the reader left; a reader that was lost had too much to read."""
    if path.is_file() and path.stat().st_size <= _OUTCOME_BYTES:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    status = "output_limit" if in_time else "timeout"
    if ended.get("error") or ended.get("status") == 70:
        status = "grader_error"
    note = (status, {"cell": "", "text": json.dumps(ended)})
    return {"status": status, "checks": {}, "notes": [note], "peak_memory_mb": None}


def _tail(folder: Path) -> str:
    """The end of what pytest printed."""
    log = folder / "pytest.log"
    return log.read_text(encoding="utf-8", errors="replace")[-4000:] if log.is_file() else ""


def _without_outputs(notebook: NotebookNode) -> NotebookNode:
    bare: NotebookNode = nbformat.from_dict(
        {**notebook, "cells": [dict(cell) for cell in notebook.cells]}
    )
    for cell in bare.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return bare
