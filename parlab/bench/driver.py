"""One job under torchrun: started, watched, ended. No torch in this process."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parlab.bench.blame import Evidence, blame, positions
from parlab.bench.mesh import Mesh
from parlab.bench.record import write_file

POLL_S, SAY_S, GRACE_S, STACKS_S = 0.1, 5.0, 4.5, 1.0
RANK_LOGS = "ranks"
LAUNCHER = ("-m", "torch.distributed.run")
PROGRAM = ("-m", "parlab.bench.rank")
Say = Callable[[str], None]


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
    """Writes ``job.json`` into a folder that holds nothing of an earlier run."""
    job.folder.mkdir(parents=True, exist_ok=True)
    for pattern in ("rank-*.json", "progress-*.json", "failure-*.json", "job.json", "log-*.txt"):
        for stale in job.folder.glob(pattern):
            stale.unlink()
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


def run(job: Job, say: Say) -> Outcome:
    """Runs a prepared job to its end, whatever that is; nothing of it is left running.

    An interruption (Ctrl-C, SIGTERM as the caller turned it into an exception) ends the job within
    five seconds and comes back in the outcome, so that a record can be written first.
    """
    start, log = time.monotonic(), job.folder / f"log-node{job.nodes.rank}.txt"
    log.unlink(missing_ok=True)
    line = [sys.executable, *command(job)[1:]]
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "parlab.lesson.supervise", str(log.resolve()), *line],
        cwd=job.root,
        env={**os.environ, **environment(job)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    watch = _Watch(job, say, start)
    stopped: str | None = None
    interrupted: BaseException | None = None
    try:
        while supervisor.poll() is None and not stopped:
            time.sleep(POLL_S)
            watch.look()
            stopped = "timeout" if time.monotonic() - start > job.timeout_s else None
    except BaseException as error:  # Ctrl-C, SIGTERM: end the job, then tell
        stopped, interrupted = "interrupted", error
    seconds = time.monotonic() - start
    ended = time.time()
    if stopped == "timeout":
        _ask_for_stacks(supervisor)
    returncode = _end(supervisor)
    watch.look()
    text, logs = _read_text(log), _rank_logs(job)
    documents = _numbered(job, "rank")
    evidence = Evidence(
        world_size=job.mesh.world_size,
        returncode=None if stopped else returncode,
        stopped=stopped,
        seconds=seconds,
        failures=_numbered(job, "failure"),
        progress=watch.progress,
        finished=frozenset(documents),
        log=text,
        rank_logs=logs,
        now=ended,
    )
    failure = blame(evidence)
    found = [] if failure else [documents[rank] for rank in range(job.mesh.world_size)]
    whole = "\n".join([text, *(f"--- rank {rank}\n{said}" for rank, said in logs.items() if said)])
    return Outcome(found, failure, interrupted, seconds, watch.startup_s, whole)


def _ask_for_stacks(supervisor: "subprocess.Popen[bytes]") -> None:
    """Has every rank say where it stands, for whoever reads the log; costs a second."""
    assert supervisor.stdin
    with contextlib.suppress(OSError):
        supervisor.stdin.write(b"s")
        supervisor.stdin.flush()
        time.sleep(STACKS_S)


def _rank_logs(job: Job) -> dict[int, str]:
    """Rank → what it printed, errors last; of this machine's ranks only."""
    first = job.nodes.rank * (job.mesh.world_size // job.nodes.count)
    logs: dict[int, str] = {}
    for name in ("stdout.log", "stderr.log"):
        for path in sorted((job.folder / RANK_LOGS).glob(f"*/attempt_*/*/{name}")):
            if path.parent.name.isdigit():
                rank = first + int(path.parent.name)
                logs[rank] = logs.get(rank, "") + _read_text(path)
    return dict(sorted(logs.items()))


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


class _Watch:
    """Follows the progress files and says what is new."""

    def __init__(self, job: Job, say: Say, start: float) -> None:
        self.job, self.say, self.start = job, say, start
        self.progress: dict[int, dict[str, Any]] = {}
        self.startup_s: float | None = None
        self._said, self._said_at = "", 0.0

    def look(self) -> None:
        """Reads the files once; speaks when the ranks got on, or every few seconds."""
        self.progress = _numbered(self.job, "progress") or self.progress
        ranks = range(self.job.mesh.world_size)
        elapsed = time.monotonic() - self.start
        begun = {"start", "build", None}
        phases = [self.progress.get(rank, {}).get("phase") for rank in ranks]
        if self.startup_s is None and not begun & set(phases):
            self.startup_s = elapsed
        state = positions(self.progress, ranks)
        if elapsed - self._said_at >= (0.5 if state != self._said else SAY_S):
            self.say(f"{self.job.name:<10} {elapsed:6.1f} s  {state}")
            self._said, self._said_at = state, elapsed


def _numbered(job: Job, what: str) -> dict[int, dict[str, Any]]:
    """Rank → content of the ``<what>-<rank>.json`` files that can be read."""
    found = {}
    for rank in range(job.mesh.world_size):
        try:
            content = json.loads((job.folder / f"{what}-{rank}.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict):
            found[rank] = content
    return found


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
