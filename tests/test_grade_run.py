"""nbval's run in the sandbox: what it reports of right, wrong and unfinished answers."""

import time

import pytest
from lessons import LESSONS, load
from nbformat.v4 import new_code_cell
from sandboxed import CHECK, RIGHT, SETUP, TIGHT, context, exercise, run, warm

from parlab.grade.limits import Limits
from parlab.grade.runner import run_notebook
from parlab.grade.warm import RunContext, Warm

pytestmark = pytest.mark.slow

__all__ = ["context", "warm"]


@pytest.mark.parametrize(
    ("source", "state"),
    [
        (RIGHT, "passed"),
        ("# TODO 1 · double\ndef double(x):\n    return 3 * x", "failed"),
        ("# TODO 1 · double\ndef double(x):\n    raise NotImplementedError('TODO 1')", "not_done"),
        ("# TODO 1 · double\ndef double(x) return 2", "not_done"),
        ("# TODO 1 · double\n1 / 0", "not_done"),
        ("", "not_done"),
    ],
    ids=["right", "wrong", "stub", "syntax", "raises", "empty"],
)
def test_each_state_of_an_answer(source: str, state: str, context: RunContext) -> None:
    outcome = run(source, context)
    assert (outcome.status, outcome.checks, outcome.notes) == (None, {1: state}, ())
    assert outcome.peak_memory_mb is None or 0 < outcome.peak_memory_mb < 256


def test_cells_after_a_failure_still_run(context: RunContext) -> None:
    notebook = exercise("raise RuntimeError('mine')", RIGHT)
    assert run_notebook(notebook, context).checks == {1: "passed"}


def test_stored_outputs_and_counts_do_no_harm(context: RunContext) -> None:
    notebook = exercise(RIGHT)
    for cell in notebook.cells:
        cell.outputs = [{"output_type": "stream", "name": "stdout", "text": "old"}]
    assert run_notebook(notebook, context).checks == {1: "passed"}


def test_skipped_cells_do_not_run_but_checks_do(context: RunContext) -> None:
    notebook = exercise(RIGHT, "import os; os._exit(1)")
    ids = [cell.id for cell in notebook.cells[2:]]
    outcome = run_notebook(notebook, context, skip=ids)
    assert (outcome.status, outcome.checks) == (None, {1: "passed"})


def test_a_kernel_name_that_does_not_exist_does_no_harm(context: RunContext) -> None:
    notebook = exercise(RIGHT)
    notebook.metadata["kernelspec"] = {"name": "julia-9", "display_name": "?", "language": "julia"}
    assert run_notebook(notebook, context).checks == {1: "passed"}


def test_honest_output_of_a_megabyte_is_read(context: RunContext) -> None:
    outcome = run(f"{RIGHT}\nfor _ in range(1000):\n    print('x' * 1000)", context)
    assert (outcome.status, outcome.checks) == (None, {1: "passed"})


def test_pictures_and_prints_of_children_work(context: RunContext) -> None:
    source = (
        f"{RIGHT}\nimport subprocess\nprint(subprocess.run(['echo', 'x'], capture_output=True))\n"
        "from matplotlib import pyplot\npyplot.plot([1, 2]); pyplot.show()"
    )
    outcome = run(source, context)
    assert (outcome.status, outcome.checks) == (None, {1: "passed"})


def test_a_long_notebook_is_cut_and_its_checks_unknown(context: RunContext) -> None:
    notebook = exercise(RIGHT)
    notebook.cells[1:1] = [new_code_cell("") for _ in range(2100)]
    assert run_notebook(notebook, context, skip=[c.id for c in notebook.cells]).checks == {}


def test_after_death_nothing_is_waited_for(context: RunContext) -> None:
    began = time.monotonic()
    notebook = exercise("import os; os._exit(3)", *["x = 1"] * 30)
    outcome = run_notebook(notebook, context)
    assert outcome.status == "kernel_died"
    assert outcome.checks == {1: "unknown"}
    assert time.monotonic() - began < 10


def test_two_checks_with_one_number_do_not_hide_a_failure(context: RunContext) -> None:
    notebook = exercise("def double(x): return 0")
    notebook.cells.append(new_code_cell("# CHECK 1\npass"))
    assert run_notebook(notebook, context).checks == {1: "failed"}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_lessons_run(lesson: str, language: str, warm: Warm) -> None:
    context = RunContext(warm, Limits())
    right = run_notebook(load("solutions", lesson, language), context)
    assert right.status is None, right
    assert set(right.checks.values()) == {"passed"}, right
    open_ = run_notebook(load("notebooks", lesson, language), context)
    assert open_.status is None, open_
    assert set(open_.checks.values()) == {"not_done"}, open_


def test_without_fork_kernels_are_as_well_shut_in() -> None:
    with Warm(fork=False) as processes:
        context = RunContext(processes, Limits())
        assert run(RIGHT, context).checks == {1: "passed"}
        source = f"{RIGHT}\nimport os\nif os.path.exists('/home'): del double"
        assert run(source, context).checks == {1: "passed"}


def test_with_every_student_trusted_it_runs_without_a_sandbox() -> None:
    with Warm(trust_every_student=True) as processes:
        context = RunContext(processes, TIGHT)
        assert run(RIGHT, context).checks == {1: "passed"}
        assert run("import os; os._exit(1)", context).status == "kernel_died"


def test_setup_and_check_are_those_of_the_exercise() -> None:
    assert SETUP.startswith("# SETUP") and CHECK.startswith("# CHECK 1")
