"""A lesson's last step: the learner's functions in real processes, against somebody else's code."""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from linecache import getlines
from pathlib import Path
from typing import Any

import torch

from parlab.lesson import proof_rank, supervise
from parlab.lesson.carry import CannotCarry, carried_source
from parlab.lesson.language import say

POLL_S, START_S = 0.1, 90.0
_IN_LEARNER = re.compile(rf'{proof_rank.LEARNER}", line (\d+) in (\w+)')


def run_proof(
    switch: bool,
    program: str,
    functions: Sequence[Callable[..., Any]],
    ranks: int = 4,
    seconds: float = 20.0,
    needs: tuple[int, int] = (2, 6),
    **arguments: Any,
) -> dict[str, Any] | None:
    """Runs ``prove`` of the module ``program`` under torchrun, on gloo, and shows its progress.

    Args:
        switch: False starts nothing.
        functions: the learner's; with what they use they become the module ``learner``.
        seconds: how long the ranks may take once all are up; a slow start is another matter.
        needs: the oldest torch that will do.
        arguments: for ``prove``; JSON.

    Returns:
        What ``prove`` returned on rank 0; None where it did not run or did not succeed, after
        printing why. No process is left.
    """
    if not switch:
        print("⏸ " + say("proof_off"))
        return None
    have = tuple(int(part) for part in re.findall(r"\d+", torch.__version__)[:2])
    if have < needs:
        wanted = ".".join(map(str, needs))
        print("⏸ " + say("proof_torch", wanted=wanted, have=torch.__version__))
        return None
    if sys.platform == "win32":  # torchrun's gloo and pipes that can be watched are not to be had
        print("⏸ " + say("proof_impossible", reason="Windows"))
        return None
    with tempfile.TemporaryDirectory(prefix="proof-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        try:
            source = carried_source(functions)
        except CannotCarry as reason:
            print("❌ " + say("proof_carry", name=reason.name, kind=reason.kind))
            return None
        (folder / proof_rank.LEARNER).write_text(source, encoding="utf-8")
        job = {"program": program, "arguments": arguments, "seconds": seconds}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        _write_carried(folder / "modules")
        return _watch(folder, ranks, seconds)


def _write_carried(folder: Path) -> None:
    """In a single-file notebook ``parlab`` exists in memory only: write it out."""
    folder.mkdir()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None) or ""
        if name.split(".")[0] == "parlab" and file.startswith("<"):
            path = folder.joinpath(*name.split("."))
            path = path / "__init__.py" if hasattr(module, "__path__") else path.with_suffix(".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(getlines(file)), encoding="utf-8")


def _start(folder: Path, ranks: int) -> "subprocess.Popen[bytes]":
    command = [
        *(sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"),
        *("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", "--local-addr=127.0.0.1"),
        *("--max-restarts=0", "-m", proof_rank.__name__, str(folder)),
    ]
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    beside = Path(proof_rank.__file__).parents[2] if _is_file(proof_rank.__file__) else None
    paths = [folder / "modules", beside, os.environ.get("PYTHONPATH")]
    own = {
        "PYTHONPATH": os.pathsep.join(str(path) for path in paths if path),
        "GLOO_SOCKET_IFNAME": loopback,
        "TP_SOCKET_IFNAME": loopback,
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "Agg",
        "PYTHONUNBUFFERED": "1",
        "PYTHONWARNINGS": "ignore",
    }
    return subprocess.Popen(
        [sys.executable, "-m", supervise.__name__, str(folder / "log"), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **own},
        cwd=folder,
        start_new_session=True,  # an interrupt is ours to pass on
    )


def _is_file(name: str | None) -> bool:
    return bool(name) and not str(name).startswith("<")


def _watch(folder: Path, ranks: int, seconds: float) -> dict[str, Any] | None:
    began = time.monotonic()
    print("⏳ " + say("proof_start", ranks=ranks, seconds=f"{seconds:g}"), flush=True)
    try:
        process = _start(folder, ranks)
    except OSError as error:
        print("⏸ " + say("proof_impossible", reason=error.strerror))
        return None
    shown, up, limit = 0, False, began + START_S
    try:
        while process.poll() is None and time.monotonic() < limit:
            time.sleep(POLL_S)
            if not up and len(list(folder.glob("up-*"))) == ranks:
                up, limit = True, time.monotonic() + seconds
                waited = f"{time.monotonic() - began:.1f}"
                print("   " + say("proof_up", ranks=ranks, seconds=waited), flush=True)
            shown = _show_said(folder, shown)
        late = time.time() if process.poll() is None else None
    finally:
        _end(process)
    _show_said(folder, shown)
    if late and not up:
        print("⏸ " + say("proof_slow", seconds=f"{START_S:g}"))
        return None
    return _outcome(folder, ranks, time.monotonic() - began, seconds, late)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The supervisor's input ends, and with it everything that it started."""
    assert process.stdin
    process.stdin.close()
    try:
        process.wait(2 * supervise.KILL_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _show_said(folder: Path, shown: int) -> int:
    path = folder / "said"
    lines = path.read_text(encoding="utf-8").split("\n")[:-1] if path.exists() else []
    for line in lines[shown:]:
        print("   " + line, flush=True)
    return len(lines)


def _outcome(
    folder: Path, ranks: int, took: float, limit: float, late: float | None
) -> dict[str, Any] | None:
    """Says what came of it.

    Args:
        late: when the time was up, if it was: a rank that fails afterwards does so for having
            lost another, which was ended first.
    """
    done = [rank for rank in range(ranks) if (folder / f"done-{rank}").exists()]
    if len(done) == ranks:
        print("✅ " + say("proof_done", seconds=f"{took:.1f}"))
        result: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
        return result
    failures = []
    for path in folder.glob("failed-*.json"):
        rank = int(path.stem.rpartition("-")[2])
        failure = json.loads(path.read_text(encoding="utf-8"))
        if late is None or failure["time"] <= late:
            failures.append((rank, failure))
    if failures:
        rank, first = min(failures, key=lambda item: item[1]["time"])
        said = f"{first['kind']}: {first['message']}"
        print("❌ " + say("proof_failed", rank=rank, said=said))
        if first["where"]:
            print("   " + first["where"])
    elif late:
        left = [rank for rank in range(ranks) if rank not in done]
        print("❌ " + say("proof_late", seconds=f"{limit:g}", ranks=", ".join(map(str, left))))
        for line in _stuck(folder, left):
            print("   " + line)
    else:
        log = (folder / "log").read_text(encoding="utf-8", errors="replace").strip().split("\n")
        print("⏸ " + say("proof_impossible", reason=log[-1]))
    return None


def _stuck(folder: Path, ranks: Sequence[int]) -> list[str]:
    """Where in the learner's code the late ranks were."""
    lines = (folder / proof_rank.LEARNER).read_text(encoding="utf-8").split("\n")
    found = []
    for rank in ranks:
        stack = folder / f"stack-{rank}"
        place = _IN_LEARNER.search(stack.read_text(encoding="utf-8")) if stack.exists() else None
        if place:
            found.append(f"rank {rank}: {place[2]}: {lines[int(place[1]) - 1].strip()}")
    return found
