"""What ``parlab grade``'s options mean, and what is refused."""

from pathlib import Path

import pytest
from lessons import ROOT
from nbformat.v4 import new_code_cell, new_notebook

from parlab.cli import main
from parlab.grade import grading
from parlab.grade.corrections import Correction
from parlab.grade.graded import Graded
from parlab.grade.limits import Limits
from parlab.grade.needed_cells import skippable
from parlab.grade.options import BadOption, parse_limits, parse_points, points_for
from parlab.grade.roster import parse_roster
from parlab.grade.state import keep_lesson, lesson_in

CLASS = ROOT / "examples" / "class"


def test_points_are_equal_parts_of_a_hundred_unless_given() -> None:
    assert points_for((), [1, 2, 3]) == {1: 33.33, 2: 33.33, 3: 33.34}
    assert points_for(parse_points("40,30,30"), [1, 2, 3]) == {1: 40, 2: 30, 3: 30}
    with pytest.raises(BadOption, match="2 numbers, the lesson has 3"):
        points_for(parse_points("50,50"), [1, 2, 3])


@pytest.mark.parametrize("text", ["40,,30", "a", "0,50,50", "-1", "nan", "inf,1,1"])
def test_points_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(BadOption, match="write 40,30,30"):
        parse_points(text)


def test_limits_stand_over_the_defaults() -> None:
    assert parse_limits("") == Limits()
    limits = parse_limits("memory_mb=2048, cpu_seconds=7.5")
    assert (limits.memory_mb, limits.cpu_seconds) == (2048, 7.5)
    assert limits.wall_seconds == Limits().wall_seconds


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("memory=1", "NAME of cpu_seconds"),
        ("memory_mb", "NAME of cpu_seconds"),
        ("memory_mb=x", "NAME of cpu_seconds"),
        ("memory_mb=nan", "NAME of cpu_seconds"),
        ("memory_mb=-1", "memory_mb=-1: a whole number from 1 to 1000000"),
        ("processes=0.5", "processes=0.5: a whole number from 1 to 1000000"),
        ("memory_mb=1e30", "memory_mb=1e30: a whole number from 1 to 1000000"),
        ("cell_seconds=1e19", "cell_seconds=1e19: a number from 0.1 to 1000000"),
    ],
)
def test_limits_that_are_none_are_refused(text: str, said: str) -> None:
    with pytest.raises(BadOption, match=said):
        parse_limits(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lesson", "77"], "77"),
        (["--lesson", "04", "--points", "1,2"], "--points has 2 numbers"),
        (["--lesson", "04", "--points", "-5,40,65"], "'-5' is no positive number"),
        (["--lesson", "04", "--limits", "x=1"], "--limits x=1"),
        (["--lesson", "04", "--jobs", "-2"], "--jobs -2"),
        (["--lesson", "04", "--jobs", "0"], "--jobs 0: write a whole number, 1 or more"),
        (["--lesson", "04", "--jobs", "two"], "--jobs two"),
        (["--lesson", "04", "--seed", "abc"], "--seed abc: write a whole number, 0 or more"),
        (["--lesson", "04", "--out", "README.md"], "README.md is a file: give a folder"),
        (["--lesson", "04", "--out", "README.md/x"], "README.md is a file: give a folder"),
        (["--lesson", "04", "--roster", "nowhere.csv"], "nowhere.csv does not exist: check the"),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_line(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(ROOT)
    assert main(["grade", str(CLASS), "--out", str(tmp_path / "out"), *options]) == 1
    output = capsys.readouterr()
    assert said in output.out + output.err
    assert "Traceback" not in output.out + output.err


def test_grades_never_go_into_the_submissions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "class").mkdir()
    out = tmp_path / "class" / "grades"
    assert main(["grade", str(tmp_path / "class"), "--lesson", "04", "--out", str(out)]) == 1
    assert "choose another folder" in capsys.readouterr().out and not out.exists()


def test_bad_corrections_are_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "corrections.csv").write_text("student,item,points\na,1,999\n", encoding="utf-8")
    assert main(["grade", str(CLASS), "--lesson", "04", "--out", str(tmp_path)]) == 1
    assert "corrections.csv:2: points '999'" in capsys.readouterr().out


def test_a_folder_with_another_lesson_s_grades_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "corrections.csv").write_text("student,item,points\na,1,3\n", encoding="utf-8")
    assert lesson_in(tmp_path) == ""
    keep_lesson(tmp_path, "04_model_internal_parallel")
    assert main(["grade", str(CLASS), "--lesson", "02", "--out", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "holds the grades and corrections of 04_model_internal_parallel" in said
    assert f"--out {tmp_path}-02" in said


def test_most_of_another_lesson_is_said() -> None:
    other = (("other_lesson", {"found": "04_x", "wanted": "02_y"}),)
    graded = [
        Graded(str(i), str(i), "", status, (), notes=notes)
        for i, (status, notes) in enumerate(
            [("wrong_lesson", other)] * 3 + [("ok", ())] * 2 + [("no_submission", ())] * 5
        )
    ]
    assert grading._of_other_lessons(graded, False) == ["3 of 5 are 04_x: is --lesson right?"]
    assert grading._of_other_lessons(graded[2:], True) == []


def test_corrections_that_fit_nobody_are_said() -> None:
    lost = [Correction("Syn_Tax_1008", "1", 3, "", 2)]
    (line,) = grading._lost(Path("c.csv"), lost, False)
    assert line.startswith("c.csv: 1 not applied") and "Syn_Tax_1008 (2)" in line
    assert grading._lost(Path("c.csv"), [], True) == []


def test_a_roster_without_column_names_is_said() -> None:
    line = grading._list_of(Path("r.txt"), parse_roster("Nom\nAnn Smith\n"), False)
    assert line.startswith("roster r.txt has no column names") and line.endswith(
        "2, the first is Nom"
    )


def cell(role: str, source: str, name: str) -> object:
    return new_code_cell(source, id=name, metadata={"parlab": {"role": role}})


def test_cells_that_only_draw_or_show_need_not_run() -> None:
    book = new_notebook(
        cells=[
            cell("setup", "import torch", "setup"),
            cell("course", "draw_mesh(pp=3)", "draw"),
            cell("course", "size = 4", "base"),
            cell("course", "def table():\n    return size", "table"),
            cell("course", "groups = [1]\nprint(groups)", "shown"),
            cell("scratch", "while True: pass", "tried"),
            cell("helper", "def help(x):\n    return table()[x]", "helper"),
            cell("answer", "def f(x):\n    return help(x)", "todo-1"),
            cell("check", "with check_todo(1, 'f') as call:\n    groups = call(1)", "check-1"),
            cell("course", "if ready('f'):\n    print(f(1))", "used"),
        ]
    )
    assert skippable(book) == {"draw", "shown", "tried", "used"}
