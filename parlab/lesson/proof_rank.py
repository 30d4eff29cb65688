"""One rank of a lesson's proof: ``torchrun … -m parlab.lesson.proof_rank FOLDER``.

What it has to say it writes into the folder, where `proof` reads it: ``up-<rank>``, ``said`` (rank
0's progress), ``failed-<rank>.json``, ``done-<rank>``, ``stack-<rank>`` (a hang), ``result.json``.
"""

import datetime
import faulthandler
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

PATIENCE_S = 10.0
LEARNER = "learner.py"


def main(folder: Path) -> int:
    """Runs the program's ``prove`` on this rank; the exit status tells torchrun."""
    rank = int(os.environ["RANK"])
    try:
        result = _prove(folder, rank)
    except BaseException as error:
        write(folder / f"failed-{rank}.json", json.dumps(_failure(error, folder / LEARNER)))
        return 1
    if rank == 0:
        write(folder / "result.json", json.dumps(result))
    write(folder / f"done-{rank}", "")
    return 0


def write(path: Path, text: str) -> None:
    """The whole text or nothing: the reader polls."""
    part = path.with_name(f".{path.name}")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _prove(folder: Path, rank: int) -> Any:
    import torch
    import torch.distributed as dist

    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    program = importlib.import_module(job["program"])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=PATIENCE_S))
    write(folder / f"up-{rank}", "")
    learner = _learner(folder / LEARNER)
    with open(folder / f"stack-{rank}", "w", encoding="utf-8") as stack:
        # A hang must be told before the parent loses patience.
        faulthandler.dump_traceback_later(job["seconds"] * 0.6, file=stack)
        dist.barrier()

        def say(line: str) -> None:
            if rank == 0:
                with open(folder / "said", "a", encoding="utf-8") as said:
                    said.write(line + "\n")

        result = program.prove(learner, rank, dist.get_world_size(), say, **job["arguments"])
        dist.barrier()
        faulthandler.cancel_dump_traceback_later()
    dist.destroy_process_group()
    return result


def _learner(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("learner", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["learner"] = module
    spec.loader.exec_module(module)
    return module


def _failure(error: BaseException, learner: Path) -> dict[str, Any]:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == str(learner)]
    where = f"{frames[-1].name}: {frames[-1].line}" if frames else ""
    said = str(error).strip().split("\n")[0]
    kind = type(error).__name__
    return {"time": time.time(), "kind": kind, "message": said, "where": where}


if __name__ == "__main__":
    # Not sys.exit: a rank whose peers are gone must not wait for them in torch's destructors.
    status = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
