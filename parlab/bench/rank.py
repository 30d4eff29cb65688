"""One rank of one job: `torchrun … -m parlab.bench.rank JOB_FOLDER`.

Reads job.json, writes progress-<rank>.json as it goes on, rank-<rank>.json at the end and
failure-<rank>.json where an exception ends it. A one-rank job without a reference is the baseline
and leaves reference.pt for the groups.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from parlab.bench import storage
from parlab.lesson.files import chain, write_whole

OLDEST = (2, 8)
RANK = int(os.environ.get("RANK", "0"))


def too_old(version: str) -> str | None:
    """One line where this torch cannot run the pipeline schedules, else None."""
    found = tuple(int(part) for part in version.split("+")[0].split(".")[:2])
    if found >= OLDEST:
        return None
    return (
        f"parlab bench needs torch >= 2.8, this is {version}: older pipeline schedules hang on gloo"
    )


class Job:
    """The job folder as this rank uses it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content: dict[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
        self.workload: dict[str, Any] = self.content["workload"]

    def put(self, name: str, content: dict[str, Any]) -> None:
        text = json.dumps(content)
        write_whole(self.folder / f"{name}-{RANK}.json", lambda path: path.write_text(text))

    def progress(self, phase: str, step: int = 0, of: int = 0) -> None:
        self.put("progress", {"phase": phase, "step": step, "of": of, "time": time.time()})
        inject = self.content.get("inject")
        if inject and inject["rank"] == RANK and inject["phase"] == phase:
            _fault(inject["what"])

    def fail(self, error: BaseException) -> None:
        kind = "memory" if any(map(_is_memory, chain(error))) else "exception"
        real = _unwrapped(error)
        said = storage.explain(real) if isinstance(real, OSError) else real
        content = {
            "kind": kind, "message": f"{type(real).__name__}: {said}",
            "traceback": "".join(traceback.format_exception(error)), "time": time.time(),
        }  # fmt: skip
        try:
            self.put("failure", content)
        except OSError:  # a full disk, of which a rank can still tell
            storage.release(self.folder, RANK)
            self.put("failure", content)


def _unwrapped(error: BaseException) -> BaseException:
    """What torch's pipelining wraps in pages of shapes: the error in a stage's own code."""
    while type(error) is RuntimeError and error.__cause__ is not None:
        error = error.__cause__
    return error


def _is_memory(error: BaseException) -> bool:
    kinds = (MemoryError, torch.OutOfMemoryError)
    return isinstance(error, kinds) or "allocate memory" in str(error)


def _fault(what: str) -> None:
    """A fault that a test asked for."""
    if what == "hang":
        time.sleep(3600)
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "exit":
        sys.exit(3)
    if what == "memory":
        raise MemoryError("a fault that a test asked for")
    raise RuntimeError("a fault that a test asked for")


def main(arguments: list[str]) -> int:
    """The exit status."""
    refused = too_old(torch.__version__)
    if refused:
        print(refused, file=sys.stderr)
        return 2
    job = Job(Path(arguments[0]))
    try:
        job.progress("start")
        from parlab.bench.session import run  # imports pipelining, which old torch lacks

        job.put("rank", run(job))
        job.progress("done")
    except BaseException as error:
        with contextlib.suppress(OSError):
            job.fail(error)
        with contextlib.suppress(OSError):  # the log may be on a full disk too
            traceback.print_exc()
            sys.stderr.flush()
        # Other threads may still wait for ranks that wait for this one.
        os._exit(1)
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)  # torch takes long to take itself apart, and all is written
