"""What lesson 05 shows of records: a damaged or outdated file costs a line, and nothing else."""

from __future__ import annotations

import builtins
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from lessons import ROOT, Kernel, code_cells, load

from parlab.lesson import soundness
from parlab.lesson.agreement import disagreement
from parlab.lesson.loader import load_lesson
from parlab.lesson.records import (
    NoRecords,
    choosable,
    comparable,
    read_decision,
    read_records,
    read_timeline,
)

EXAMPLES = ROOT / "benchmarks" / "results" / "par_model_internal"
DEEP = "[" * 100_000


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The examples in a folder that may be spoilt; an absolute name stands for itself."""
    folder = tmp_path / "results"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("pictures", "logs", "jobs"))
    return folder


def change(path: Path, **changes: Any) -> dict[str, Any]:
    content = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps(content), "utf-8")
    return content


@pytest.mark.parametrize(
    "text",
    ['{"half": ', DEEP, "[]", "7", "{}", b"\xff\xfe", '{"name": "G0_tp"}', "NaN"],
    ids=lambda text: repr(text[:20]),
)
def test_a_damaged_record_costs_a_line(
    here: Path, capsys: pytest.CaptureFixture[str], text: str | bytes
) -> None:
    (here / "G0_tp.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert list(read_records(str(here))) == ["baseline", "G1_pp", "G2_pp_tp"]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("left out: G0_tp.json is damaged: ") and len(line) < 500


def test_records_that_are_all_damaged_are_said_in_lines(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in here.glob("*.json"):
        path.write_text("{")
    with pytest.raises(NoRecords) as caught:
        read_records(str(here))
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert caught.value._render_traceback_() == [f"no records that can be read in {here}"]


def test_a_notebook_without_jsonschema_still_finds_what_is_no_record(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inner = builtins.__import__

    def bare(name: str, *more: Any) -> Any:
        if name == "jsonschema":
            raise ImportError(name)
        return inner(name, *more)

    monkeypatch.setattr(builtins, "__import__", bare)
    soundness._validator.cache_clear()
    try:
        change(here / "G0_tp.json", metrics=[])
        (here / "G1_pp.json").write_text("[]")
        assert list(read_records(str(here))) == ["baseline", "G2_pp_tp"]
        assert capsys.readouterr().out.count("not what a record holds") == 2
    finally:
        soundness._validator.cache_clear()


@pytest.mark.parametrize(
    "text",
    ['{"half": ', DEEP, "[]", '{"step_ms": 1, "ranks": []}', b"\xff", None],
    ids=lambda text: repr(text and text[:20]),
)
def test_a_damaged_timeline_costs_a_line_and_one_that_is_not_carried_nothing(
    here: Path, capsys: pytest.CaptureFixture[str], text: str | bytes | None
) -> None:
    record = read_records(str(here))["G1_pp"]
    file = here / "timelines" / Path(record["artifact"]["timeline"]).name
    assert read_timeline(str(here), record)
    file.unlink()
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert read_timeline(str(here), record) is None
    said = capsys.readouterr().out.splitlines()
    assert len(said) == (text is not None)
    assert not said or said[0].startswith(f"left out: timelines/{file.name} is damaged: ")


def test_a_decision_is_shown_while_it_stands(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = read_decision(str(here))
    assert choice and choice["decision"] and capsys.readouterr().out == ""
    change(here / "G1_pp.json", run_id="later", artifact={
        **json.loads((here / "G1_pp.json").read_text())["artifact"], "timeline": None, "log": None,
    })  # fmt: skip
    assert read_decision(str(here)) is None
    (line,) = capsys.readouterr().out.splitlines()
    assert "decision.json of" in line and "G1_pp: run" in line and "decides anew" in line
    for text in ("{", DEEP, "{}"):
        (here / "decision.json").write_text(text)
        assert read_decision(str(here)) is None
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith("left out: decision.json is damaged: ")
    (here / "decision.json").unlink()
    assert read_decision(str(here)) is None and capsys.readouterr().out == ""


def test_a_group_on_fewer_ranks_is_not_chosen(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = comparable(read_records(str(here)))
    older = next(record for record in shown if record["name"] == "G1_pp")
    older["workload"]["world_size"] = 2
    assert [record["name"] for record in choosable(shown)] == ["G0_tp", "G2_pp_tp"]
    assert capsys.readouterr().out == "G1_pp takes no part: 2 rank(s), not 4\n"
    assert choosable([]) == []


@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_group_that_trains_wrongly_is_not_chosen(
    here: Path, capsys: pytest.CaptureFixture[str], language: str
) -> None:
    shown = comparable(read_records(str(here)))
    assert [record["name"] for record in choosable(shown)] == ["G0_tp", "G1_pp", "G2_pp_tp"]
    assert capsys.readouterr().out == ""
    wrong = next(record for record in shown if record["name"] == "G1_pp")
    wrong["metrics"]["correctness"]["largest_gradient_error"] = 0.5
    notebook = load("solutions", "05_multi_gpu_experiments", language)
    (cell,) = [item for item in code_cells(notebook) if "def decide(" in item.source]
    kernel = Kernel()
    kernel.run("from parlab.lesson.records import choosable, read_decision, table")
    kernel.run("JUDGE = 'evaluate_internal_parallel_candidate'")
    kernel.run("CHOOSE = 'select_internal_parallel_candidate'")
    deciders = load_lesson(ROOT, "04_model_internal_parallel")
    vars(kernel.module).update(shown=shown, deciders=deciders, RESULT_DIR=str(here))
    said = kernel.run(cell.source)
    assert f"G1_pp takes no part: {disagreement(wrong)}" in said
    judged = {item["name"] for item in kernel["judged"]}
    assert judged == {"G0_tp", "G2_pp_tp"}
