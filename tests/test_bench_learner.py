"""A learner's functions that decide: taken or refused in one line, never trusted to return."""

from __future__ import annotations

import gc
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from lessons import answered
from test_bench_driver_experiment import ROOT, ask, go, load, this_machine

from parlab import cli
from parlab.bench import learner
from parlab.bench.answers import BadAnswer
from parlab.bench.decide import CHOICE, GATES, LAYOUT, LESSON
from parlab.bench.learner import load_functions
from parlab.bench.plan import Refused, plan
from parlab.bench.report import report
from parlab.lesson.loader import LessonUnusable

__all__ = ["this_machine"]  # two cores, whatever the tests run on

FUNCTIONS = (LAYOUT, GATES, CHOICE)
RIGHT = {
    LAYOUT: "return {'valid': True, 'errors': []}",
    GATES: "return {**one, 'eligible': True, 'gate_failures': []}",
    CHOICE: "return {'decision': 'accept' if one else 'reject',"
    " 'candidate': one[0]['name'] if one else None}",
}
LIMITS = {"memory_mb": 1000.0, "bubble_ratio": 0.5, "communication_ratio": 0.5}
RAN = {
    "name": "mine", "throughput": 1.0, "peak_memory_mb": 1.0, "bubble_ratio": 0.1,
    "communication_ratio": 0.1, "failure": None,
}  # fmt: skip
GIVEN: dict[str, tuple[Any, ...]] = {
    LAYOUT: ({"pp": 77},), GATES: (RAN, LIMITS), CHOICE: ([{**RAN, "eligible": True}],)
}  # fmt: skip
# Only where the run's own data come, so that checks and the rehearsal pass.
LATE = {LAYOUT: "one.get('pp') == 77", GATES: "one['name'] == 'mine'",
        CHOICE: "one and one[0]['name'] == 'mine'"}  # fmt: skip


def notebook(folder: Path, bodies: Mapping[str, str] = RIGHT, **cells: str) -> Path:
    """A notebook of three TODOs and their checks that needs no torch; ``bodies`` may be partial.

    Args:
        cells: further text for the cells ``todo_1`` … ``check_3``; None leaves the cell out.
    """
    sources = []
    for number, name in enumerate(FUNCTIONS, 1):
        arguments = "one, limits" if name == GATES else "one"
        body = bodies.get(name, RIGHT[name]).replace("\n", "\n    ")
        todo = f"# TODO {number} · {name}\ndef {name}({arguments}):\n    {body}\n"
        sources.append(todo + cells.get(f"todo_{number}", ""))
        sources.append(f"# CHECK {number}\n" + cells.get(f"check_{number}", ""))
    path = folder / "mine.ipynb"
    content = {"cells": [{"cell_type": "code", "source": source} for source in sources]}
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def late(name: str, body: str) -> dict[str, str]:
    """A function that answers rightly until the run's own data come."""
    inner = body.replace("\n", "\n    ")
    return {name: f"if {LATE[name]}:\n    {inner}\n{RIGHT[name]}"}


def open_todo(folder: Path) -> Path:
    return notebook(folder, {GATES: "raise NotImplementedError('TODO 2')"})


def without_check(folder: Path) -> Path:
    path = notebook(folder)
    path.write_text(path.read_text("utf-8").replace("# CHECK 3", "# my own"), "utf-8")
    return path


def other_lesson(folder: Path) -> Path:
    path = notebook(folder)
    path.write_text(path.read_text("utf-8").replace("_", "x").replace("cellxtype", "cell_type"))
    return path


def text(content: bytes) -> Any:
    def write(folder: Path) -> Path:
        (folder / "mine.ipynb").write_bytes(content)
        return folder / "mine.ipynb"

    return write


UNUSABLE = {
    "missing": (lambda folder: folder / "mine.ipynb", "cannot be read: No such file"),
    "folder": (lambda folder: folder, "cannot be read: Is a directory"),
    "junk": (text(b"\x00\xff" * 50), "cannot be read"),
    "list": (text(b"[]"), "cannot be read"),
    "deep": (text(b"[" * 200_000), "cannot be read"),
    "no TODO": (text(b'{"cells": []}'), "has no TODO cell"),
    "open": (open_todo, "is not finished: TODO 2 is open"),
    "no check": (without_check, "has no CHECK 3 cell"),
    "other lesson": (other_lesson, f"is no notebook of lesson 04: no {LAYOUT}"),
    "check fails": (lambda f: notebook(f, check_2="assert False, 'no'"), "CHECK 2 raised Assert"),
    "exit": (lambda f: notebook(f, todo_1="import sys; sys.exit(0)"), "raised SystemExit: 0"),
    "interrupt": (lambda f: notebook(f, todo_1="raise KeyboardInterrupt"), "KeyboardInterrupt"),
    "hard exit": (lambda f: notebook(f, todo_3="import os; os._exit(0)"), "ended their process"),
    "rehearsal": (lambda f: notebook(f, {GATES: "return one"}), f"{GATES} of "),
    "loop": (lambda f: notebook(f, todo_2="while True: pass"), "had not ended after 1 s"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNUSABLE)
def test_a_named_notebook_is_taken_or_refused(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing falls back behind the learner's back, nothing ends the program."""
    monkeypatch.setattr(learner, "LOAD_S", 1.0 if case == "loop" else 30.0)
    make, said = UNUSABLE[case]
    path = make(tmp_path)
    with pytest.raises(LessonUnusable) as caught:
        load_functions(ROOT, path)
    assert said in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(Refused) as refused:
        plan(ask(tmp_path, notebook=path))
    (reason,) = refused.value.reasons
    assert said in reason and "leave --functions out" in reason and str(path) in reason
    assert not (tmp_path / "results").exists()


def test_the_command_refuses_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, results = open_todo(tmp_path), tmp_path / "results"
    assert cli.main(["bench", "--functions", str(path), "--results", str(results)]) == 1
    first, line = capsys.readouterr().out.splitlines()
    assert first == "refused, nothing was started:"
    assert re.fullmatch(r"--functions \S+: \S+ is not finished: TODO 2 is open\. .+", line)
    assert not results.exists()


def test_unnamed_notebooks_may_be_unfinished_and_it_is_said(tmp_path: Path) -> None:
    for folder in ("notebooks", "solutions"):
        (tmp_path / folder).mkdir()
    answer = (ROOT / "solutions" / f"{LESSON}.py").read_text("utf-8")
    (tmp_path / "solutions" / f"{LESSON}.py").write_text(answer, "utf-8")
    place = tmp_path / "notebooks" / f"{LESSON}.ipynb"
    for case in ("junk", "open", "no check", "check fails", "hard exit", "rehearsal"):
        make, said = UNUSABLE[case]
        make(tmp_path).rename(place)
        told = load_functions(tmp_path).describe()
        assert told.startswith(f"the solution's functions decide, from solutions/{LESSON}.py")
        why = told.split(", since ")[1]
        assert f"notebooks/{LESSON}.ipynb" in why and said in why
    notebook(tmp_path / "notebooks").rename(place)
    told = load_functions(tmp_path).describe()
    assert told.startswith(f"the learner's functions decide, from notebooks/{LESSON}.ipynb")


@pytest.mark.slow
def test_the_lessons_own_notebook_decides_as_the_solution_does(tmp_path: Path) -> None:
    path = tmp_path / "mine.ipynb"
    path.write_text(json.dumps(answered(LESSON, "zh", [1, 2, 3])), encoding="utf-8")
    mine, answer = load_functions(ROOT, path), load_functions(ROOT)
    assert (mine.origin, answer.origin) == ("learner", "solution") and mine.sha256 == answer.sha256
    for run in (RAN, {**RAN, "bubble_ratio": 0.7, "failure": {"kind": "hang"}}):
        assert mine[GATES](run, LIMITS) == answer[GATES](run, LIMITS)


RETURNED = {
    LAYOUT: [
        "None", "{}", "{'errors': 5, 'valid': False}", "{'errors': [1], 'valid': False}",
        "{'errors': [], 'valid': False}", "{'errors': ['x'], 'valid': 1}", "[]", "object()",
    ],
    GATES: [
        "None", "one", "{**one, 'eligible': True, 'gate_failures': ['x']}",
        "{**one, 'eligible': 1, 'gate_failures': []}",
        "{**one, 'eligible': False, 'gate_failures': [object()]}",
        "{**one, 'eligible': False, 'gate_failures': 'memory'}", "7", "float('nan')",
    ],
    CHOICE: [
        "None", "'mine'", "{'decision': 'accept', 'candidate': 'ghost'}",
        "{'decision': 'accept', 'candidate': None}", "{'decision': 'accept', 'candidate': one}",
        "{'decision': 'reject', 'candidate': 'mine'}", "{'decision': 'maybe', 'candidate': None}",
        "{'decision': 'accept'}",
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_answer_of_the_wrong_form_is_named(name: str, tmp_path: Path) -> None:
    body = "one = dict(one) if hasattr(one, 'keys') else one\n" if name != CHOICE else ""
    bodies = [f"if one.get('case') == {n}: return {value}\n" if name != CHOICE else
              f"if one and one[0].get('case') == {n}: return {value}\n"
              for n, value in enumerate(RETURNED[name])]  # fmt: skip
    functions = load_functions(
        ROOT, notebook(tmp_path, {name: body + "".join(bodies) + RIGHT[name]})
    )
    for number in range(len(bodies)):
        first, *rest = GIVEN[name]
        case = [{**first[0], "case": number}] if name == CHOICE else {**first, "case": number}
        with pytest.raises(BadAnswer) as caught:
            functions[name](case, *rest)
        said = str(caught.value)
        assert said.startswith(f"{name} of mine.ipynb was given") and "\n" not in said
        assert f"'case': {number}" in said and "and returned" in said and "must return" in said


def test_an_accepted_candidate_must_be_eligible(tmp_path: Path) -> None:
    functions = load_functions(ROOT, notebook(tmp_path))
    with pytest.raises(BadAnswer, match="name of an eligible one"):
        functions[CHOICE]([{**RAN, "eligible": False}])


MISDEEDS = {
    "raise": ("raise RuntimeError('boom')", "raised RuntimeError: boom"),
    "exit": ("import sys; sys.exit(0)", "raised SystemExit: 0"),
    "hard exit": ("import os; os._exit(0)", r"ended their process \(exit status 0\)"),
    "interrupt": ("raise KeyboardInterrupt", "raised KeyboardInterrupt"),
    "odd error": (
        "class Odd(BaseException):\n    def __str__(self): raise self\nraise Odd",
        "raised Odd: <Odd: str",
    ),
    "deep": ("def f(): return f()\nf()", "raised RecursionError"),
    "input": ("input()", "raised EOFError"),
    "loop": ("while True: pass", "had not ended after 0.5 s"),
    "stubborn": (
        "while True:\n    try:\n        while True: pass\n    except: pass",
        "had not ended",
    ),
    "sleep": ("import time; time.sleep(60)", "had not ended"),
    "in C": ("import itertools; sum(itertools.count())", "had not ended"),
    "closed": ("import os; os.closerange(0, 100); os._exit(3)", r"\(exit status 3\)"),
}


@pytest.mark.parametrize("case", MISDEEDS)
def test_a_function_that_does_not_return_is_named(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body, said = MISDEEDS[case]
    functions = load_functions(ROOT, notebook(tmp_path, late(GATES, body)))
    monkeypatch.setattr(learner, "CALL_S", 0.5)
    for _ in range(2):
        with pytest.raises(BadAnswer, match=f"^{GATES} of mine.ipynb was given .*'mine'.* {said}"):
            functions[GATES](RAN, LIMITS)
    monkeypatch.setattr(learner, "CALL_S", 10.0)
    assert functions[GATES]({**RAN, "name": "other"}, LIMITS)["eligible"]  # the others go on


def test_what_a_function_prints_or_changes_stays_with_it(tmp_path: Path) -> None:
    noisy = "print('hello', flush=True)\none['name'] = 'changed'\none['more'] = 1\n" + RIGHT[GATES]
    functions = load_functions(ROOT, notebook(tmp_path, {GATES: noisy}))
    given = dict(RAN)
    assert functions[GATES](given, LIMITS) == {**RAN, "eligible": True, "gate_failures": []}
    assert given == RAN


def test_the_process_ends_with_its_functions(tmp_path: Path) -> None:
    functions = load_functions(ROOT, notebook(tmp_path))
    process = functions[GATES].func.__self__._process  # type: ignore[attr-defined]
    assert process.poll() is None
    del functions
    gc.collect()
    assert process.poll() is not None


# ------------------------------------------------------------------------------ a whole run


@pytest.mark.slow
def test_gates_that_fail_late_cost_the_decision_and_no_measurement(tmp_path: Path) -> None:
    go(ask(tmp_path, groups=("G0_tp", "G1_pp")))
    before = load(tmp_path, "decision")
    when = "one['name'] == 'G1_pp' and one['throughput'] > 9000"
    bad = {GATES: f"if {when}: return None\n{RIGHT[GATES]}"}
    request = ask(tmp_path, groups=("G1_pp", "G0_tp"), notebook=notebook(tmp_path, bad))
    good, said = go(request)
    assert not good
    line = f"{GATES} of mine.ipynb was given .*'G1_pp'.* and returned None; it must return"
    assert re.search(line, said) and re.search(f"no decision, every record is kept: {line}", said)
    kept = load(tmp_path, "G1_pp")
    assert kept["failure"] is None and kept["metrics"]["throughput"]
    assert kept["decision"]["gate_failures"] == ["undecided"] and not kept["decision"]["accepted"]
    assert re.match(line, kept["reasons"]["decision.gate_failures"])
    assert load(tmp_path, "G0_tp")["decision"]["accepted"]  # the other group still ran
    assert load(tmp_path, "decision") == before
    told: list[str] = []
    assert report(tmp_path / "results", told.append)
    page = (tmp_path / "results" / "report.md").read_text("utf-8")
    assert "No current decision" in page and "**accept**" not in page
    assert any("no longer the latest" in line for line in told)
    good, _ = go(ask(tmp_path, groups=("G0_tp",)))  # mended: the kept record is judged anew
    assert good and {c["name"] for c in load(tmp_path, "decision")["candidates"]} == {
        "G0_tp",
        "G1_pp",
    }


def test_a_choice_that_nobody_offered_is_no_decision(tmp_path: Path) -> None:
    ghost = {CHOICE: "if len(one) == 1: return {'decision': 'accept', 'candidate': 'ghost'}\n"
             + RIGHT[CHOICE]}  # fmt: skip
    good, said = go(ask(tmp_path, groups=("G0_tp",), notebook=notebook(tmp_path, ghost)))
    assert not good and "no decision, every record is kept" in said and "'ghost'" in said
    assert load(tmp_path, "G0_tp")["decision"]["accepted"]
    assert not (tmp_path / "results" / "decision.json").exists()


def test_no_machine_path_in_the_reason(tmp_path: Path) -> None:
    bad = {GATES: f"if one['throughput'] > 9000: raise ValueError({sys.prefix!r})\n{RIGHT[GATES]}"}
    go(ask(tmp_path, groups=("G0_tp",), notebook=notebook(tmp_path, bad)))
    reason = load(tmp_path, "G0_tp")["reasons"]["decision.gate_failures"]
    assert "raised ValueError: <python>" in reason and sys.prefix not in reason


def test_a_rule_for_layouts_that_fails_late_starts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = notebook(tmp_path, {LAYOUT: f"if one['tp'] == 4: return 5\n{RIGHT[LAYOUT]}"})
    results = tmp_path / "results"
    assert cli.main(["bench", "--functions", str(bad), "--results", str(results)]) == 1
    assert re.fullmatch(
        f"refused, .+\n{LAYOUT} of mine.ipynb was given .+ returned 5; .+\n",
        capsys.readouterr().out,
    )
    assert not results.exists()
