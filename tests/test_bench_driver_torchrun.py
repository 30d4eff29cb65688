"""Faults in real jobs under real torchrun: the right rank is named, nothing is left running."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from test_bench_driver_run import gone_within, leftovers, processes

from parlab.bench.driver import Job, Outcome, prepare, run
from parlab.bench.mesh import Mesh
from parlab.bench.workload import load
from parlab.lesson import record_files, soundness

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "benchmarks" / "workloads" / "tiny-cpu.toml"
SMALLER = {
    "num_layers = 8": "num_layers = 4", "hidden = 128": "hidden = 64", "ffn = 344": "ffn = 96",
    "sequence_length = 128": "sequence_length = 32",
    '"parallel-training.txt"': f'"{TINY.with_name("parallel-training.txt")}"',
}  # fmt: skip


def small(folder: Path) -> Path:
    """A workload file like tiny-cpu, but smaller: these tests are about processes."""
    text = TINY.read_text("utf-8")
    for old, new in SMALLER.items():
        assert old in text
        text = text.replace(old, new)
    path = folder / "small.toml"
    path.write_text(text, "utf-8")
    return path


pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torchrun")]


def real(
    folder: Path, mesh: Mesh, inject: Any = None, timeout_s: float = 90.0, **run_table: Any
) -> Outcome:
    work = load(small(folder)).as_dict()
    work["run"] |= run_table
    job = Job("G", folder / "job", ROOT, work, mesh, timeout_s=timeout_s, inject=inject)
    prepare(job)
    said: list[str] = []
    outcome = run(job, said.append)
    assert leftovers(job) == []
    print("\n".join(said), outcome.log, sep="\n")  # for whoever reads a failed test
    return outcome


@pytest.mark.parametrize(
    ("mesh", "rank", "what", "phase", "kind"),
    [
        (Mesh(pp=2), 1, "kill", "measure", "killed"),
        (Mesh(tp=2), 0, "kill", "warmup", "killed"),
        (Mesh(cp=2), 1, "exception", "measure", "exception"),
        (Mesh(pp=2), 0, "exception", "build", "exception"),
        (Mesh(tp=2), 1, "memory", "trace", "memory"),
    ],
)
def test_the_right_rank_is_named(
    tmp_path: Path, mesh: Mesh, rank: int, what: str, phase: str, kind: str
) -> None:
    outcome = real(tmp_path, mesh, {"rank": rank, "what": what, "phase": phase})
    assert outcome.failure is not None
    assert (outcome.failure["kind"], outcome.failure["rank"]) == (kind, rank)
    assert outcome.failure["log_tail"]


def test_a_rank_killed_in_the_middle_of_a_step(tmp_path: Path) -> None:
    """Its TP peer is in a backward then, and torch's pipelining wraps what it says of the loss."""
    rank = 3
    threading.Thread(target=kill_at_work, args=(tmp_path / "job", rank), daemon=True).start()
    outcome = real(tmp_path, Mesh(pp=2, tp=2), repeats=500)
    assert outcome.failure is not None
    assert (outcome.failure["kind"], outcome.failure["rank"]) == ("killed", rank)
    assert "signal 9" in outcome.failure["message"]


def kill_at_work(folder: Path, rank: int) -> None:
    """Ends a rank some steps into what is measured."""
    while True:
        time.sleep(0.05)
        with contextlib.suppress(OSError, ValueError):
            at = json.loads((folder / f"progress-{rank}.json").read_text("utf-8"))
            if (at["phase"], at["step"] > 5) == ("measure", True):
                break
    job = Job("G", folder, ROOT, {}, Mesh())
    for pid, line in processes(job).items():
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        if "parlab.bench.rank" in line and f"RANK={rank}".encode() in environment:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(("mesh", "rank"), [(Mesh(pp=2), 1), (Mesh(tp=2), 0)])
def test_a_hang_names_the_rank_that_hangs(tmp_path: Path, mesh: Mesh, rank: int) -> None:
    inject = {"rank": rank, "what": "hang", "phase": "measure"}
    outcome = real(tmp_path, mesh, inject, timeout_s=25.0)
    assert outcome.failure is not None
    assert (outcome.failure["kind"], outcome.failure["rank"]) == ("hang", rank)


def test_memory_that_the_system_refuses(tmp_path: Path) -> None:
    """A model whose parameters no machine has room for."""
    work = load(TINY)
    model = dataclasses.replace(work.model, vocabulary=1 << 20, hidden=1 << 17)
    huge = dataclasses.replace(work, model=model)
    job = Job("baseline", tmp_path / "job", ROOT, huge.as_dict(), Mesh(), timeout_s=60.0)
    prepare(job)
    outcome = run(job, print)
    assert outcome.failure is not None
    assert (outcome.failure["kind"], outcome.failure["rank"]) == ("memory", 0)
    assert leftovers(job) == []


def command(folder: Path, *more: str) -> list[str]:
    return [
        sys.executable, "-m", "parlab.cli", "bench", "--results", str(folder / "results"),
        "--device", "cpu", "--mesh", "tp=2", "--workload", str(folder / "small.toml"), *more,
    ]  # fmt: skip


def started(folder: Path) -> Job:
    """The job that a command has begun, once both its ranks are at work."""
    job = Job("pp1_cp1_tp2", folder / "results" / "jobs" / "pp1_cp1_tp2", ROOT, {}, Mesh(tp=2))
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if len(list(job.folder.glob("progress-*.json"))) == 2:
            return job
        time.sleep(0.05)
    raise AssertionError("the ranks did not start")


@pytest.mark.parametrize(
    ("numbers", "kind"),
    [
        ([signal.SIGINT, signal.SIGTERM, signal.SIGINT], "interrupted"),  # Ctrl-C, impatiently
        ([signal.SIGKILL], "unfinished"),  # a kernel's restart
    ],
)
def test_a_stopped_command_leaves_a_record_and_no_process(
    tmp_path: Path, numbers: list[signal.Signals], kind: str
) -> None:
    small(tmp_path)
    process = subprocess.Popen(
        command(tmp_path), cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    job = started(tmp_path)
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.1)
    assert gone_within(job, 5)
    assert process.wait(10) == (130 if kind == "interrupted" else -numbers[0])
    content = record_files.read(tmp_path / "results" / "pp1_cp1_tp2.json")
    assert content["failure"]["kind"] == kind
    assert content["decision"]["gate_failures"] == ["runtime"]


SRUN = """#!/bin/sh
shift
SLURM_NODEID=0 "$@" & first=$!
SLURM_NODEID=1 "$@" || exit 1
wait $first
"""


def test_the_slurm_script_joins_two_agents_as_two_nodes(tmp_path: Path) -> None:
    """With stand-ins for Slurm's own commands: both nodes are this machine."""
    small(tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    programs = {
        "bin/scontrol": "#!/bin/sh\necho 127.0.0.1\necho other\n",
        "bin/srun": SRUN,
        ".venv/bin/parlab": f'#!/bin/sh\nexec {sys.executable} -m parlab.cli "$@"\n',
    }
    for name, text in programs.items():
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(text, "utf-8")
        program.chmod(0o755)
    slurm = {
        "SLURM_SUBMIT_DIR": str(tmp_path), "SLURM_JOB_NODELIST": "a,b", "SLURM_NNODES": "2",
        "SLURM_JOB_ID": str(20000 + port % 20000),
        "PATH": os.pathsep.join([str(tmp_path / "bin"), os.environ["PATH"]]),
    }  # fmt: skip
    script = str(ROOT / "benchmarks" / "slurm.sh")
    done = subprocess.run(
        ["bash", script, *command(tmp_path)[4:], "--local-addr", "127.0.0.1"],
        env={**os.environ, **slurm, "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, timeout=150,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    content = json.loads((tmp_path / "results" / "pp1_cp1_tp2.json").read_text("utf-8"))
    assert content["failure"] is None and content["hardware"]["nodes"] == 2
    assert "--nnodes=2" in content["artifact"]["command"]
    assert soundness.faults(content) == []
