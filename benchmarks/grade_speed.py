"""How fast grading is, against the yardsticks: `python benchmarks/grade_speed.py [--pairs 5]`.

    parlab    `parlab grade`: rebuilt, run by nbval in sandboxes, called on every generated case,
              compared and reported; starting the warm processes is part of it
    nbgrader  `nbgrader autograde` of the same submissions (an optional extra: pip install nbgrader;
              --nbgrader PYTHON where it lives in another environment)
    nbval     plain `pytest --nbval-lax -n CORES --dist loadfile`, no sandbox, no scores

The submissions are lesson 04 as shipped with the right answers filled in. The warm start counts for
more in a small class: `grade_speed_of_12.json` is one of 12 with all three. The three take turns; a
pair is one run of each, a figure the median of the pairs' ratios of seconds per submission. The
machine must be quiet: where two runs of the same kind differ by more than a quarter, the script
says so.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import nbformat
from nbformat import NotebookNode

ROOT = Path(__file__).resolve().parent.parent
LESSON = "04_model_internal_parallel"
WANTED = {"nbgrader": 10.0, "nbval": 1.0}
UNEVEN = 0.25
CONFIG = """c = get_config()
c.CourseDirectory.course_id = "speed"
c.ClearSolutions.enforce_metadata = False
c.Exchange.root = {exchange!r}
c.ExecutePreprocessor.timeout = 300
"""


def right_answers() -> NotebookNode:
    """The exercise with the solution's cells in place of its TODOs, without outputs."""
    exercise = nbformat.read(ROOT / "notebooks" / f"{LESSON}.ipynb", as_version=4)
    solution = nbformat.read(ROOT / "solutions" / f"{LESSON}.ipynb", as_version=4)
    answers = {cell.id: cell.source for cell in solution.cells if cell.id.startswith("todo-")}
    for cell in exercise.cells:
        cell.source = answers.get(cell.id, cell.source)
    return exercise


def environment() -> dict[str, str]:
    """This process's own, without what steers pytest, and with this tree's package first."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return kept | {"PYTHONPATH": str(ROOT)}


def processor_seconds() -> float:
    """CPU time of every process that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def timed(command: list[str], cwd: Path, okay: tuple[int, ...] = (0,)) -> float:
    """Seconds that a command takes.

    Raises:
        SystemExit: it failed; shows the end of what it said.
    """
    began = time.perf_counter()
    variables = environment()  # nbgrader calls alembic, which lies beside its Python
    variables["PATH"] = os.pathsep.join([os.path.dirname(command[0]), variables["PATH"]])
    done = subprocess.run(command, cwd=cwd, env=variables, capture_output=True, text=True)
    seconds = time.perf_counter() - began
    if done.returncode not in okay:
        sys.exit(f"{' '.join(command)}\n{(done.stdout + done.stderr)[-3000:]}")
    return seconds


def run_parlab(count: int, folder: Path) -> float:
    """Seconds per submission of `parlab grade`."""
    handed_in = folder / "in"
    handed_in.mkdir()
    for number in range(count):
        nbformat.write(right_answers(), handed_in / f"student{number:03}.ipynb")
    command = [sys.executable, "-m", "parlab.cli", "grade", str(handed_in)]
    seconds = timed([*command, "--lesson", LESSON, "--out", str(folder / "out")], ROOT)
    rows = json.loads((folder / "out" / "grades.json").read_text(encoding="utf-8"))
    if others := [row for row in rows["students"] if row["status"] != "ok"]:
        sys.exit(f"not every right submission is ok: {json.dumps(others)[:8000]}")
    return seconds / count


def run_nbval(count: int, folder: Path) -> float:
    """Seconds per submission of plain nbval on as many workers as there are cores."""
    for number in range(count):
        nbformat.write(right_answers(), folder / f"student{number:03}.ipynb")
    cores = str(len(os.sched_getaffinity(0)))
    command = [sys.executable, "-m", "pytest", "-q", "--nbval-lax", "-n", cores, "--dist"]
    command += ["loadfile", "-c", os.devnull, "--rootdir", str(folder), "--confcutdir"]
    return timed([*command, str(folder), "-p", "no:cacheprovider", "."], folder) / count


def run_nbgrader(python: str, count: int, folder: Path) -> float:
    """Seconds per submission of `nbgrader autograde`."""
    source = right_answers()
    for cell in source.cells:
        kind = str(cell.id).partition("-")[0]
        if kind in ("todo", "check") and cell.id != "check-extra":
            mark = {"grade": kind == "check", "solution": kind == "todo", "task": False}
            mark |= {"schema_version": 3, "grade_id": cell.id, "locked": kind == "check"}
            mark |= {"points": 1} if kind == "check" else {}
            cell.metadata["nbgrader"] = mark
    config = CONFIG.format(exchange=str(folder / "exchange"))
    (folder / "nbgrader_config.py").write_text(config, encoding="utf-8")
    places = [folder / "source" / "lesson"]
    places += [folder / "submitted" / f"student{n:03}" / "lesson" for n in range(count)]
    for place in places:
        place.mkdir(parents=True)
        nbformat.write(source, place / "04.ipynb")
    nbgrader = [python, "-m", "nbgrader"]
    timed([*nbgrader, "generate_assignment", "lesson"], folder)
    return timed([*nbgrader, "autograde", "lesson"], folder) / count


def main() -> None:
    """Measures, prints and writes `benchmarks/grade_speed.json`."""
    parser = argparse.ArgumentParser(description="speed of parlab grade against the yardsticks")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--count", type=int, default=24, help="submissions of parlab and nbval")
    parser.add_argument("--nbgrader", default=sys.executable, metavar="PYTHON")
    parser.add_argument("--nbgrader-count", type=int, default=6)
    parser.add_argument("--only", default="parlab,nbgrader,nbval", help="which of the three")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "grade_speed.json")
    given = parser.parse_args()
    kinds: dict[str, Callable[[Path], float]] = {
        "parlab": lambda folder: run_parlab(given.count, folder),
        "nbgrader": lambda folder: run_nbgrader(given.nbgrader, given.nbgrader_count, folder),
        "nbval": lambda folder: run_nbval(given.count, folder),
    }
    kinds = {name: kinds[name] for name in given.only.split(",")}
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    used: dict[str, list[float]] = {name: [] for name in kinds}
    for pair in range(given.pairs):
        for name, measure in kinds.items():
            before = processor_seconds()
            with tempfile.TemporaryDirectory(prefix="speed-") as folder:
                seconds[name].append(round(measure(Path(folder)), 4))
            count = given.nbgrader_count if name == "nbgrader" else given.count
            used[name].append(round((processor_seconds() - before) / count, 4))
            print(
                f"pair {pair + 1} {name:<9}{seconds[name][-1]:7.3f} s a submission,"
                f" {used[name][-1]:7.3f} s of CPU",
                flush=True,
            )
    report(seconds, used, given)


def report(
    seconds: dict[str, list[float]], used: dict[str, list[float]], given: argparse.Namespace
) -> None:
    """Prints medians and ratios, and writes them with the machine they were taken on."""
    ratios = {
        name: round(statistics.median(map(_ratio, seconds[name], seconds["parlab"])), 2)
        for name in seconds
        if name != "parlab" and "parlab" in seconds
    }
    for name, values in seconds.items():
        middle = statistics.median(values)
        uneven = (max(values) - min(values)) / middle
        warning = "  uneven: was the machine quiet?" if uneven > UNEVEN else ""
        print(f"{name:<9}median {middle:.3f} s, spread {uneven:.0%}{warning}")
    for name, ratio in ratios.items():
        verdict = "reached" if ratio >= WANTED[name] else "missed"
        print(f"{name} / parlab = {ratio} (wanted {WANTED[name]}: {verdict})")
    found = {
        "when": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%MZ"),
        "machine": {"cores": len(os.sched_getaffinity(0)), "processor": _processor()},
        "python": platform.python_version(),
        "lesson": LESSON,
        "submissions": {"parlab": given.count, "nbval": given.count},
        "seconds_per_submission": seconds,
        "cpu_seconds_per_submission": used,
        "ratios_to_parlab": ratios,
    }
    found["submissions"]["nbgrader"] = given.nbgrader_count
    given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _ratio(other: float, ours: float) -> float:
    return other / ours


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")


if __name__ == "__main__":
    main()
