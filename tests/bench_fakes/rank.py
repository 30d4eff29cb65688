"""Stands for a rank in the driver's tests: writes the agreed files, trains nothing."""

import json
import os
import signal
import sys
import time
from pathlib import Path

FOLDER, RANK = Path(sys.argv[1]), int(os.environ["RANK"])
PHASES = (("start", 0), ("build", 0), ("warmup", 2), ("measure", 3), ("trace", 1), ("done", 0))
WORK_S = float(os.environ.get("FAKE_WORK_S", "0.05"))


def put(name: str, content: object) -> None:
    fresh = FOLDER / f".{name}.{RANK}"
    fresh.write_text(json.dumps(content))
    os.replace(fresh, FOLDER / f"{name}-{RANK}.json")


def wait_for_the_others() -> None:
    time.sleep(3600)  # a healthy rank, whose peer hangs


def fault(inject: dict, phase: str) -> None:
    """What the test asks for, in the phase it names."""
    if not inject or inject["phase"] != phase:
        return
    if inject["rank"] != RANK:
        if inject["what"] in ("hang", "exit"):
            wait_for_the_others()
        return
    if inject["what"] == "hang":
        time.sleep(3600)
    if inject["what"] == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if inject["what"] == "exit":
        sys.exit(3)
    kind = "memory" if inject["what"] == "memory" else "exception"
    message = "out of memory: 9 GiB" if kind == "memory" else "ValueError: the fault"
    put("failure", {"kind": kind, "message": message, "traceback": f"Traceback\n  {message}"})
    sys.exit(1)


def document(job: dict) -> dict:
    sizes = job["mesh"]
    tp, cp = sizes["tp"], sizes["cp"]
    coordinate = {"pp": RANK // (cp * tp), "cp": RANK // tp % cp, "tp": RANK % tp}
    world = sizes["pp"] * cp * tp
    late = 0.02 * coordinate["pp"]
    events = [
        {"kind": "compute", "name": "F", "stage": 0, "microbatch": 0, "start": late,
         "end": late + 0.08},
        {"kind": "collective", "operation": "all_reduce", "axis": "tp", "cause": "layers",
         "group": list(range(world)), "sequence": 0, "start": late + 0.02, "end": late + 0.03,
         "blocked": [[late + 0.02, late + 0.03]]},
    ]  # fmt: skip
    traffic = {
        "axis": "tp", "direction": "forward", "cause": "layers", "operation": "all_reduce",
        "calls": 16, "payload_bytes": 1024, "wire_bytes": 1536,
    }  # fmt: skip
    return {
        "rank": RANK, "coordinate": coordinate, "host": "host", "pid": os.getpid(),
        "clock_offset_s": 0.0,
        "steps": [{"start": n, "end": n + 0.1 + 0.01 * n / world} for n in (1, 2, 3)],
        "trace": {"start": 0.0, "end": 0.14, "events": events},
        "traffic": [traffic] if world > 1 else [],
        "peak_memory_mb": 100.0 + RANK, "memory_source": "VmHWM", "loss": [5.5, 5.4, 5.3],
        "parameters": {"count": 1000, "local_count": 1000 // world},
        "correctness": None if not job["reference"] else {
            "loss_difference": 1e-7 * RANK, "largest_gradient_error": 1e-6 * (RANK + 1),
            "parameter": "lm_head.weight", "largest_parameter_error": 2e-5,
            "parameters_after_steps": 3, "reason": None,
        },
    }  # fmt: skip


def main() -> None:
    job = json.loads((FOLDER / "job.json").read_text())
    for phase, steps in PHASES:
        for step in range(1, max(steps, 1) + 1):
            put("progress", {"phase": phase, "step": step, "of": steps, "time": time.time()})
            fault(job["inject"], phase)
            time.sleep(WORK_S)
    put("rank", document(job))


main()
