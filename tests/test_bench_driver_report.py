"""Records, decision, report and pictures, from made-up records: no process is started."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import os
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from test_figures import problems

from parlab import cli
from parlab.bench import assemble, decide, flops, record
from parlab.bench.assemble import Context
from parlab.bench.driver import Job, Outcome
from parlab.bench.machine import Machine
from parlab.bench.mesh import Mesh
from parlab.bench.report import report, sections
from parlab.bench.workload import load
from parlab.lesson import draw_records as pictures
from parlab.lesson import record_files, soundness
from parlab.lesson.loader import Loaded, load_lesson

matplotlib.use("Agg")
ROOT = Path(__file__).resolve().parent.parent
RULES = load_lesson(ROOT, decide.LESSON)
WORK = load(ROOT / "benchmarks" / "workloads" / "tiny-cpu.toml")
MESHES = {
    "baseline": Mesh(), "G0_tp": Mesh(tp=4), "G1_pp": Mesh(pp=4), "G2_pp_tp": Mesh(pp=2, tp=2)
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assemble, "_commit", lambda _: ("c0ffee", False))


def documents(mesh: Mesh, speed: float) -> list[dict[str, Any]]:
    size = mesh.world_size
    made = []
    for rank in range(size):
        late = 0.01 * mesh.coordinate(rank)["pp"]
        collective = {
            "kind": "collective", "operation": "all_reduce", "axis": "tp", "cause": "layers",
            "group": list(range(size)), "sequence": 0, "start": late + 0.02,
            "end": late + 0.025, "blocked": [[late + 0.02, late + 0.025]],
        }  # fmt: skip
        traffic = [
            {"axis": axis, "direction": "forward", "cause": cause, "operation": "all_reduce",
             "calls": 4, "payload_bytes": 4096 * (n + 1), "wire_bytes": 6144}
            for n, (axis, cause) in enumerate(
                [("tp", "layers"), ("tp", "head_loss"), ("pp", "boundary")])
        ]  # fmt: skip
        made.append({
            "rank": rank, "host": "h", "coordinate": mesh.coordinate(rank), "clock_offset_s": 0.0,
            "steps": [{"start": n, "end": n + 1 / speed} for n in range(3)],
            "trace": {"start": 0.0, "end": 0.1, "events": [
                {"kind": "compute", "name": "F", "start": late, "end": late + 0.07}, collective]},
            "traffic": traffic if size > 1 else [],
            "peak_memory_mb": 300.0 + 10 * rank, "memory_source": "VmHWM",
            "loss": [5.0, 4.0], "parameters": {"count": 10, "local_count": 10},
            "correctness": None if size == 1 else {
                "loss_difference": -1e-7, "largest_gradient_error": 1e-6, "parameter": "w",
                "largest_parameter_error": 2e-5, "parameters_after_steps": 3, "reason": None},
        })  # fmt: skip
    return made


def make(
    name: str, speed: float = 10.0, failure: Any = None, cores: int = 2, **changes: Any
) -> dict[str, Any]:
    machine = Machine("a CPU", cores, 8000.0, {"torch": "2.13.0"})
    context = Context(changes.pop("workload", WORK), machine, RULES, "cpu", ROOT)
    mesh = changes.pop("mesh", None) or MESHES[name]
    job = Job(name, ROOT / "build" / name, ROOT, {}, mesh)
    begun = assemble.begin(context, job, f"run-{name}", changes.pop("started", record.now_utc()))
    assert soundness.faults(begun) == []
    outcome = Outcome(
        [] if failure else documents(mesh, speed), failure, None, 9.0, 3.0, "log"
    )  # fmt: skip
    baseline = None if name == "baseline" else changes.pop("baseline", None) or make("baseline")
    done = assemble.finish(begun, outcome, RULES, baseline, lambda text: text)
    assert soundness.faults(done) == []
    return {**done, **changes}


FAILURE = {"kind": "killed", "rank": 2, "message": "rank 2 was ended", "log_tail": ["x"]}


def fill(folder: Path, *records: dict[str, Any]) -> None:
    for one in records:
        record.write(folder, one)
    choice = decide.choose({r["name"]: r for r in records}, WORK.fingerprint(), RULES)
    if choice:
        record.write(folder, choice)


def folder_of_all(folder: Path) -> Path:
    fill(folder, *(make(name) for name in MESHES))
    return folder


# ------------------------------------------------------------------------------------- records


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("schema_version", 2, "schema_version"),
        ("evidence_level", "gpu", "evidence_level"),
        ("mesh.order", ["tp", "cp", "pp"], "order"),
        ("metrics.bubble_ratio", 1.5, "bubble_ratio"),
        ("metrics.throughput", None, "metrics.throughput: null without a reason"),
        ("artifact.log", "/home/me/log", "log"),
        ("failure", {"kind": "tired"}, "failure"),
        ("workload.fingerprint", "x", "fingerprint"),
        ("decision.accepted", "yes", "accepted"),
        ("extra", 1, "extra"),
    ],
)
def test_a_record_that_breaks_the_schema_is_refused(
    tmp_path: Path, path: str, value: Any, said: str
) -> None:
    broken = copy.deepcopy(make("G0_tp"))
    *above, last = path.split(".")
    place = broken
    for key in above:
        place = place[key]
    place[last] = value
    with pytest.raises(record_files.BadRecord, match=said):
        record.write(tmp_path, broken)
    assert not list(tmp_path.iterdir())


def test_every_required_field_is_required() -> None:
    whole = make("G0_tp")
    for key in whole:
        assert soundness.faults({k: v for k, v in whole.items() if k != key}), key
    for table in ("workload", "hardware", "mesh", "metrics", "artifact", "decision"):
        optional = {"environment", "uncommitted_changes"}
        for key in set(whole[table]) - optional:
            less = {**whole, table: {k: v for k, v in whole[table].items() if k != key}}
            assert soundness.faults(less), f"{table}.{key}"


def test_a_run_may_rewrite_its_own_record_only(tmp_path: Path) -> None:
    one = make("G0_tp")
    record.write(tmp_path, one)
    record.write(tmp_path, one)
    assert not (tmp_path / "history").exists()
    record.write(tmp_path, {**one, "run_id": "another"})
    record.write(tmp_path, {**one, "run_id": "a third"})  # started in the same second
    kept = sorted(path.name for path in (tmp_path / "history").iterdir())
    stamp = one["started"]
    assert kept == [f"G0_tp-{stamp}-1.json", f"G0_tp-{stamp}.json"]


def test_history_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", refuse)
    record.write(tmp_path, make("G0_tp"))
    record.write(tmp_path, {**make("G0_tp"), "run_id": "b"})
    assert len(list((tmp_path / "history").iterdir())) == 1
    assert record_files.read(tmp_path / "G0_tp.json")["run_id"] == "b"


# ------------------------------------------------------------------------------------ decision


def test_gates_and_choice_are_the_lessons() -> None:
    def nobody(candidates: Any) -> dict[str, Any]:
        return {"decision": "reject", "candidate": None}

    def all_fail(metrics: Any, limits: Any) -> dict[str, Any]:
        return {**metrics, "eligible": False, "gate_failures": ["mine"]}

    own = Loaded(
        {decide.GATES: all_fail, decide.CHOICE: nobody, decide.LAYOUT: print},
        "learner", "mine.ipynb", hashlib.sha256(b"x").hexdigest(),
    )  # fmt: skip
    choice = decide.choose({"G0_tp": make("G0_tp")}, WORK.fingerprint(), own)
    assert choice and choice["decision"] == "reject"
    assert choice["candidates"][0]["gate_failures"] == ["mine"]
    assert choice["functions"]["origin"] == "learner"
    assert soundness.faults(choice) == []


def test_faster_wins_and_a_failed_run_fails_at_runtime_alone() -> None:
    group = {
        "G0_tp": make("G0_tp", speed=9), "G1_pp": make("G1_pp", speed=11),
        "G2_pp_tp": make("G2_pp_tp", failure=FAILURE), "baseline": make("baseline", speed=99),
    }  # fmt: skip
    choice = decide.choose(group, WORK.fingerprint(), RULES)
    assert choice and choice["candidate"] == "G1_pp"
    failed = {c["name"]: c["gate_failures"] for c in choice["candidates"]}
    assert failed == {"G0_tp": [], "G1_pp": [], "G2_pp_tp": ["runtime"]}
    assert group["G2_pp_tp"]["metrics"]["bubble_ratio"] is None


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"evidence_level": "gpu_single_node"}, "evidence level gpu_single_node, not cpu_gloo"),
        ({"mesh": Mesh(tp=2)}, "2 rank(s), not 4"),
        ({"cores": 8}, "other hardware: cores 8, not 2"),
    ],
)
def test_only_like_is_compared_with_like(change: dict[str, Any], why: str) -> None:
    other = make("G0_tp", speed=99, started="20200101T000000Z", **change)
    choice = decide.choose({"G0_tp": other, "G1_pp": make("G1_pp")}, WORK.fingerprint(), RULES)
    assert choice and choice["candidate"] == "G1_pp"
    assert choice["left_out"] == {"G0_tp": why}


def test_no_group_no_decision() -> None:
    assert decide.choose({"baseline": make("baseline")}, WORK.fingerprint(), RULES) is None
    assert decide.choose({"G0_tp": make("G0_tp")}, "0" * 64, RULES) is None


def test_efficiency_and_correctness_say_why_they_are_missing() -> None:
    broken = make("baseline", failure={**FAILURE, "rank": 0})
    one = make("G0_tp", baseline=broken)
    assert one["metrics"]["scaling_efficiency"] is None
    assert "the baseline failed: rank 2 was ended" in one["reasons"]["metrics.scaling_efficiency"]
    elsewhere = make("baseline", cores=64)
    assert (
        "other hardware"
        in make("G0_tp", baseline=elsewhere)["reasons"]["metrics.scaling_efficiency"]
    )
    assert make("G0_tp")["metrics"]["scaling_efficiency"] == pytest.approx(0.25)
    assert make("G0_tp")["metrics"]["correctness"]["loss_difference"] == 1e-7


@pytest.mark.parametrize(
    ("heads", "hidden", "layers", "gpus", "batch", "seconds", "published"),
    [
        (64, 6144, 48, 8, 4, 1.10, 0.417),
        (96, 12288, 96, 64, 64, 13.75, 0.514),
        (128, 25600 - 25600 % 3, 128, 512, 512, 71.49, 0.563),
    ],
)
def test_model_flops_give_published_mfu(
    heads: int, hidden: int, layers: int, gpus: int, batch: int, seconds: float, published: float
) -> None:
    """arXiv 2205.05198's runs, whose FFN of 4h in two matrices equals 8h/3 in three."""
    model = dataclasses.replace(
        WORK.model, num_layers=layers, hidden=hidden, num_heads=heads, num_kv_heads=heads,
        head_dim=hidden // heads, ffn=8 * hidden // 3, vocabulary=51200,
    )  # fmt: skip
    speed = batch * 2048 / seconds
    share, why = flops.mfu(speed, flops.per_token(model, 2048), "A100", "bfloat16", gpus)
    assert not why and share == pytest.approx(published, abs=2e-3)


def test_mfu_that_cannot_be_told_says_why() -> None:
    assert flops.mfu(1.0, 1, None, "bfloat16", 1) == (None, "ran on CPU")
    assert "float32" in flops.mfu(1.0, 1, "NVIDIA H200", "float32", 1)[1]
    assert "not known" in flops.mfu(1.0, 1, "Some GPU", "bfloat16", 1)[1]
    assert make("G0_tp")["reasons"]["metrics.mfu"] == "ran on CPU"


def test_crowded_means_more_ranks_than_cores() -> None:
    assert make("G0_tp", cores=3)["oversubscribed"] is True
    assert make("G0_tp", cores=4)["oversubscribed"] is False
    assert "no evidence of speed" in decide.meaning(make("G0_tp"))
    assert "nothing about GPUs" in decide.meaning(make("G0_tp", cores=4))


# ---------------------------------------------------------------------------- report, pictures


def test_report_is_made_from_records_alone(tmp_path: Path) -> None:
    here = folder_of_all(tmp_path)
    said: list[str] = []
    assert report(here, said.append)
    text = (here / "report.md").read_text("utf-8")
    for name in MESHES:
        assert f"| {name} |" in text
    assert "evidence level cpu_gloo, 4 ranks on 2 cores" in text
    assert "not ranked by time" in text and "**accept**" in text
    links = [line.split("](")[1][:-1] for line in text.splitlines() if line.startswith("![")]
    assert len(links) == 3 and all((here / link).is_file() for link in links)
    assert str(tmp_path) not in text


def test_report_does_not_decide_anew(tmp_path: Path) -> None:
    here = folder_of_all(tmp_path)
    before = (here / "decision.json").read_bytes()
    assert cli.main(["bench", "--report", str(here)]) == 0
    assert (here / "decision.json").read_bytes() == before


def test_report_without_ranking_where_cores_suffice(tmp_path: Path) -> None:
    fill(tmp_path, *(make(name, cores=8) for name in MESHES))
    assert report(tmp_path, print)
    text = (tmp_path / "report.md").read_text("utf-8")
    assert "not ranked by time" not in text and "no evidence of speed" not in text


def test_levels_stand_apart(tmp_path: Path) -> None:
    gpu = make("G0_tp", evidence_level="gpu_single_node")
    found = sections([gpu, make("G1_pp"), make("baseline")])
    assert {k: [r["name"] for r in v] for k, v in found.items()} == {
        "tiny-cpu-cpu_gloo": ["baseline", "G1_pp"], "tiny-cpu-gpu_single_node": ["G0_tp"],
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        *(pytest.param(text, marks=pytest.mark.slow) for text in ("[]", "{}", '{"name": "x"}')),
    ],
)
def test_damaged_records_are_named_and_left_alone(tmp_path: Path, content: str) -> None:
    fill(tmp_path, make("G0_tp"), make("G1_pp"))
    (tmp_path / "G1_pp.json").write_text(content)
    said: list[str] = []
    assert not report(tmp_path, said.append)
    assert any("G1_pp.json" in line for line in said)
    assert (tmp_path / "G1_pp.json").read_text() == content
    assert "| G0_tp |" in (tmp_path / "report.md").read_text("utf-8")


def test_nothing_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "--report", str(tmp_path)]) == 1
    assert cli.main(["bench", "--report", str(tmp_path / "none")]) == 1
    said = capsys.readouterr().out
    assert "holds no record" in said and "is no folder" in said


def drawn() -> dict[str, Figure]:
    four = [make(name) for name in MESHES]
    failed = [make("baseline", failure={**FAILURE, "rank": 0}), make("G1_pp", failure=FAILURE)]
    rows = [
        {"rank": n, "compute": [[5.0 * n, 60.0]], "exposed": [[60.0, 70.0]], "idle": [[70.0, 80.0]],
         "other": []} for n in range(4)
    ]  # fmt: skip
    wide = [  # the longest names there may be, of the widest letters
        {**make(name), "name": f"{'W' * 22}_{number}"} for number, name in enumerate(MESHES)
    ]
    for one in wide:
        one["workload"] = {**one["workload"], "name": "tiny-cpu-" + "W" * 23}
    many = [{**row, "compute": [[n / 4, n / 4 + 0.1] for n in range(320)]} for row in rows]
    return {
        "comparison": pictures.draw_comparison(four),
        "comparison, wide": pictures.draw_comparison(wide),
        "collectives, wide": pictures.draw_collectives(wide),
        "memory, wide": pictures.draw_memory(wide),
        "timeline, wide": pictures.draw_timeline(wide[3], {"step_ms": 80.0, "ranks": rows}),
        "comparison, failed": pictures.draw_comparison(failed),
        "collectives": pictures.draw_collectives(four),
        "collectives, none": pictures.draw_collectives(failed),
        "collectives, some": pictures.draw_collectives([*four, *failed[1:]]),
        "collectives, one rank": pictures.draw_collectives(four[:1]),
        "memory": pictures.draw_memory(four),
        "memory, failed": pictures.draw_memory(failed),
        "timeline": pictures.draw_timeline(four[3], {"step_ms": 80.0, "ranks": rows}),
        "timeline, many": pictures.draw_timeline(four[1], {"step_ms": 80.0, "ranks": many}),
    }


@pytest.mark.slow
def test_pictures_can_be_read_and_tell_their_evidence_level() -> None:
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name, figure in drawn().items():
            found += [f"{name}: {what}" for what in problems(figure)]
            title = figure.get_suptitle()
            assert "evidence level cpu_gloo" in title and "tiny-cpu" in title, name
            plt.close(figure)
    assert found == []


@pytest.mark.slow
def test_a_picture_without_bars_says_why() -> None:
    shown = drawn()
    said = {
        name: " ".join(text.get_text() for text in figure.findobj(Text))
        for name, figure in shown.items()
    }
    assert said["collectives, none"].count("failed: killed") == 2
    assert said["collectives, some"].count("failed: killed") == 1
    assert "no communication" in said["collectives, one rank"]
    assert "failed" not in said["collectives"] and "baseline" not in said["collectives"]
    for figure in shown.values():
        plt.close(figure)


def test_records_hold_no_not_a_number(tmp_path: Path) -> None:
    one = make("G0_tp")
    one["metrics"]["loss"] = [float("nan")]
    with pytest.raises(record_files.BadRecord, match=r"metrics.loss\[0\]: nan"):
        record.write(tmp_path, one)
    assert not list(tmp_path.glob("*.json"))


def test_shipped_schemas_are_valid() -> None:
    from jsonschema import Draft202012Validator

    for path in (ROOT / "parlab" / "bench").glob("*.schema.json"):
        Draft202012Validator.check_schema(json.loads(path.read_text("utf-8")))


EXAMPLES = ROOT / "benchmarks" / "results" / "par_model_internal"


def test_committed_examples_are_valid_and_whole() -> None:
    records, complaints = record_files.read_folder(EXAMPLES)
    assert complaints == [] and set(records) >= set(MESHES)
    assert record_files.read(EXAMPLES / "decision.json")["candidate"] in records
    for one in records.values():
        assert one["workload"]["fingerprint"] and one["failure"] is None
        for key in ("timeline", "log"):
            assert (ROOT / one["artifact"][key]).is_file()


def test_committed_examples_name_no_machine_path() -> None:
    for path in EXAMPLES.rglob("*"):
        if path.suffix in (".json", ".md", ".log") and "jobs" not in path.parts:
            text = path.read_text("utf-8")
            assert not [
                part for part in ("/home/", f"{Path.home()}/", "/tmp/", str(ROOT)) if part in text
            ]
