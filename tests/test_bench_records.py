"""Damaged records, decisions, timelines: left out with file, field and remedy; the rest goes on."""

from __future__ import annotations

import copy
import json
import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from test_bench_driver_report import (
    EXAMPLES,
    FAILURE,
    RULES,
    folder_of_all,
    make,
    no_git,
)

from parlab.bench import decide, record
from parlab.bench.measure import LESSON, PARTS
from parlab.bench.mesh import Mesh
from parlab.bench.report import _failures, _machine, _table, report, sections
from parlab.bench.rules import lesson_rule
from parlab.lesson import draw_records as pictures
from parlab.lesson import record_files, soundness
from parlab.lesson.record_files import load_timeline
from parlab.lesson.soundness import timeline_fault

__all__ = ["no_git"]
GOOD, COMPLAINTS = record_files.read_folder(EXAMPLES)
ONE = "G1_pp"
GONE = object()
ODD = (None, [], {}, "x", "", -1, float("inf"), float("nan"), 10**400, True, "\ud800", GONE)
TIMELINE = f"timelines/{Path(GOOD[ONE]['artifact']['timeline']).name}"


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every field; of a long list only two elements."""
    if path:
        yield path
    keys = {dict: lambda: content, list: lambda: range(len(content))[:2]}
    for key in keys.get(type(content), tuple)():
        yield from places(content[key], (*path, key))


def damaged(content: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy with one field replaced or gone."""
    whole = copy.deepcopy(content)
    place = whole
    for key in path[:-1]:
        place = place[key]
    if odd is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = odd
    return whole


def put(folder: Path, name: str, content: Any) -> None:
    (folder / name).write_text(json.dumps(content), "utf-8")


def examples(folder: Path) -> Path:
    """The committed records in a folder that may be spoilt."""
    here = folder / "results"
    shutil.copytree(EXAMPLES, here, ignore=shutil.ignore_patterns("pictures", "logs", "jobs"))
    return here


def make_it(name: str, **changes: Any) -> Any:
    """A later run, made when it is asked for."""
    return lambda: {**make(name, **changes), "run_id": "new"}


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report without pictures, which take most of its time."""
    for name in ("draw_comparison", "draw_collectives", "draw_memory", "draw_timeline"):
        monkeypatch.setattr(pictures, name, lambda *_: plt.figure())
    monkeypatch.setattr("parlab.bench.report._save", lambda figure, _: plt.close(figure))


# ------------------------------------------------------------------------- one field at a time


@pytest.mark.parametrize("turn", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 3))])
def test_a_record_with_one_odd_field_is_sound_or_left_out(turn: int) -> None:
    """Report and decision never raise; a number that is none is never taken.

    Every turn does every field, with a quarter of the odd values; all four together do all.
    """
    assert not COMPLAINTS
    for path, odd in [
        (path, odd)
        for number, path in enumerate(places(GOOD[ONE]))
        for odd in ODD[(number + turn) % 4 :: 4]
    ]:
        changed = damaged(GOOD[ONE], path, odd)
        faults = soundness.faults(changed)
        assert all(line.startswith("$") and "\n" not in line for line in faults), path
        if faults:
            continue
        assert odd not in (float("inf"), 10**400, "\ud800") and odd == odd, path
        together = {**GOOD, ONE: changed}
        choice = decide.choose(together, GOOD[ONE]["workload"]["fingerprint"], RULES)
        assert choice and soundness.faults(choice) == [], path
        record_files.superseded(choice, together)
        for section in sections(together.values()).values():
            assert _table(section) and _machine(section[0]) and decide.meaning(section[0])
            _failures(section)


def test_a_decision_with_one_odd_field_is_sound_or_left_out(tmp_path: Path, undrawn: None) -> None:
    here, said = examples(tmp_path), list[str]()
    decision = json.loads((here / "decision.json").read_text("utf-8"))
    for name in ("baseline", "G0_tp", "G2_pp_tp"):
        (here / f"{name}.json").unlink()
    for number, path in enumerate(places(decision)):
        for odd in (None, [], -1, float("inf"), GONE)[number % 3 :: 3]:
            changed = damaged(decision, path, odd)
            put(here, "decision.json", changed)
            said.clear()
            taken = report(here, said.append)
            assert taken == (not soundness.faults(changed)), path
            assert taken or "left out: decision.json is damaged: $" in "\n".join(said), path


def test_a_timeline_with_one_odd_field_is_sound_or_left_out() -> None:
    whole = json.loads((EXAMPLES / TIMELINE).read_text("utf-8"))
    whole["trace"] = []
    whole["ranks"] = [{**row, **{part: row[part][:2] for part in PARTS}} for row in whole["ranks"]]
    assert timeline_fault(whole, 4) == ""
    for path in places(whole):
        for odd in ODD:
            changed = damaged(whole, path, odd)
            emptied = odd == [] and path[-1] in PARTS  # as where a rank never idles
            fewer = emptied or (odd is GONE and len(path) == 4)
            fewer |= path == ("trace",) and odd is GONE
            fault = timeline_fault(changed, 4)
            assert (fault == "") == (fewer or changed == whole), (path, odd)
            assert not fault or fault.startswith("$"), (path, odd)
    assert timeline_fault(whole, 3) and timeline_fault([], 4) and timeline_fault(None, 4)


def test_a_trace_with_one_odd_field_is_left_out_or_can_be_split() -> None:
    """As lesson 05 splits it again."""
    whole = json.loads((EXAMPLES / TIMELINE).read_text("utf-8"))
    for row in whole["trace"]:  # the first events of each kind
        seen: dict[str, Any] = {}
        for event in row["events"]:
            seen.setdefault(event["kind"], event)
        row["events"] = list(seen.values())
    assert timeline_fault(whole, 4) == ""
    split, taken = lesson_rule(LESSON, "split_rank_step"), 0
    for path in places(whole["trace"]):
        for odd in ODD:
            changed = damaged(whole, ("trace", *path), odd)
            fault = timeline_fault(changed, 4)
            assert not fault or fault.startswith("$.trace"), (path, odd)
            for row in () if fault else changed["trace"]:
                split(row["events"], (row["start"], row["end"]))
                taken += 1
    assert taken


# ------------------------------------------------------------------------------------- files


def again(path: Path) -> None:
    """The same run once more, under another name."""
    put(path.parent, "G9.json", {**GOOD[ONE], "name": "G9", "artifact": {
        **GOOD[ONE]["artifact"], "timeline": None, "log": None}, "reasons": {
        **GOOD[ONE]["reasons"], "artifact.timeline": "none", "artifact.log": "none"}})  # fmt: skip


def to(dotted: str, value: Any) -> Any:
    """Writes the record with one field changed."""
    keys = tuple(int(key) if key.isdigit() else key for key in dotted.split("."))
    return lambda path: put(path.parent, path.name, damaged(GOOD[ONE], keys, value))


def renamed(name: str) -> Any:
    return lambda path: path.rename(path.with_name(name))


def instead(make_it: Any) -> Any:
    def replace(path: Path) -> None:
        path.unlink()
        make_it(path)

    return replace


DAMAGE = {
    "truncated": (lambda path: path.write_text(path.read_text()[:500]), "line 20"),
    "empty": (lambda path: path.write_text(""), "Expecting value"),
    "no text": (lambda path: path.write_bytes(b"\xff\xfe{"), "utf-8"),
    "list": (lambda path: path.write_text("[1]"), "$: [1] is not of type 'object'"),
    "deep": (lambda path: path.write_text("[" * 100_000), "nested too deep"),
    "deep field": (lambda path: path.write_text(json.dumps(GOOD[ONE]).replace(
        '"failure": null', f'"failure": {"[" * 900}{"]" * 900}')), ""),
    "digits": (lambda path: path.write_text("9" * 6000), "digits"),
    "folder": (instead(Path.mkdir), "it is no file"),
    "pipe": (instead(os.mkfifo), "it is no file"),
    "lost link": (instead(lambda path: path.symlink_to("nowhere")), "No such file"),
    "foreign": (lambda path: path.write_text('{"a": 1}'), "is a required property"),
    "another name": (to("name", "G0_tp"), "$.name: 'G0_tp'"),
    "a decision": (lambda path: shutil.copy(path.with_name("decision.json"), path), "$.name"),
    "a copy": (lambda path: shutil.copy(path, path.with_name("G1_pp (1).json")), "$.name: 'G1_pp'"),
    "an old one": (renamed("G1_pp-20261129T224235Z.json"), "$.name: 'G1_pp'"),
    "the same run": (again, "$.run_id"),
    "another run": (to("run_id", "x"), "$.artifact.log"),
    "no gates": (to("decision.gates", {}), "$.decision.gates"),
    "a gate": (to("decision.gates.throughput", 9.0), "$.decision.gates.throughput: 9.0"),
    "no maximum": (to("metrics.peak_memory_mb.max", None), "$.metrics.peak_memory_mb.max"),
    "no ranks": (to("metrics.peak_memory_mb.ranks", []), "$.metrics.peak_memory_mb.ranks"),
    "infinite": (to("metrics.bubble_ratio", float("inf")), "$.metrics.bubble_ratio: inf"),
    "huge": (to("metrics.traced_step_ms", 10**400), "$.metrics.traced_step_ms: an int"),
    "mesh": (to("mesh.pp", 2), "$.mesh: 2 × 1 × 1 = 2, not world_size 4"),
    "coordinate": (to("mesh.coordinates.1.pp", 3), "$.mesh.coordinates[1]"),
    "cause": (to("metrics.communication.0.cause", 5), "$.metrics.communication[0].cause"),
    "accepted": (to("decision.accepted", False), "$.decision.accepted: False"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGE)
def test_a_damaged_record_costs_itself_alone(case: str, tmp_path: Path, undrawn: None) -> None:
    here, said = examples(tmp_path), list[str]()
    spoil, why = DAMAGE[case]
    spoil(here / f"{ONE}.json")
    assert not report(here, said.append)
    (line,) = [line for line in said if line.startswith("left out: ")]
    page = (here / "report.md").read_text("utf-8")
    for part in (".json is damaged: ", why, "run the group again", "take it out of the folder"):
        assert part in line and part in page.split("## Left out")[1]
    assert str(tmp_path) not in page
    assert page.count("| G0_tp |") == 1 and page.count(f"| {ONE} |") <= 1
    records, _ = record_files.read_folder(here)
    choice = decide.choose(records, GOOD[ONE]["workload"]["fingerprint"], RULES)
    assert choice
    names = [item["name"] for item in choice["candidates"]]
    assert len(names) == len(set(names)) and "G0_tp" in names


def test_history_can_be_reported_on(tmp_path: Path) -> None:
    for run in ("a", "b", "c"):
        record.write(tmp_path, {**make("G0_tp"), "run_id": run})
    records, complaints = record_files.read_folder(tmp_path / "history")
    assert complaints == [] and {one["run_id"] for one in records.values()} == {"a", "b"}


@pytest.mark.parametrize("content", ["[" * 100_000, "{", '{"run_id": []}'])
def test_a_damaged_predecessor_moves_on(tmp_path: Path, content: str) -> None:
    (tmp_path / "G0_tp.json").write_text(content)
    record.write(tmp_path, make("G0_tp"))
    (kept,) = (tmp_path / "history").iterdir()
    assert kept.read_text() == content


TIMELINES = {
    "gone": (Path.unlink, "it is not there"),
    "pipe": (instead(os.mkfifo), "it is not there"),
    "truncated": (lambda path: path.write_text(path.read_text()[:100]), "column 101"),
    "deep": (lambda path: path.write_text("[" * 100_000), "recursion"),
    "list": (lambda path: path.write_text("[]"), "$: no object"),
    "junk": (lambda path: path.write_text('{"ranks": 5, "step_ms": 5}'), "$.ranks"),
}


@pytest.mark.parametrize("case", TIMELINES)
def test_a_damaged_timeline_costs_its_picture_alone(
    case: str, tmp_path: Path, undrawn: None
) -> None:
    here, said = examples(tmp_path), list[str]()
    spoil, why = TIMELINES[case]
    spoil(here / TIMELINE)
    assert not report(here, said.append)
    (line,) = [line for line in said if line.startswith("left out: ")]
    page = (here / "report.md").read_text("utf-8")
    for part in (TIMELINE, why, f"The timeline of {ONE} is left out", "run the group again"):
        assert part in line and part in page.split("## Left out")[1]
    assert f"| {ONE} |" in page and f"![timeline-{ONE}]" not in page
    assert "![timeline-G0_tp]" in page and "**accept**" in page


def test_a_failed_run_has_no_timeline_and_nothing_is_left_out() -> None:
    assert load_timeline(make("G1_pp", failure=FAILURE), EXAMPLES) is None


@pytest.mark.slow
def test_odd_names_and_sizes_can_be_drawn(tmp_path: Path) -> None:
    odd = {"memory_mb": 0, "bubble_ratio": 0, "communication_ratio": 0}
    for name in GOOD:
        one = copy.deepcopy(make(name))
        one["workload"]["name"] = "../../$x_{ 模型/\0"
        one["workload"]["limits"] = odd
        one["metrics"]["peak_memory_mb"]["source"] = "$y^"
        for row in one["metrics"]["communication"]:
            row |= {"cause": "$a_{", "axis": "$", "payload_bytes": 1}
        one["metrics"]["step_ms"] = {"median": 1e24, "min": 1e24, "max": 1e24}
        record.write(tmp_path / "here", one)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=UserWarning, message="(?!Glyph)")
        assert report(tmp_path / "here", print)
    assert [path.name for path in tmp_path.iterdir()] == ["here"]
    assert len(list((tmp_path / "here" / "pictures").glob("*/*.png"))) == 3


# -------------------------------------------------------------- a decision on runs that are past


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (
            [make_it("G1_pp", failure=FAILURE)],
            "G1_pp: run run-G1_pp was judged, the latest is new, which failed (killed)",
        ),
        ([make_it("G0_tp")], "G0_tp: run run-G0_tp was judged, the latest is new, which was not"),
        ([make_it("G9", mesh=Mesh(tp=4), started="29990101T000000Z")], "G9: run new came later"),
    ],
)
def test_a_decision_on_past_runs_is_not_shown_as_present(
    tmp_path: Path, undrawn: None, later: list[Any], said: str
) -> None:
    here, told = folder_of_all(tmp_path), list[str]()
    assert report(here, told.append) and "**accept**" in (here / "report.md").read_text("utf-8")
    for one in later:
        record.write(here, one())
    assert report(here, told.append)
    page = (here / "report.md").read_text("utf-8").split("## Decision")[1]
    assert "No current decision" in page and "no longer the latest" in page and f"- {said}" in page
    assert "**accept**" not in page and "eligible" not in page and "decides anew" in page
    assert any(said in line and "No current decision" in line for line in told)


def test_a_decision_on_a_run_that_is_gone_is_not_shown_as_present(
    tmp_path: Path, undrawn: None
) -> None:
    here = folder_of_all(tmp_path)
    (here / "G1_pp.json").write_text("{")
    assert not report(here, print)
    page = (here / "report.md").read_text("utf-8")
    assert "G1_pp: run run-G1_pp was judged, and its record is gone or damaged" in page
    assert "**accept**" not in page


def test_the_yardstick_and_other_workloads_leave_a_decision_alone(tmp_path: Path) -> None:
    here = folder_of_all(tmp_path)
    choice = record_files.read(here / "decision.json")
    record.write(here, {**make("baseline"), "run_id": "new", "started": "29990101T000000Z"})
    other = make("G9", mesh=Mesh(tp=4), started="29990101T000000Z")
    other["workload"]["fingerprint"] = "0" * 64
    record.write(here, other)
    records, complaints = record_files.read_folder(here)
    assert complaints == [] and record_files.superseded(choice, records) == []


def test_a_baseline_that_measured_no_throughput_is_no_yardstick() -> None:
    alone = make("baseline")
    alone["metrics"]["throughput"] = None
    alone["reasons"]["metrics.throughput"] = "not measured"
    alone["decision"]["gates"]["throughput"] = None
    assert soundness.faults(alone) == []
    group = make("G0_tp", baseline=alone)
    why = "the baseline did not measure its throughput"
    assert group["reasons"]["metrics.scaling_efficiency"] == why
