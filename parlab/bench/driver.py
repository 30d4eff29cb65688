"""One job under torchrun: started, watched, ended. No torch in this process."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parlab.bench import storage
from parlab.bench.blame import Evidence, blame, innermost
from parlab.bench.mesh import Mesh
from parlab.bench.record import write_file
from parlab.bench.watch import RANK_LOGS, Say, Watch, numbered, rank_logs, read_text

POLL_S, GRACE_S, STACKS_S = 0.1, 4.5, 4.0
LAUNCHER = ("-m", "torch.distributed.run")
PROGRAM = ("-m", "parlab.bench.rank")


@dataclass(frozen=True)
class Nodes:
    """How many machines take part; each runs ``parlab bench`` with its own ``rank``."""

    count: int = 1
    rank: int = 0
    endpoint: str = ""
    run_id: str = ""
    local_address: str = ""


@dataclass(frozen=True)
class Job:
    """What torchrun is to run.

    Attributes:
        name: the group's.
        folder: the job folder; ``job.json`` goes there, everything that ranks write comes back.
        root: the working folder, from which the recorded command counts its paths.
        workload: as ``Workload.as_dict`` gives it.
        reference: the baseline's job folder, whose loss and gradients are the yardstick.
        inject: a fault, in tests.
    """

    name: str
    folder: Path
    root: Path
    workload: Mapping[str, Any]
    mesh: Mesh
    device: str = "cpu"
    timeout_s: float = 120.0
    reference: Path | None = None
    nodes: Nodes = field(default_factory=Nodes)
    inject: Mapping[str, Any] | None = None
    launcher: tuple[str, ...] = LAUNCHER
    program: tuple[str, ...] = PROGRAM


@dataclass(frozen=True)
class Outcome:
    """What came of a job.

    Attributes:
        documents: each rank's ``rank-<rank>.json``; empty where the job failed.
        failure: as in a record, or None.
        interrupted: what to raise once the record is written.
        startup_s: torchrun's start to the last rank's first warm-up step; None if it never came.
    """

    documents: list[dict[str, Any]]
    failure: dict[str, Any] | None
    interrupted: BaseException | None
    seconds: float
    startup_s: float | None
    log: str


def command(job: Job) -> list[str]:
    """The exact command, to be run in ``job.root``; paths count from there where they can."""
    nodes = job.nodes
    endpoint = nodes.endpoint or "127.0.0.1:0"  # port 0: torchrun takes a free one of its own
    address = nodes.local_address or ("127.0.0.1" if nodes.count == 1 else "")
    options = [
        f"--nnodes={nodes.count}",
        f"--nproc-per-node={job.mesh.world_size // nodes.count}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={endpoint}",
        f"--rdzv-id={nodes.run_id or 'parlab'}-{job.name}",
        "--max-restarts=0",
        "--redirects=3",
        f"--log-dir={relative(job.folder / RANK_LOGS, job.root)}",
        # torchrun's c10d rendezvous ignores the node rank; it is passed for the record's sake.
        *([f"--node-rank={nodes.rank}"] if nodes.count > 1 else []),
        *([f"--local-addr={address}"] if address else []),
    ]
    return ["python", *job.launcher, *options, *job.program, relative(job.folder, job.root)]


def environment(job: Job) -> dict[str, str]:
    """What is set on top of the caller's own environment."""
    own = {
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": "3",
    }
    if job.nodes.count == 1 or job.nodes.local_address.startswith("127."):
        loopback = "lo0" if sys.platform == "darwin" else "lo"
        own |= {"GLOO_SOCKET_IFNAME": loopback, "TP_SOCKET_IFNAME": loopback}
    return own


def relative(path: Path, root: Path) -> str:
    """``path`` from ``root`` with forward slashes, or absolute where it lies elsewhere."""
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return str(path.resolve())


def prepare(job: Job) -> None:
    """Writes ``job.json`` into a folder that holds nothing of an earlier run.

    Each rank and the driver get some room in reserve, so that they can tell of a full disk.
    """
    job.folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("rank-*.json", "progress-*.json", "failure-*.json", "job.json", "log-*.txt"):
        for stale in job.folder.glob(pattern):
            stale.unlink()
    for owner in (*range(job.mesh.world_size), "driver"):
        storage.reserve(job.folder, owner)
    shutil.rmtree(job.folder / RANK_LOGS, ignore_errors=True)
    mesh = {"pp": job.mesh.pp, "cp": job.mesh.cp, "tp": job.mesh.tp}
    content = {
        "name": job.name, "workload": job.workload, "mesh": mesh, "device": job.device,
        "reference": str(job.reference) if job.reference else None, "inject": job.inject,
        "timeout_s": job.timeout_s, "run_id": job.nodes.run_id,
    }  # fmt: skip
    write_file(job.folder / "job.json", json.dumps(content, indent=1))


def await_prepared(job: Job, say: Say, patience_s: float = 600.0) -> None:
    """On a node other than the first: waits until node 0 has prepared this run's job folder.

    Raises:
        TimeoutError: it did not within ``patience_s`` seconds.
    """
    path, deadline = job.folder / "job.json", time.monotonic() + patience_s
    say(f"{job.name}: waiting for node 0 to prepare {relative(job.folder, job.root)}")
    while time.monotonic() < deadline:
        try:
            if json.loads(path.read_text("utf-8"))["run_id"] == job.nodes.run_id:
                return
        except (OSError, ValueError, KeyError):
            pass
        time.sleep(POLL_S)
    raise TimeoutError(
        f"node 0 prepared no {job.name} with run id {job.nodes.run_id!r} within {patience_s:.0f} s:"
        f" do all nodes see {job.folder}, and did node 0 start?"
    )


def run(job: Job, say: Say, stops: Sequence[int] = ()) -> Outcome:
    """Runs a prepared job to its end, whatever that is; nothing of it is left running.

    A stop ends the job within five seconds. One that comes as an exception is in the outcome, so
    that a record can be written first.

    Args:
        stops: the signals that have come; the caller notes them here.
    """
    start, log = time.monotonic(), job.folder / f"log-node{job.nodes.rank}.txt"
    log.unlink(missing_ok=True)
    line = [sys.executable, *command(job)[1:]]
    watch = Watch(job.name, job.folder, job.mesh.world_size, say)
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "parlab.lesson.supervise", str(log.resolve()), *line],
        cwd=job.root,
        env={**os.environ, **environment(job)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    stopped: str | None = None
    interrupted: BaseException | None = None
    try:
        while supervisor.poll() is None and not stopped:
            time.sleep(POLL_S)
            watch.look()
            if stops:
                stopped = "interrupted"
            elif time.monotonic() - start > job.timeout_s:
                stopped = "timeout"
    except BaseException as error:  # Ctrl-C, a console that is gone: end the job, then tell
        stopped, interrupted = "interrupted", error
    seconds, ended = time.monotonic() - start, time.time()
    if stopped == "timeout":
        _ask_for_stacks(supervisor, job)
    returncode = _end(supervisor)
    watch.read()  # and says nothing: the console may be what has gone
    ranks = job.mesh.world_size
    documents = numbered(job.folder, ranks, "rank")
    evidence = Evidence(
        world_size=ranks,
        returncode=None if stopped else returncode,
        stopped=stopped,
        seconds=seconds,
        failures=numbered(job.folder, ranks, "failure"),
        progress=watch.progress,
        finished=frozenset(documents),
        log=read_text(log),
        rank_logs=_rank_logs(job),
        now=ended,
        trouble=storage.trouble(job.folder) if len(documents) < ranks else "",
    )
    failure = blame(evidence)
    found = [] if failure else [documents[rank] for rank in range(ranks)]
    return Outcome(found, failure, interrupted, seconds, watch.startup_s, _whole_log(evidence))


def _whole_log(evidence: Evidence) -> str:
    """torchrun's words, then each rank's."""
    said = [f"--- rank {rank}\n{text}" for rank, text in evidence.rank_logs.items() if text]
    return "\n".join([evidence.log, *said])


def _ask_for_stacks(supervisor: "subprocess.Popen[bytes]", job: Job) -> None:
    """Has every rank say where it stands; waits until all have, `STACKS_S` seconds at most."""
    assert supervisor.stdin
    with contextlib.suppress(OSError):
        supervisor.stdin.write(b"s")
        supervisor.stdin.flush()
    said: dict[int, str] = {}
    end = time.monotonic() + STACKS_S
    while time.monotonic() < end:
        time.sleep(POLL_S)
        before, said = said, _rank_logs(job)
        whole = len(said) == job.mesh.world_size // job.nodes.count and said == before
        if whole and all(innermost(log) for log in said.values()):
            return


def _rank_logs(job: Job) -> dict[int, str]:
    """What this machine's ranks have printed."""
    return rank_logs(job.folder, job.nodes.rank * (job.mesh.world_size // job.nodes.count))


def _end(supervisor: "subprocess.Popen[bytes]") -> int | None:
    """Ends the job's processes and gives torchrun's exit status.

    The pipe's end is what tells the supervisor, so a second interruption changes nothing.
    """
    assert supervisor.stdin and supervisor.stdout
    supervisor.stdin.close()
    try:
        supervisor.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()
    said = supervisor.stdout.read()
    supervisor.stdout.close()
    try:
        return int(json.loads(said)["returncode"])
    except (ValueError, TypeError, KeyError):
        return supervisor.returncode or None
