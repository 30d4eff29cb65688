"""The command line: everything wrong in it is refused, in a line each, before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from parlab import cli
from parlab.bench import driver, machine
from parlab.bench.driver import Nodes
from parlab.bench.machine import Machine
from parlab.bench.mesh import Mesh
from parlab.bench.plan import Refused, Request, plan

ROOT = Path(__file__).resolve().parent.parent
PROBE = {
    "torch": "2.13.0", "cuda": None, "gpus": [], "gloo": True, "nccl": False, "mesh": True,
    "pipelining": True, "within_rank": True, "torchrun": True, "errors": {},
}  # fmt: skip
TINY = {"baseline": Mesh(), "G0_tp": Mesh(tp=4), "G1_pp": Mesh(pp=4), "G2_pp_tp": Mesh(pp=2, tp=2)}


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine of two cores; a rank that starts is a failure."""

    def started(*_: Any) -> None:
        raise AssertionError("ranks were started")

    monkeypatch.setattr(machine, "look", lambda: Machine("a CPU", 2, 8000.0, PROBE))
    monkeypatch.setattr(driver, "run", started)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[str]:
    """The reasons for which the command line is refused; nothing is written."""
    given = [] if {"--results", "--report"} & set(arguments) else ["--results", f"{tmp_path}/r"]
    assert cli.main(["bench", *given, *arguments]) == 1
    shown = capsys.readouterr()
    first, *lines = shown.out.splitlines()
    assert first == "refused, nothing was started:" and shown.err == ""
    assert not (tmp_path / "r").exists()
    return lines


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        *[(["--timeout", value], f"--timeout = {shown}: must be a number from 1 to 604800")
          for value, shown in (("-1", "-1.0"), ("0", "0.0"), ("nan", "nan"), ("inf", "inf"),
                               ("1e300", "1e+300"), ("604801", "604801.0"))],
        (["--timeout", "soon"], "--timeout 'soon': must be a number"),
        (["--world-size", "0"], "--world-size = 0: must be an integer from 1 to 65536"),
        (["--world-size", "-1"], "--world-size = -1: must be an integer from 1 to 65536"),
        (["--world-size", "9" * 500], "--world-size = an integer of about 501 digits: must be"),
        (["--world-size", "9" * 5000], "99999999': must be an integer"),
        (["--world-size", "1.5"], "--world-size '1.5': must be an integer"),
        (["--nnodes", "0"], "--nnodes = 0: must be an integer from 1 to 65536"),
        (["--nnodes", "-2"], "--nnodes = -2: must be"),
        (["--nnodes", "two"], "--nnodes 'two': must be an integer"),
        (["--node-rank", "1"], "--node-rank '1' says nothing without --nnodes N"),
        (["--node-rank", "0"], "--node-rank '0' says nothing without --nnodes N"),
        (["--nnodes", "1", "--node-rank", "1"], "--node-rank 1 is not in 0..0"),
        (["--rdzv-endpoint", "head:99999"], "--rdzv-endpoint 'head:99999': must be HOST:PORT"),
        (["--rdzv-endpoint", ":29500"], "--rdzv-endpoint ':29500': must be HOST:PORT"),
        (["--run-id", "two words"], "--run-id 'two words': must be at most 64 ASCII letters"),
        (["--mesh", "a:tp=2", "--mesh", "a:pp=2"], "--mesh names a twice: a group has one mesh"),
        (["--mesh", "pp=2", "--mesh", "pp=2"], "--mesh names pp2_cp1_tp1 twice"),
        (["--mesh", "a:tp=2", "--mesh", "A:pp=2"], "A and a differ in case alone: rename one"),
        (["--mesh", "G0_tp:pp=4", "--groups", "G0_tp"], "G0_tp is in --groups and in --mesh"),
        (["--mesh", ":pp=2"], "--mesh ':pp=2': a group's name is ASCII letters, digits and _"),
        (["--mesh", "é:pp=2"], "--mesh 'é:pp=2': a group's name is ASCII letters, digits and _"),
        (["--mesh", "a-b:pp=2"], "--mesh 'a-b:pp=2': a group's name is ASCII letters"),
        (["--mesh", f"{'a' * 25}:pp=2"], "at most 24 characters; this has 25"),
        (["--mesh", "Baseline:pp=1"], "no group may be called baseline or decision"),
        (["--mesh", "a:"], "--mesh 'a:': mesh '': '' is not one of pp=N, cp=N, tp=N"),
        (["--mesh", f"pp={'9' * 5000}"], "with N from 1 to 65536"),
        (["--mesh", "pp=٢"], "mesh 'pp=٢': 'pp=٢' is not one of"),
        (["--mesh", "big:pp=8,tp=4,cp=16"], "big: ranks: 512 processes on 2 core(s), at most 16"),
        (["--groups", ","], "--groups ',' names no group"),
        (["--workload", "/dev/zero"], "there is no workload '/dev/zero'; there are: qwen3-0.6b, t"),
    ],
)  # fmt: skip
def test_one_line_for_each_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    lines = refused(tmp_path, capsys, *arguments)
    assert [line for line in lines if said in line], lines
    assert all(len(line) < 250 for line in lines)


@pytest.mark.parametrize(
    "option",
    ["--workload", "--groups", "--results", "--functions", "--report", "--rdzv-endpoint",
     "--run-id", "--local-addr"],
)  # fmt: skip
@pytest.mark.parametrize("value", ["", " "])
def test_empty_texts_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    wanted = f"{option} is empty: give it a value or leave the option out"
    assert refused(tmp_path, capsys, option, value) == [wanted]


def test_all_mistakes_of_all_kinds_are_said_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "benchmarks/workloads/tiny-cpu.toml").read_text("utf-8")
    (tmp_path / "x.toml").write_text(text.replace("hidden = 128", "hidden = 0"), "utf-8")
    lines = refused(
        tmp_path, capsys, "--workload", f"{tmp_path}/x.toml", "--groups", "nope,G0_tp",
        "--mesh", "pp=0", "--mesh", "odd:pp=3", "--timeout", "-1", "--world-size", "x",
        "--nnodes", "3", "--node-rank", "3", "--device", "cuda",
    )  # fmt: skip
    for said in (
        "mesh 'pp=0'", "--world-size 'x': must be", "--timeout = -1.0: must be",
        "--node-rank 3 is not in 0..2", "need --rdzv-endpoint", "need --run-id",
        "x.toml: model.hidden = 0: must be", "x.toml: data.text = 'parallel-training.txt': no such",
        "no GPU is visible", "nope is no group of x; there are baseline, G0_tp",
        "G0_tp: 4 ranks over 3 nodes leave 1", "odd: pipeline_layers: num_layers = 8 over pp = 3",
        "odd: 3 ranks but 0 GPU(s)",
    ):  # fmt: skip
        assert len([line for line in lines if said in line]) == 1, (said, lines)
    assert len(lines) == len(set(lines)) == 14  # the one that is left: G0_tp, too, lacks GPUs


def test_unusable_functions_do_not_hide_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from parlab.bench import learner
    from parlab.lesson.loader import LessonUnusable

    def unusable(*_: Any) -> None:
        raise LessonUnusable("the lesson cannot be run")

    monkeypatch.setattr(learner, "load_functions", unusable)
    with pytest.raises(Refused) as caught:
        plan(Request(ROOT, groups=("nope",), named={"odd": Mesh(pp=3)}))
    assert [line.partition(":")[0] for line in caught.value.reasons] == [
        "the lesson cannot be run",
        "nope is no group of tiny-cpu; there are baseline, G0_tp, G1_pp, G2_pp_tp",
        "odd",
    ]


@pytest.mark.parametrize(
    ("arguments", "groups"),
    [
        ([], TINY),
        (["--groups", " G0_tp, baseline"], {"baseline": Mesh(), "G0_tp": Mesh(tp=4)}),
        # as lesson 05 makes it: a group of the workload's own name
        (["--groups", "baseline", "--mesh", "G0_tp:pp=1,tp=2,cp=2", "--world-size", "4"],
         {"baseline": Mesh(), "G0_tp": Mesh(tp=2, cp=2)}),
        (["--mesh", "pp=2", "--timeout", "1"], {"pp2_cp1_tp1": Mesh(pp=2)}),
        # as Slurm makes it for one machine
        (["--nnodes", "1", "--node-rank", "0", "--rdzv-endpoint", "[::1]:29500", "--run-id", "77"],
         TINY),
        (["--mesh", f"{'a' * 24}:tp=2"], {"a" * 24: Mesh(tp=2)}),
    ],
)  # fmt: skip
def test_what_is_right_is_taken(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], groups: dict[str, Mesh]
) -> None:
    asked: list[Request] = []

    def take(request: Request, _: Any) -> bool:
        asked.append(request)
        return True

    monkeypatch.setattr("parlab.bench.command.bench", take)
    assert cli.main(["bench", "--no-report", *arguments]) == 0
    assert plan(asked[0])[1] == groups


def test_a_request_is_checked_whoever_makes_it() -> None:
    with pytest.raises(Refused) as caught:
        plan(Request(ROOT, timeout_s=float("nan"), world_size=0, nodes=Nodes(count=-1)))
    assert [line.partition(" =")[0] for line in caught.value.reasons] == [
        "--timeout", "--world-size", "--nnodes",
    ]  # fmt: skip
