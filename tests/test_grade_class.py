"""A whole class, really rebuilt, run and called: one row each, right status, right score."""

import csv
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from grade_students import Pupil, make_class, roster, write_class
from lessons import ROOT

from parlab.grade.course import load_course
from parlab.grade.students import safe_name

pytestmark = pytest.mark.slow

LESSON = "04_model_internal_parallel"
PEAK_MB = 700  # of the grader itself, whatever the class holds
FULL = {1: 40.0, 2: 30.0, 3: 30.0}


# Runs the rest of the command line; its last word tells the largest process's memory, in MiB.
MEASURED = (
    "-c",
    "import resource, subprocess, sys\n"
    "code = subprocess.run([sys.executable, *sys.argv[1:]]).returncode\n"
    "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
    "print(peak // (1024**2 if sys.platform == 'darwin' else 1024), file=sys.stderr)\n"
    "sys.exit(code)",
)


def run(
    submissions: Path, out: Path, *options: str, program: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """``parlab grade`` as an instructor runs it; ``program`` is run with it as its arguments."""
    command = [sys.executable, *program, "-m", "parlab.cli", "grade", str(submissions)]
    command += ["--out", str(out)]
    command += ["--lesson", LESSON, "--points", "40,30,30", "--language", "en", *options]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True)


def rows_of(out: Path) -> list[dict[str, str]]:
    with open(out / "grades.csv", encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def differs(pupil: Pupil, row: dict[str, str]) -> list[str]:
    """What is not as it must be, from how the submission was made."""
    found = [] if row["status"] == pupil.status else [f"{row['status']} for {pupil.status}"]
    for todo, verdict in pupil.scores.items():
        points = float(row[f"todo_{todo}"] or -1)
        right = {
            "full": points == FULL[todo],
            "zero": points == 0,
            "less": 0 <= points < FULL[todo],
        }[verdict]
        if not right:
            found.append(f"TODO {todo}: {points} of {FULL[todo]} for {verdict}")
    return found


def check(pupils: Sequence[Pupil], out: Path) -> None:
    """One row each, found by the number that the platform puts into the file's name."""
    rows = rows_of(out)
    assert len(rows) == len(pupils), Counter(row["status"] for row in rows)
    problems: list[tuple[object, ...]] = []
    for pupil in pupils:
        mine = [row for row in rows if f"_{pupil.number}_" in row["file"]]
        if len(mine) != 1:
            problems.append((pupil.name, pupil.kind, f"{len(mine)} rows"))
        elif wrong := differs(pupil, mine[0]):
            problems.append((pupil.name, pupil.kind, *wrong, mine[0]["notes"][:300]))
    assert not problems, "\n".join(map(str, problems))


def graded(pupils: list[Pupil], folder: Path, layout: str) -> None:
    place = write_class(pupils, folder / "class", layout)
    listed = folder / "roster.csv"
    listed.write_bytes(roster(pupils, layout))
    done = run(place, folder / "grades", "--roster", str(listed), program=[*MEASURED])
    assert done.returncode == 0, done.stdout + done.stderr
    peak = int(done.stderr.split()[-1])
    print(f"{len(pupils)} submissions, {layout}: peak {peak} MB")
    assert peak < PEAK_MB
    check(pupils, folder / "grades")


@pytest.mark.xdist_group("grade-class")
def test_a_class_of_forty(tmp_path: Path) -> None:
    graded(make_class(load_course(ROOT, LESSON), 80, seed=1)[::2], tmp_path, "moodle")


@pytest.mark.big_class
@pytest.mark.xdist_group("grade-class")
def test_a_class_of_three_hundred(tmp_path: Path) -> None:
    graded(make_class(load_course(ROOT, LESSON), 300, seed=0), tmp_path, "canvas")


@pytest.mark.xdist_group("grade-class")
def test_a_second_run_runs_nothing_again_and_keeps_corrections(tmp_path: Path) -> None:
    pupils = make_class(load_course(ROOT, LESSON), 6, seed=2)
    write_class(pupils, tmp_path / "class", "flat")
    out = tmp_path / "grades"
    assert run(tmp_path / "class", out).returncode == 0
    first = rows_of(out)
    key = first[0]["student"]
    with open(out / "corrections.csv", "a", encoding="utf-8") as file:
        file.write(f"{key},total,55.5,discussed in class\n")
    done = run(tmp_path / "class", out)
    assert done.returncode == 0, done.stdout
    again = rows_of(out)
    assert again[0]["total"] == "55.5" and again[0]["corrected"] == "yes"
    assert [row["status"] for row in again] == [row["status"] for row in first]
    assert "unchanged, not run again" in done.stdout
    page = (out / "feedback" / f"{safe_name(key)}.html").read_text("utf-8")
    assert "discussed in class" in page


@pytest.mark.xdist_group("grade-class")
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_a_run_that_goes_on_and_no_process(tmp_path: Path) -> None:
    pupils = make_class(load_course(ROOT, LESSON), 8, seed=3)
    place, out = write_class(pupils, tmp_path / "class", "flat"), tmp_path / "grades"
    command = [sys.executable, "-u", "-m", "parlab.cli", "grade", str(place), "--out", str(out)]
    command += ["--lesson", LESSON, "--points", "40,30,30", "--language", "en", "--jobs", "2"]
    variables = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as grader:
        assert grader.stdout
        for line in grader.stdout:
            if "/8" in line:
                break
        os.killpg(grader.pid, signal.SIGINT)  # as a terminal does
        said = grader.stdout.read()
    assert grader.returncode == 130, said
    assert "run the same command again" in said
    assert not (out / "grades.csv").exists() and not (out / "logs").exists()
    kept = len(list((out / ".state").iterdir()))
    assert 1 <= kept < 8
    assert run(place, out).returncode == 0
    check(pupils, out)
    assert len(rows_of(out)) == 8
