"""What goes wrong inside a run: full disks, lost folders, stops, no numbers, wrong training.

Each is said in a line that names the place and the remedy, and stands in the record.
"""

from __future__ import annotations

import errno
import json
import math
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bench_meshes
import pytest
import torch
from test_bench_driver_experiment import ask, go, load, this_machine  # noqa: F401
from test_bench_driver_report import MESHES, ROOT, RULES, WORK, documents, fill, make
from test_bench_driver_torchrun import real

from parlab import cli
from parlab.bench import assemble, correctness, decide, experiment, rank, storage
from parlab.bench.axes import one_process
from parlab.bench.driver import Job, Outcome
from parlab.bench.finite import NotFinite, check_losses
from parlab.bench.mesh import Mesh
from parlab.bench.parameters import random_weights
from parlab.bench.report import report
from parlab.bench.training import Trainer
from parlab.lesson import soundness
from parlab.lesson.agreement import disagreement
from parlab.lesson.files import write_whole

FULL = OSError(errno.ENOSPC, "No space left on device")


# ------------------------------------------------------------------------- disks and folders


def like_torch_save(path: Path) -> None:
    """A full disk as `torch.save` tells of it."""
    path.write_bytes(b"half")
    try:
        raise FULL
    except OSError:
        raise RuntimeError("unexpected pos 704 vs 598")  # noqa: B904


def test_a_failed_write_names_the_file_and_the_cause(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left.*reference.pt'") as caught:
        write_whole(tmp_path / "reference.pt", like_torch_save)
    assert caught.value.errno == errno.ENOSPC and not list(tmp_path.iterdir())
    said = storage.explain(caught.value)
    for part in (str(tmp_path / "reference.pt"), "No space left", "MB are free", "--results"):
        assert part in said
    assert "\n" not in said


def test_a_lost_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught:
        write_whole(tmp_path / "results" / "jobs" / "x.json", lambda path: path.write_text("x"))
    said = storage.explain(caught.value)
    assert f"the folder {tmp_path / 'results'} is gone" in said and "--results" in said
    other = FileNotFoundError(errno.ENOENT, "No such file", str(tmp_path / "text.txt"))
    assert storage.explain(other) == str(other)


def test_trouble_is_found_and_leaves_nothing(tmp_path: Path) -> None:
    assert storage.trouble(tmp_path) == "" and not list(tmp_path.iterdir())
    assert "is gone" in storage.trouble(tmp_path / "none")


def full_until_released(monkeypatch: pytest.MonkeyPatch, held: Path) -> None:
    def put(path: Path, write: Any) -> None:
        if held.exists():
            raise OSError(FULL.errno, FULL.strerror, str(path))
        write_whole(path, write)

    monkeypatch.setattr(rank, "write_whole", put)


def rank_job(folder: Path) -> rank.Job:
    (folder / "job.json").write_text(json.dumps({"workload": {}}))
    return rank.Job(folder)


def test_a_rank_tells_of_a_full_disk_out_of_its_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = rank_job(tmp_path)
    storage.reserve(tmp_path, rank.RANK)
    full_until_released(monkeypatch, tmp_path / f"reserve-{rank.RANK}")
    with pytest.raises(OSError) as caught:
        job.progress("build")
    job.fail(caught.value)
    said = json.loads((tmp_path / f"failure-{rank.RANK}.json").read_text())
    for part in ("progress-0.json cannot be written: No space left", "--results"):
        assert part in said["message"]
    assert "No space left" in said["traceback"]


def wrapped(error: BaseException) -> RuntimeError:
    """As torch.distributed.pipelining hands an error on."""
    try:
        raise RuntimeError("\n        Failed to run stage backward:\n  [Tensor(1, 2)]") from error
    except RuntimeError as outer:
        return outer


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError("no"), "exception", "ValueError: no"),
        (wrapped(ValueError("no")), "exception", "ValueError: no"),
        (wrapped(wrapped(RuntimeError("no"))), "exception", "RuntimeError: no"),
        (wrapped(torch.OutOfMemoryError("9 GiB")), "memory", "OutOfMemoryError: 9 GiB"),
        (wrapped(RuntimeError("can't allocate memory")), "memory", "RuntimeError: can't"),
    ],
)
def test_a_rank_says_what_pipelining_wraps(
    tmp_path: Path, error: BaseException, kind: str, said: str
) -> None:
    rank_job(tmp_path).fail(error)
    failure = json.loads((tmp_path / f"failure-{rank.RANK}.json").read_text())
    assert failure["kind"] == kind and failure["message"].startswith(said)


def test_results_folder_moved_while_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_WORK_S", "0.3")
    results = tmp_path / "results"
    threading.Timer(1.0, results.rename, (tmp_path / "elsewhere",)).start()
    with pytest.raises(FileNotFoundError) as caught:
        go(ask(tmp_path, groups=("G1_pp", "G0_tp")))
    assert f"the folder {results} is gone" in storage.explain(caught.value)
    assert not results.exists()


def test_job_folder_moved_while_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_WORK_S", "0.3")
    job = tmp_path / "results" / "jobs" / "G1_pp"
    threading.Timer(1.0, job.rename, (tmp_path / "elsewhere",)).start()
    good, said = go(ask(tmp_path, groups=("G1_pp",)))
    assert not (tmp_path / "results" / "report.md").exists()  # none was there
    failure = load(tmp_path, "G1_pp")["failure"]
    assert not good and f"the folder {job} is gone" in failure["message"]
    assert failure["message"] in said


def test_an_error_of_the_system_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError(FULL.errno, FULL.strerror, str(tmp_path / "G0_tp.json"))

    monkeypatch.setattr("parlab.bench.command.bench", full)
    assert cli.main(["bench", "--results", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"parlab: {tmp_path / 'G0_tp.json'} cannot be written: No space left")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for all that a run writes but the reference."""
    place = tmp_path / "disk"
    place.mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(place)]
    if not shutil.which("mount") or subprocess.run(line, capture_output=True).returncode:
        pytest.skip("no right to mount a small disk")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
@pytest.mark.parametrize("left", ["for all but the reference", "nothing"])
def test_a_full_disk_is_named_as_the_cause(small_disk: Path, left: str) -> None:
    if left == "nothing":
        timer = threading.Timer(1.0, fill_up, (small_disk,))
        timer.start()
    outcome = real(small_disk, Mesh())
    assert outcome.failure is not None
    for part in (str(small_disk), "No space left on device", "--results"):
        assert part in outcome.failure["message"]
    if left != "nothing":
        assert "reference-gradients.pt cannot be written" in outcome.failure["message"]
        assert any("No space left" in line for line in outcome.failure["log_tail"])
    assert not list(small_disk.rglob(".*.tmp"))


def fill_up(folder: Path) -> None:
    try:
        with (folder / "big").open("wb", buffering=0) as file:
            while True:
                file.write(bytes(1024))
    except OSError:
        pass


# ------------------------------------------------------------------------------------- stops


@pytest.mark.parametrize(
    ("where", "kind"), [("begin", "interrupted"), ("finish_soundly", None), ("_choose", None)]
)
def test_a_stop_at_any_moment_leaves_a_finished_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, kind: str | None
) -> None:
    inner = getattr(experiment, where)

    def stopped(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        return inner(*arguments)

    page = tmp_path / "results" / "report.md"
    page.parent.mkdir()
    page.write_text("the one before: **accept** G0_tp")
    monkeypatch.setattr(experiment, where, stopped)
    with pytest.raises(KeyboardInterrupt):
        go(ask(tmp_path, groups=("G0_tp",)))
    assert "accept" not in page.read_text() and "parlab bench --report" in page.read_text()
    failure = load(tmp_path, "G0_tp")["failure"]
    assert (failure and failure["kind"]) == kind
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_stop_that_comes_when_the_console_has_gone_leaves_a_finished_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a kernel is killed: the pipes to and from it end at once."""
    inner = experiment.finish_soundly

    def stopped(*arguments: Any) -> Any:
        signal.raise_signal(signal.SIGTERM)
        return inner(*arguments)

    def say(line: str) -> None:
        if line.startswith("G1_pp "):
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    monkeypatch.setattr(experiment, "finish_soundly", stopped)
    fault = {"G1_pp": {"rank": 0, "what": "hang", "phase": "warmup"}}
    with pytest.raises((BrokenPipeError, KeyboardInterrupt)):
        experiment.bench(ask(tmp_path, groups=("G1_pp",), inject=fault), say)
    assert load(tmp_path, "G1_pp")["failure"]["kind"] == "interrupted"


# ----------------------------------------------------------------------- numbers that are none


def test_a_loss_that_is_no_number_is_told_with_its_step() -> None:
    check_losses([1.0, 2.0])
    with pytest.raises(NotFinite, match="the loss of step 2 of 2 is nan: .*learning_rate"):
        check_losses([1.0, math.nan])


def finish_with(ranks: list[dict[str, Any]]) -> dict[str, Any]:
    """The record of a pp = 4 run in which the ranks wrote this."""
    whole = make("G1_pp")
    outcome = Outcome(ranks, None, None, 9.0, 3.0, "what torchrun said")
    done, seen = assemble.finish_soundly(whole, outcome, RULES, make("baseline"), str)
    assert seen.failure == done["failure"] and seen.documents == []
    return done


def spoil(ranks: list[dict[str, Any]], what: str, value: float) -> None:
    one = ranks[0]
    if what == "loss":
        ranks[-1]["loss"] = [5.0, value]
    elif what == "step":
        for each in ranks:
            each["steps"] = [{"start": 0.0, "end": value}] * 3
    elif what == "trace":
        one["trace"]["end"] = value
    elif what == "correctness":
        one["correctness"]["largest_gradient_error"] = value
    else:
        one[what] = value


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("loss", math.nan, "metrics.loss[1]: nan"),
        ("loss", -math.inf, "metrics.loss[1]: -inf"),
        ("peak_memory_mb", math.nan, "peak_memory_mb.ranks[0]: nan"),
        ("correctness", math.inf, "largest_gradient_error: inf"),
        ("clock_offset_s", math.nan, ": nan"),
        ("trace", math.inf, "inf"),
        ("step", 0.0, "division by zero"),
        ("step", -1.0, "throughput"),
    ],
)
def test_a_number_that_is_none_becomes_a_failure(what: str, value: float, said: str) -> None:
    ranks = documents(MESHES["G1_pp"], 10.0)
    spoil(ranks, what, value)
    done = finish_with(ranks)
    assert done["failure"]["kind"] == "output" and said in done["failure"]["message"]
    assert done["decision"]["gate_failures"] == ["runtime"]
    assert soundness.faults(done) == []


def trained() -> tuple[Trainer, dict[str, Any]]:
    name = "plain-2"
    axes = one_process(torch.device("cpu"))
    trainer = Trainer(bench_meshes.config(name), bench_meshes.PLAN, axes, random_weights(1))
    return trainer, correctness.train(trainer, bench_meshes.batches())


@pytest.mark.parametrize(
    ("what", "value", "said"),
    [
        ("gradients", math.nan, "the baseline's gradient of .*q_proj.weight is nan in 1 of"),
        ("gradients", math.inf, "the baseline's gradient of .*q_proj.weight is inf in 1 of"),
        ("parameters", math.nan, "the baseline's value of .*q_proj.weight is nan in 1 of"),
        ("gradients", None, "the gradient of .*q_proj.weight has the size .* baseline's is 0"),
        ("losses", math.nan, "the baseline's loss of step 1 of 3 is nan"),
    ],
)
def test_a_reference_that_is_none_names_the_parameter(
    what: str, value: float | None, said: str
) -> None:
    trainer, result = trained()
    assert correctness.compare(trainer, result, result)["largest_parameter_error"] == 0
    if what == "losses":
        kept: Any = [value, *result["losses"][1:]]
    else:
        name = next(name for name in result[what] if "q_proj" in name)
        changed = torch.zeros_like(result[what][name]) if value is None else result[what][name] + 0
        if value is not None:
            changed[0, 0] = value
        kept = {**result[what], name: changed}
    with pytest.raises(NotFinite, match=said):
        correctness.compare(trainer, result, {**result, what: kept})


def test_a_training_that_diverges_names_the_step() -> None:
    trainer, _ = trained()
    trainer.optimizer.learning_rate = math.inf
    with pytest.raises(NotFinite, match="is (nan|inf|-inf)"):
        correctness.train(trainer, bench_meshes.batches())


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_a_run_that_diverges_has_failed_with_it(tmp_path: Path) -> None:
    outcome = real(tmp_path, Mesh(), learning_rate=1e30)
    assert outcome.failure is not None and outcome.failure["kind"] == "exception"
    assert "NotFinite: the loss of step" in outcome.failure["message"]


# ------------------------------------------------------------------------------ wrong training


def wrong(**changes: Any) -> dict[str, Any]:
    one = make("G0_tp")
    one["metrics"]["correctness"] |= changes
    return one


@pytest.mark.parametrize(
    ("change", "dtype", "said"),
    [
        ({}, "float32", ""),
        ({"loss_difference": -0.25}, "float32", "the loss differs by -2.5e-01 (limit 1e-05)"),
        ({"largest_gradient_error": 0.5}, "float32", "error 5.0e-01, in w (limit 1e-05)"),
        ({"largest_parameter_error": 0.9}, "float32", "error 9.0e-01 (limit 0.001)"),
        ({"largest_parameter_error": 4e-5}, "float32", ""),
        ({"largest_gradient_error": 0.1, "loss_difference": 5e-3}, "bfloat16", ""),
        ({"largest_gradient_error": 0.5}, "bfloat16", "(limit 0.2)"),
    ],
)
def test_a_wrong_training_is_told_with_numbers(
    change: dict[str, float], dtype: str, said: str
) -> None:
    one = wrong(**change)
    one["workload"]["dtype"] = dtype
    found = disagreement(one)
    assert said in found and bool(found) == bool(said)
    assert (f"but {found}" in experiment.summary(one)) == bool(said)


def test_a_wrong_training_stands_in_the_report(tmp_path: Path) -> None:
    bad, right = wrong(largest_gradient_error=0.5), make("G1_pp")
    fill(tmp_path, make("baseline"), bad, right)
    report(tmp_path, lambda _: None)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert f"**G0_tp: {disagreement(bad)}**" in text and "**G1_pp: its" not in text


def test_a_wrong_training_is_not_chosen() -> None:
    bad, right = wrong(largest_gradient_error=0.5), make("G1_pp", speed=1.0)
    choice = decide.choose({"G0_tp": bad, "G1_pp": right}, WORK.fingerprint(), RULES)
    assert choice and [c["name"] for c in choice["candidates"]] == ["G1_pp"]
    assert choice["left_out"] == {"G0_tp": disagreement(bad)}
    alone = decide.choose({"G0_tp": bad}, WORK.fingerprint(), RULES)
    assert alone and alone["decision"] == "reject" and alone["candidate"] is None


def test_the_record_keeps_the_parameters_error() -> None:
    found = make("G0_tp")["metrics"]["correctness"]
    assert found["largest_parameter_error"] == 2e-5 and found["parameters_after_steps"] == 3


def test_a_job_reserves_room_for_each_rank_and_the_driver(tmp_path: Path) -> None:
    from parlab.bench.driver import prepare

    job = Job("G", tmp_path / "job", ROOT, {}, Mesh(tp=2))
    prepare(job)
    held = {path.name for path in job.folder.glob("reserve-*")}
    assert held == {"reserve-0", "reserve-1", "reserve-driver"}
    storage.release(job.folder)
    assert [path.name for path in job.folder.iterdir()] == ["job.json"]
