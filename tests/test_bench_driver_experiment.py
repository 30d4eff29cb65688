"""A whole run with fake ranks: records, history, failures, decision; nothing lost."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from parlab import cli
from parlab.bench import machine
from parlab.bench.driver import Nodes
from parlab.bench.experiment import bench
from parlab.bench.lock import Locked
from parlab.bench.machine import Machine
from parlab.bench.mesh import Mesh
from parlab.bench.plan import Refused, Request, plan
from parlab.bench.rules import find_root
from parlab.lesson import record_files, soundness

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "benchmarks" / "workloads" / "tiny-cpu.toml"
PROBE = {
    "torch": "2.13.0", "cuda": None, "gpus": [], "gloo": True, "nccl": False, "mesh": True,
    "pipelining": True, "within_rank": True, "torchrun": True, "errors": {},
}  # fmt: skip


@pytest.fixture(autouse=True)
def this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores whatever the tests run on, and no process to ask torch."""
    monkeypatch.setattr(machine, "look", lambda: Machine("a CPU", 2, 8000.0, PROBE))
    monkeypatch.setenv("FAKE_WORK_S", "0.02")


def ask(folder: Path, **changes: Any) -> Request:
    given: dict[str, Any] = {
        "root": ROOT, "results": folder / "results",
        "launcher": ("tests/bench_fakes/launch.py",), "program": ("tests/bench_fakes/rank.py",),
    }  # fmt: skip
    return Request(**{**given, **changes})


def go(request: Request) -> tuple[bool, str]:
    said: list[str] = []
    return bench(request, said.append), "\n".join(said)


def load(folder: Path, name: str) -> dict[str, Any]:
    content = json.loads((folder / "results" / f"{name}.json").read_text("utf-8"))
    assert soundness.faults(content) == []
    return content


def test_all_groups_leave_valid_records_and_a_decision(tmp_path: Path) -> None:
    good, said = go(ask(tmp_path))
    assert good
    names = sorted(path.stem for path in (tmp_path / "results").glob("*.json"))
    assert names == ["G0_tp", "G1_pp", "G2_pp_tp", "baseline", "decision"]
    tp, alone = load(tmp_path, "G0_tp"), load(tmp_path, "baseline")
    assert tp["mesh"]["tp"] == 4 and tp["mesh"]["coordinates"][3]["tp"] == 3
    assert tp["evidence_level"] == "cpu_gloo" and tp["oversubscribed"] is True
    assert alone["oversubscribed"] is False and alone["workload"]["world_size"] == 1
    metrics = tp["metrics"]
    assert metrics["throughput"]["median"] == pytest.approx(1024 / 0.105, rel=1e-3)
    assert metrics["peak_memory_mb"] == {
        "max": 103.0, "ranks": [100.0, 101.0, 102.0, 103.0], "source": "VmHWM"
    }  # fmt: skip
    assert metrics["communication"][0]["calls"] == 64
    assert metrics["scaling_efficiency"] == pytest.approx(0.12 / 0.105 / 4)
    assert alone["metrics"]["scaling_efficiency"] is None
    assert "compared with" in alone["reasons"]["metrics.scaling_efficiency"]
    assert tp["artifact"]["command"][0] == "python" and tp["artifact"]["commit"]
    assert (tmp_path / "results" / tp["artifact"]["timeline"]).is_file()
    assert (tmp_path / "results" / tp["artifact"]["log"]).is_file()
    choice = load(tmp_path, "decision")
    assert choice["decision"] == "accept" and len(choice["candidates"]) == 3
    assert "no evidence of speed" in choice["meaning"]
    assert choice["functions"]["sha256"] == tp["decision"]["functions"]["sha256"]
    assert "G2_pp_tp" in said and "decision: accept" in said


def test_no_machine_path_in_a_record(tmp_path: Path) -> None:
    folder = ROOT / "build" / f"bench-test-{os.getpid()}"
    try:
        go(ask(folder, groups=("baseline", "G1_pp"), inject={
            "G1_pp": {"rank": 1, "what": "exception", "phase": "measure"}}))  # fmt: skip
        texts = [path.read_text("utf-8") for path in (folder / "results").glob("*.json")]
        texts += [path.read_text("utf-8") for path in (folder / "results").glob("*/*.log")]
        assert len(texts) >= 4
        for text in texts:
            assert str(ROOT) not in text and str(Path.home()) + "/" not in text
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_correctness_needs_the_baselines_reference(tmp_path: Path) -> None:
    go(ask(tmp_path, groups=("baseline",)))
    jobs = tmp_path / "results" / "jobs"
    (jobs / "baseline" / "reference.pt").write_text("x")
    go(ask(tmp_path, groups=("G0_tp",)))
    assert load(tmp_path, "G0_tp")["metrics"]["correctness"] == {
        "loss_difference": pytest.approx(3e-7), "largest_gradient_error": pytest.approx(4e-6),
        "parameter": "lm_head.weight", "largest_parameter_error": pytest.approx(2e-5),
        "parameters_after_steps": 3,
    }  # fmt: skip
    assert (jobs / ".gitignore").read_text() == "*\n"
    (jobs / "baseline" / "reference.pt").unlink()
    go(ask(tmp_path, groups=("G0_tp",)))
    later = load(tmp_path, "G0_tp")
    assert later["metrics"]["correctness"] is None
    assert later["reasons"]["metrics.correctness"]


def test_baseline_that_does_not_fit_leaves_nulls_with_the_reason(tmp_path: Path) -> None:
    fault = {"baseline": {"rank": 0, "what": "memory", "phase": "build"}}
    good, _ = go(ask(tmp_path, groups=("baseline", "G0_tp"), inject=fault))
    assert not good
    group = load(tmp_path, "G0_tp")
    assert group["failure"] is None and group["metrics"]["throughput"]
    for key in ("correctness", "scaling_efficiency"):
        assert group["metrics"][key] is None
        assert "baseline failed: rank 0: out of memory" in group["reasons"][f"metrics.{key}"]


@pytest.mark.parametrize(
    ("what", "kind"), [("kill", "killed"), ("exception", "exception"), ("memory", "memory")]
)
def test_a_failed_run_leaves_a_record_and_only_runtime(
    tmp_path: Path, what: str, kind: str
) -> None:
    fault = {"G1_pp": {"rank": 2, "what": what, "phase": "measure"}}
    good, said = go(ask(tmp_path, groups=("G1_pp", "G0_tp"), inject=fault))
    assert not good and "FAILED" in said
    failed = load(tmp_path, "G1_pp")
    assert (failed["failure"]["kind"], failed["failure"]["rank"]) == (kind, 2)
    assert failed["decision"]["gate_failures"] == ["runtime"]
    assert failed["metrics"]["throughput"] is None
    assert load(tmp_path, "decision")["candidate"] == "G0_tp"  # the others still run
    reasons = {c["name"]: c["gate_failures"] for c in load(tmp_path, "decision")["candidates"]}
    assert reasons["G1_pp"] == ["runtime"]


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_interruption_leaves_a_record_then_goes_on_up(tmp_path: Path, stop: signal.Signals) -> None:
    fault = {"G1_pp": {"rank": 0, "what": "hang", "phase": "warmup"}}
    threading.Timer(1.5, os.kill, (os.getpid(), stop)).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        go(ask(tmp_path, groups=("G1_pp",), inject=fault))
    assert time.monotonic() - start < 1.5 + 5
    failed = load(tmp_path, "G1_pp")
    assert failed["failure"]["kind"] == "interrupted"
    assert failed["decision"]["gate_failures"] == ["runtime"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler


HANGS = """
import sys; sys.path.insert(0, 'tests'); from test_bench_driver_experiment import *
machine.look = lambda: Machine('a CPU', 2, 8000.0, PROBE)
go(ask(Path({folder!r}), groups=('G1_pp',),
       inject={{'G1_pp': {{'rank': 0, 'what': 'hang', 'phase': 'warmup'}}}}))
"""


def hanging(folder: Path) -> subprocess.Popen[bytes]:
    """A process whose G1_pp hangs, once all four ranks are at work."""
    script = HANGS.format(folder=str(folder))
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    jobs, deadline = folder / "results" / "jobs" / "G1_pp", time.monotonic() + 20
    while len(list(jobs.glob("progress-*.json"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
@pytest.mark.parametrize(
    "stops", [["SIGTERM"] * 4, ["SIGHUP", "SIGINT"] * 2, ["SIGINT"] * 4], ids="+".join
)
def test_a_second_stop_does_not_cut_the_record_off(tmp_path: Path, stops: list[str]) -> None:
    process = hanging(tmp_path)
    for stop in stops:
        process.send_signal(getattr(signal, stop))
        time.sleep(0.02)
    process.wait(10)
    assert load(tmp_path, "G1_pp")["failure"]["kind"] == "interrupted"


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_sudden_death_leaves_a_record_too(tmp_path: Path) -> None:
    process = hanging(tmp_path)
    with pytest.raises(Locked, match=f"process {process.pid}"):
        go(ask(tmp_path, groups=("G0_tp",)))
    process.kill()
    process.wait()
    content = load(tmp_path, "G1_pp")
    assert content["failure"]["kind"] == "unfinished"
    assert content["decision"]["gate_failures"] == ["runtime"]
    good, _ = go(ask(tmp_path, groups=("G1_pp",)))  # the lock is free, the record moves
    assert good and len(list((tmp_path / "results" / "history").iterdir())) == 1


def test_predecessors_move_to_history(tmp_path: Path) -> None:
    for _ in range(3):
        go(ask(tmp_path, groups=("G0_tp",)))
        time.sleep(0.01)
    kept = sorted((tmp_path / "results" / "history").glob("G0_tp-*.json"))
    assert len(kept) == 2
    runs = {json.loads(path.read_text("utf-8"))["run_id"] for path in kept}
    assert load(tmp_path, "G0_tp")["run_id"] not in runs
    for path in kept:
        assert record_files.read(path)["failure"] is None


def test_a_damaged_record_is_kept_and_said(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "G0_tp.json").write_text('{"half": ')
    (results / "G1_pp.json").write_text("{}")
    good, said = go(ask(tmp_path, groups=("G0_tp",)))
    assert good
    (kept,) = (results / "history").glob("G0_tp-*.json")
    assert kept.read_text() == '{"half": '
    assert "G1_pp.json is damaged: $: " in said and (results / "G1_pp.json").read_text() == "{}"


def test_a_place_that_cannot_be_written_is_an_early_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    with pytest.raises(OSError, match="results"):
        go(ask(tmp_path))
    assert cli.main(["bench", "--results", str(tmp_path / "results"), "--groups", "G0_tp"]) == 1
    assert "results" in capsys.readouterr().err


def test_full_disk_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go(ask(tmp_path, groups=("G0_tp",)))
    before = load(tmp_path, "G0_tp")

    def full(_file: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        go(ask(tmp_path, groups=("G0_tp",)))
    assert load(tmp_path, "G0_tp") == before
    assert not list((tmp_path / "results").glob(".*.tmp"))


def test_full_disk_at_the_end_keeps_the_begun_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, calls = os.fsync, []

    def full(file: int) -> None:
        calls.append(file)
        if len(calls) > 1:
            raise OSError(28, "No space left on device")
        sync(file)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        go(ask(tmp_path, groups=("G0_tp",)))
    assert load(tmp_path, "G0_tp")["failure"]["kind"] == "unfinished"


def test_everything_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    request = ask(
        tmp_path, groups=("G0_tp", "G9"), meshes=(Mesh(pp=3), Mesh(tp=8)), world_size=8,
        device="cuda",
    )  # fmt: skip
    with pytest.raises(Refused) as caught:
        bench(request, print)
    said = str(caught.value)
    for part in (
        "no GPU is visible", "G9 is no group", "G0_tp: mesh_product: pp × cp × tp = 1 × 1 × 4 = 4",
        "pp3_cp1_tp1: mesh_product", "pp3_cp1_tp1: pipeline_layers: num_layers = 8 over pp = 3",
        "pp1_cp1_tp8: kv_heads: num_kv_heads = 4 over tp = 8", "8 ranks but 0 GPU(s)",
    ):  # fmt: skip
        assert part in said
    assert not (tmp_path / "results").exists()


def test_old_torch_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = Machine("a CPU", 2, 8000.0, {**PROBE, "torch": "2.6.0", "pipelining": None})
    monkeypatch.setattr(machine, "look", lambda: old)
    with pytest.raises(Refused) as caught:
        bench(ask(tmp_path), print)
    assert caught.value.reasons == [
        "torch 2.6.0 is too old: before 2.8 pipelines hang on gloo; "
        "install a newer one, as in `pip install --upgrade torch`"
    ]


def test_a_folded_schedule_needs_a_torch_that_hands_tensors_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch 2.8 aborts in gloo: its ZBV sends from a rank to itself."""
    old = Machine("a CPU", 2, 8000.0, {**PROBE, "torch": "2.8.0", "within_rank": False})
    monkeypatch.setattr(machine, "look", lambda: old)
    workload = TINY.read_text("utf-8").replace('"1F1B"', '"ZBVZeroBubble"')
    workload = workload.replace("chunks_per_rank = 1", "chunks_per_rank = 2")
    text = TINY.with_name("parallel-training.txt")
    workload = workload.replace('"parallel-training.txt"', f'"{text}"')
    (tmp_path / "zbv.toml").write_text(workload, "utf-8")
    request = ask(tmp_path, workload=str(tmp_path / "zbv.toml"))
    with pytest.raises(Refused, match="ZBVZeroBubble: torch 2.8.0 sends from a rank to itself"):
        plan(request)
    assert plan(dataclasses.replace(request, groups=("baseline", "G0_tp")))


def test_several_nodes_need_to_be_told_where_to_meet(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught:
        plan(ask(tmp_path, meshes=(Mesh(pp=3),), nodes=Nodes(count=2, rank=2)))
    said = str(caught.value)
    for part in ("3 ranks over 2 nodes leave 1", "--node-rank 2", "--rdzv-endpoint", "--run-id"):
        assert part in said


def test_meshes_become_groups_and_are_compared_among_themselves(tmp_path: Path) -> None:
    request = ask(tmp_path, groups=("baseline",), meshes=(Mesh(pp=2), Mesh(cp=2)))
    good, _ = go(request)
    assert good
    choice = load(tmp_path, "decision")
    assert {c["name"] for c in choice["candidates"]} == {"pp2_cp1_tp1", "pp1_cp2_tp1"}
    go(ask(tmp_path, groups=("G0_tp",)))
    choice = load(tmp_path, "decision")
    assert choice["left_out"]["pp2_cp1_tp1"] == "2 rank(s), not 4"


def test_auto_takes_gpus_where_each_rank_gets_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus = [{"name": "GPU", "memory_mb": 80_000.0}]
    with_gpu = Machine("a CPU", 2, 8000.0, {**PROBE, "gpus": gpus, "nccl": [2, 27, 0]})
    monkeypatch.setattr(machine, "look", lambda: with_gpu)
    assert plan(ask(tmp_path))[0].device == "cpu"
    assert plan(ask(tmp_path, groups=("baseline",)))[0].device == "cuda"


def test_root_is_found_from_below() -> None:
    assert find_root(ROOT / "parlab" / "bench") == ROOT


def test_bad_meshes_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--mesh", "dp=2", "--mesh", "pp"]) == 1
    said = capsys.readouterr().out
    assert "'dp=2' is not one of" in said and "'pp' is not one of" in said


def test_preflight_alone(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--preflight"]) == 0
    said = capsys.readouterr().out
    for part in ("CUDA", "NCCL", "torchrun", "DeviceMesh", "visible GPUs", "cores", "memory"):
        assert part in said
