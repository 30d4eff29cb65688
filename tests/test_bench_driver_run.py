"""The driver: nothing is left running, and the right rank is named, whatever happens to a job."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from parlab.bench import driver
from parlab.bench.driver import Job, Nodes, Outcome, command, environment, prepare, run
from parlab.bench.lock import NAME, Locked, locked
from parlab.bench.mesh import Mesh

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks for leftovers in /proc"
)
ROOT = Path(__file__).resolve().parent.parent
FAKES = ROOT / "tests" / "bench_fakes"


def make(folder: Path, inject: Any = None, **changes: Any) -> Job:
    job = Job(
        name="G1_pp", folder=folder / "job", root=ROOT, workload={}, mesh=Mesh(pp=4),
        timeout_s=30.0, inject=inject, launcher=(str(FAKES / "launch.py"),),
        program=(str(FAKES / "rank.py"),),
    )  # fmt: skip
    return dataclasses.replace(job, **changes)


def go(job: Job) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    prepare(job)
    outcome = run(job, said.append)
    assert leftovers(job) == []
    return outcome, said


def processes(job: Job) -> dict[int, str]:
    """Processes that have this job's folder on their command line: pid and line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):  # it may end while we look
                line = (entry / "cmdline").read_bytes().decode()
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
                if str(job.folder) in line and state != "Z":
                    found[int(entry.name)] = line
    return found


def leftovers(job: Job) -> list[str]:
    """The command lines of what still runs for this job."""
    return list(processes(job).values())


def test_a_good_run(tmp_path: Path) -> None:
    outcome, said = go(make(tmp_path))
    assert outcome.failure is None and outcome.interrupted is None
    assert [document["rank"] for document in outcome.documents] == [0, 1, 2, 3]
    assert outcome.startup_s is not None and 0 < outcome.startup_s < outcome.seconds
    assert any("s  rank" in line and "G1_pp" in line for line in said)


@pytest.mark.parametrize("rank", [0, 2, 3])
@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [
        ("kill", "killed", "was ended by signal 9 (SIGKILL: kill -9, or the system had no memory"),
        ("exception", "exception", "ValueError: the fault"),
        ("memory", "memory", "out of memory: 9 GiB"),
        ("exit", "exception", "ended with code 3"),
    ],
)
def test_the_right_rank_is_named(
    tmp_path: Path, rank: int, what: str, kind: str, message: str
) -> None:
    outcome, _ = go(make(tmp_path, {"rank": rank, "what": what, "phase": "measure"}))
    assert outcome.failure is not None and outcome.documents == []
    assert (outcome.failure["kind"], outcome.failure["rank"]) == (kind, rank)
    assert outcome.failure["message"].startswith(f"rank {rank}") and message in str(outcome.failure)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_a_hang_is_found_at_the_time_limit(tmp_path: Path) -> None:
    rank = 2
    job = make(tmp_path, {"rank": rank, "what": "hang", "phase": "measure"}, timeout_s=8.0)
    outcome, _ = go(job)
    assert outcome.failure is not None
    assert (outcome.failure["kind"], outcome.failure["rank"]) == ("hang", rank)
    assert f"rank {rank} stood still" in outcome.failure["message"]
    assert "fault (" in outcome.failure["message"]  # where it stands
    assert "measure 1/3" in outcome.failure["message"]
    assert outcome.seconds < 9
    assert not list(ROOT.glob("core*"))


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_a_rank_that_is_late_to_say_where_it_stands_is_waited_for(tmp_path: Path) -> None:
    """As on a machine with more to do: it speaks when the other ranks have long ended."""
    job = make(tmp_path, {"rank": 2, "what": "hang", "phase": "measure"}, timeout_s=6.0)

    def hold() -> None:
        (pid,) = (
            pid for pid in processes(job)
            if b"\0RANK=2\0" in b"\0" + (Path("/proc") / str(pid) / "environ").read_bytes()
        )  # fmt: skip
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(3.5, os.kill, (pid, signal.SIGCONT)).start()

    threading.Timer(4.5, hold).start()
    outcome, _ = go(job)
    assert outcome.failure is not None and outcome.failure["rank"] == 2
    assert "fault (" in outcome.failure["message"]


def test_slow_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WORK_S", "0.6")
    outcome, _ = go(make(tmp_path, timeout_s=2.5))
    assert outcome.failure is not None and outcome.failure["kind"] == "timeout"
    assert outcome.failure["rank"] is None and "still at work" in outcome.failure["message"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interruption_ends_all_within_five_seconds(tmp_path: Path, number: signal.Signals) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(number, interrupt)
    job = make(tmp_path, {"rank": 0, "what": "hang", "phase": "warmup"})
    prepare(job)
    threading.Timer(1.5, os.kill, (os.getpid(), number)).start()
    start = time.monotonic()
    try:
        outcome = run(job, lambda _: None)
    finally:
        signal.signal(number, before)
    assert isinstance(outcome.interrupted, KeyboardInterrupt)
    assert outcome.failure is not None and outcome.failure["kind"] == "interrupted"
    assert time.monotonic() - start < 1.5 + 5 and leftovers(job) == []


def parent(job: Job) -> subprocess.Popen[bytes]:
    """A process that runs the job, once all four ranks are at work."""
    prepare(job)
    script = (
        "import sys; sys.path.insert(0, 'tests'); from test_bench_driver_run import *;"
        f"run(make(Path({str(job.folder.parent)!r})), print)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    deadline = time.monotonic() + 20
    while len(list(job.folder.glob("progress-*.json"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


def gone_within(job: Job, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while leftovers(job) and time.monotonic() < deadline:
        time.sleep(0.1)
    return not leftovers(job)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_nothing_survives_the_parents_sudden_death(tmp_path: Path) -> None:
    job = make(tmp_path, {"rank": 0, "what": "hang", "phase": "warmup"})
    process = parent(job)
    assert len(leftovers(job)) >= 6  # supervisor, launcher, four ranks
    process.kill()
    process.wait()
    assert gone_within(job, 5)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_nothing_survives_the_launchers_sudden_death(tmp_path: Path) -> None:
    job = make(tmp_path, {"rank": 0, "what": "hang", "phase": "warmup"})
    process = parent(job)
    launchers = [
        pid
        for pid, line in processes(job).items()
        if "launch.py" in line and "supervise" not in line
    ]
    assert len(launchers) == 1
    os.kill(launchers[0], signal.SIGKILL)
    assert gone_within(job, 5)
    assert process.wait(10) == 0


def test_command_that_is_recorded_is_the_one_that_runs(tmp_path: Path) -> None:
    job = Job("G0", ROOT / "build" / "x", ROOT, {}, Mesh(tp=2))
    line = command(job)
    assert line[:3] == ["python", "-m", "torch.distributed.run"]
    assert line[-3:] == ["-m", "parlab.bench.rank", "build/x"]
    assert "--nproc-per-node=2" in line and "--rdzv-endpoint=127.0.0.1:0" in line
    assert not [part for part in line if str(ROOT) in part]
    assert environment(job)["OMP_NUM_THREADS"] == "1"
    assert "GLOO_SOCKET_IFNAME" in environment(job)


def test_nodes_pass_through() -> None:
    nodes = Nodes(count=2, rank=1, endpoint="head:29500", run_id="77")
    job = Job("G0", ROOT / "x", ROOT, {}, Mesh(tp=4), nodes=nodes)
    line = command(job)
    for part in ("--nnodes=2", "--node-rank=1", "--rdzv-endpoint=head:29500", "--rdzv-id=77-G0"):
        assert part in line
    assert "--nproc-per-node=2" in line and not [p for p in line if p.startswith("--local-addr")]
    assert "GLOO_SOCKET_IFNAME" not in environment(job)


def test_files_of_an_earlier_run_are_cleared(tmp_path: Path) -> None:
    job = make(tmp_path)
    job.folder.mkdir()
    for name in ("rank-0.json", "failure-3.json", "progress-1.json"):
        (job.folder / name).write_text("{}")
    (job.folder / "reference.pt").write_text("kept")
    prepare(job)
    kept = {path.name for path in job.folder.iterdir() if "reserve" not in path.name}
    assert kept == {"job.json", "reference.pt"}


def test_launcher_that_does_not_start(tmp_path: Path) -> None:
    outcome, _ = go(make(tmp_path, launcher=(str(tmp_path / "none.py"),)))
    assert outcome.failure is not None and outcome.failure["kind"] == "launch"
    assert outcome.failure["rank"] is None
    assert "can't open file" in "\n".join(outcome.failure["log_tail"])


def test_one_run_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert (tmp_path / NAME).read_text() == f"{os.getpid()}\n"
        with pytest.raises(Locked, match=f"process {os.getpid()}"), locked(tmp_path):
            pass
    with locked(tmp_path):
        pass


def test_a_dead_runs_lock_is_taken_over(tmp_path: Path) -> None:
    script = (
        "from parlab.bench.lock import *; import os, signal\n"
        f"with locked(Path({str(tmp_path)!r})): os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], env={"PYTHONPATH": str(ROOT)})
    assert done.returncode == -signal.SIGKILL and (tmp_path / NAME).read_text()
    with locked(tmp_path):
        assert (tmp_path / NAME).read_text() == f"{os.getpid()}\n"


def test_grace_is_within_the_promise() -> None:
    assert driver.GRACE_S < 5


@pytest.mark.parametrize("attempt", range(12))
def test_none_escapes_while_its_parent_dies(tmp_path: Path, attempt: int) -> None:
    """A parent of many threads is half dead for a while, and its children are still its own."""
    mark = f"{9000 + attempt}.{os.getpid()}"
    script = (
        "import subprocess, threading, time\n"
        "for n in range(200): threading.Thread(target=time.sleep, args=(900,)).start()\n"
        f"for n in range(6): subprocess.Popen(['sleep', '{mark}'], start_new_session=True)"
    )
    supervisor = subprocess.Popen(
        [sys.executable, "-m", "parlab.lesson.supervise", str(tmp_path / "log"),
         sys.executable, "-c", script],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 10
    while len(sleepers(mark)) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert supervisor.stdin and len(sleepers(mark)) == 6
    supervisor.stdin.close()
    assert supervisor.wait(5) == 0
    assert sleepers(mark) == []


def test_a_supervisor_that_cannot_write_its_log_says_so_in_a_line(tmp_path: Path) -> None:
    log, mark = tmp_path / "gone" / "log", tmp_path / "started"
    line = [sys.executable, "-m", "parlab.lesson.supervise", str(log), "touch", str(mark)]
    done = subprocess.run(line, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1 and not mark.exists()
    assert done.stderr == f"{log} cannot be opened: No such file or directory\n"


def sleepers(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if (entry / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                    found.append(int(entry.name))
    return found
