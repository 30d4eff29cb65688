"""Who is blamed, from every kind of trace that a failed run leaves; and pinned revisions."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from parlab.bench import hub
from parlab.bench.blame import Evidence, blame, innermost, positions
from parlab.bench.plan import Refused, find_workload
from parlab.bench.workload import load

ROOT = Path(__file__).resolve().parent.parent
CLOSED = "RuntimeError: [pair.cc:547] Connection closed by peer [127.0.0.1]:4093"
LATE = "RuntimeError: [unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation"
WRAPPED = f"""torch.distributed.DistBackendError: remote process exited

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "/x/torch/distributed/pipelining/_backward.py", line 475, in stage_backward
    work.wait(timeout)  # a word that is no echo
{CLOSED}

The above exception was the direct cause of the following exception:

RuntimeError:
        Failed to run stage backward:"""
SLEEPS = """Fatal Python error: Aborted

Thread 0x00007f0000000001 (most recent call first):
  File "/lib/threading.py", line 327 in wait
  File "/lib/threading.py", line 629 in run

Current thread 0x00007f0000000002 (most recent call first):
  File "/x/parlab/bench/rank.py", line 66 in _fault
  File "/x/parlab/bench/rank.py", line 50 in progress
"""
WAITS = """Current thread 0x00007f0000000002 (most recent call first):
  File "/lib/torch/distributed/distributed_c10d.py", line 3000 in all_reduce
  File "/x/parlab/bench/collectives.py", line 9 in reduce
"""


def stage(phase: str, step: int = 0, time: float = 90.0) -> dict[str, Any]:
    return {"phase": phase, "step": step, "of": 3, "time": time}


def said(message: str, kind: str = "exception", **more: Any) -> dict[str, Any]:
    return {"kind": kind, "message": message, "traceback": f"Traceback\n{message}", **more}


def wrapped(time: float = 0) -> dict[str, Any]:
    """A lost peer as torch's pipelining tells of it."""
    return {"kind": "exception", "message": "RuntimeError:\n        Failed to run stage backward:",
            "traceback": WRAPPED, "time": time}  # fmt: skip


def evidence(**changes: Any) -> Evidence:
    given: dict[str, Any] = {
        "world_size": 3, "returncode": 1, "stopped": None, "seconds": 30.0, "failures": {},
        "progress": {rank: stage("measure", 1) for rank in range(3)}, "finished": frozenset(),
        "log": "", "rank_logs": {}, "now": 100.0,
    }  # fmt: skip
    return Evidence(**{**given, **changes})


def exits(**codes: int) -> str:
    """torchrun's list of failures, keys like ``r1``."""
    return "\n".join(
        f"[{n}]:\n  rank      : {key[1:]} (local_rank: {key[1:]})\n  exitcode  : {code} (pid: 7)"
        for n, (key, code) in enumerate(codes.items())
    )


@pytest.mark.parametrize(
    ("changes", "kind", "rank"),
    [
        # The first real error counts; what others say of a lost peer is an echo.
        ({"failures": {0: said(CLOSED, time=1), 2: said("ValueError: no", time=2)}},
         "exception", 2),
        ({"failures": {1: said("A: x", time=9), 2: said("B: y", time=8)}}, "exception", 2),
        ({"failures": {1: said("torch.OutOfMemoryError: CUDA out of memory")}}, "memory", 1),
        ({"failures": {1: said("no", kind="memory")}}, "memory", 1),
        ({"failures": {1: said("RuntimeError: can't allocate memory: 9")}}, "memory", 1),
        # A signal that nobody but the outside sends, also when echoes came first.
        ({"log": exits(r1=-9)}, "killed", 1),
        ({"log": exits(r0=1, r1=-9), "failures": {0: said(CLOSED)}}, "killed", 1),
        ({"log": exits(r0=-15, r2=-11)}, "killed", 2),
        # An echo in what led to an error is one; whom a signal ended outranks what came of it.
        ({"log": exits(r0=1, r2=-9), "failures": {0: wrapped()}}, "killed", 2),
        ({"failures": {0: wrapped(), 2: wrapped()}}, "killed", 1),
        ({"failures": {0: wrapped(1), 2: said("ValueError: no", time=2)}}, "exception", 2),
        ({"log": exits(r0=1, r1=-9), "failures": {0: said("ValueError: no")}}, "killed", 1),
        ({"log": exits(r0=1, r2=-7), "failures": {0: said("A: x"), 1: said(CLOSED)}}, "killed", 2),
        # torchrun's own SIGKILL, for a rank that did not heed its SIGTERM, is none of these,
        ({"log": "W1 Unable to shutdown process 7 via 15, forcefully exiting via 9\n"
          + exits(r1=-9, r2=1), "failures": {2: said("ValueError: no")}}, "exception", 2),
        # and neither is the abort of NCCL's watchdog, or of C++, for want of a peer.
        ({"log": exits(r1=-6, r2=1), "failures": {2: said("ValueError: no")}}, "exception", 2),
        ({"log": exits(r0=-6, r1=-9)}, "killed", 1),
        ({"log": exits(r0=1, r1=-6), "failures": {0: said(CLOSED)}}, "killed", 1),
        # A rank that ended without a word, and one whose library met a network of its own.
        ({"log": exits(r0=1, r2=3), "failures": {0: said(CLOSED)}}, "exception", 2),
        ({"failures": {0: said("ConnectionError: the hub timed out"), 1: said(CLOSED)}},
         "exception", 0),
        # Only echoes: the rank that said nothing and is furthest behind.
        ({"failures": {0: said(CLOSED), 1: said(CLOSED)}}, "killed", 2),
        ({"failures": {0: said(LATE), 2: said(LATE)}}, "hang", 1),
        ({"log": exits(r2=3)}, "exception", 2),
        ({"returncode": 0, "finished": frozenset({0, 2})}, "output", 1),
        ({"log": "No module named torch", "progress": {}}, "launch", None),
        ({"stopped": "interrupted", "returncode": None}, "interrupted", None),
        # The time is up.
        ({"stopped": "timeout", "progress": {0: stage("trace"), 1: stage("measure", 2),
          2: stage("trace")}}, "hang", 1),
        ({"stopped": "timeout", "progress": {0: stage("measure", 2), 1: stage("measure", 2, 80.0),
          2: stage("measure", 2)}}, "hang", 1),
        ({"stopped": "timeout", "rank_logs": {0: WAITS, 1: WAITS, 2: SLEEPS}}, "hang", 2),
        ({"stopped": "timeout", "rank_logs": {0: SLEEPS, 1: WAITS, 2: WAITS},
          "log": exits(r0=-6, r1=-6, r2=-6)}, "hang", 0),
        ({"stopped": "timeout", "progress": {0: stage("measure", 1, 99.9),
          1: stage("measure", 1, 99.8), 2: stage("measure", 1, 99.7)}}, "timeout", None),
        ({"stopped": "timeout", "progress": {}}, "timeout", None),
        # Some stacks came too late: who is known to wait is not the one who hangs.
        ({"stopped": "timeout", "rank_logs": {1: WAITS, 2: WAITS}}, "hang", 0),
        # rank 0's stack did not arrive: the one that is known not to wait is named
        ({"stopped": "timeout", "rank_logs": {1: WAITS, 2: SLEEPS}}, "hang", 2),
    ],
)  # fmt: skip
def test_who_is_blamed(changes: dict[str, Any], kind: str, rank: int | None) -> None:
    failure = blame(evidence(**changes))
    assert failure is not None
    assert (failure["kind"], failure["rank"]) == (kind, rank)
    assert failure["message"]


@pytest.mark.parametrize(
    "changes",
    [
        {"log": exits(r1=1)}, {"log": ""}, {"failures": {0: said(CLOSED)}}, {"returncode": 0},
    ],
)  # fmt: skip
def test_what_keeps_files_from_being_written_is_said(changes: dict[str, Any]) -> None:
    failure = blame(evidence(**changes, trouble="x cannot be written: No space left on device"))
    assert failure and "x cannot be written: No space left on device" in failure["message"]


def test_nobody_where_all_went_well() -> None:
    assert blame(evidence(returncode=0, finished=frozenset(range(3)))) is None


def test_the_tail_is_the_blamed_ranks_own() -> None:
    logs = {0: "zero", 1: "\n".join(map(str, range(50)))}
    failure = blame(evidence(log=exits(r1=-9), rank_logs=logs))
    assert failure and failure["log_tail"] == [str(n) for n in range(30, 50)]


def test_stacks_are_read_from_the_main_thread() -> None:
    assert innermost(SLEEPS)[0].startswith("rank.py:66 _fault")
    assert innermost("nothing of the kind") == []
    failure = blame(evidence(stopped="timeout", rank_logs={0: WAITS, 1: WAITS, 2: SLEEPS}))
    assert failure and "in rank.py:66 _fault" in failure["message"]


def test_positions_put_equal_ranks_together() -> None:
    progress = {0: stage("measure", 1), 1: stage("measure", 1), 3: stage("measure", 1)}
    assert positions(progress, range(4)) == "ranks 0,1,3: measure 1/3, rank 2: not started"


def test_a_revision_becomes_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def git(*arguments: str) -> str:
        line = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "x")
    commit = git("rev-parse", "HEAD")
    monkeypatch.setitem(hub.HUBS, "huggingface", "file://" + str(tmp_path))
    monkeypatch.delenv("PARLAB_HUB", raising=False)
    assert hub.resolve("a/b", "main") == commit
    assert hub.resolve("a/b", commit) == commit
    work = load(ROOT / "benchmarks" / "workloads" / "qwen3-0.6b.toml")
    assert hub.pin(work) == work  # a commit already: nothing is asked
    moving = dataclasses.replace(work, model=dataclasses.replace(work.model, revision="main"))
    assert hub.pin(moving).model.revision == commit
    with pytest.raises(hub.Unresolved, match="--upload-pack=no': there is no such branch or tag"):
        hub.resolve("a/b", "--upload-pack=no")
    with pytest.raises(hub.Unresolved, match="'nope': there is no such branch or tag"):
        hub.resolve("a/b", "nope")
    monkeypatch.setitem(hub.HUBS, "modelscope", f"file://{tmp_path.parent}/{{}}")
    monkeypatch.setitem(hub.HUBS, "huggingface", "file:///nowhere/{}")
    assert hub.resolve(f"modelscope:{tmp_path.name}", "main") == commit  # where its weights are
    monkeypatch.setenv("PARLAB_HUB", "elsewhere")
    with pytest.raises(hub.Unresolved, match="must be one of huggingface, modelscope"):
        hub.resolve("a/b", "main")


def test_an_unknown_workload_names_those_that_exist() -> None:
    with pytest.raises(Refused, match="there are: qwen3-0.6b, tiny-cpu"):
        find_workload(ROOT, "tiny")
    assert find_workload(ROOT, "x/own.toml") == Path("x/own.toml")
