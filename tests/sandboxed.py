"""What the tests of the grader's sandbox share: warm processes, and one small exercise."""

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from parlab.grade.calls import call_answer
from parlab.grade.limits import Limits
from parlab.grade.ranks import Ranks
from parlab.grade.runner import run_notebook
from parlab.grade.types import CallOutcome, RunOutcome
from parlab.grade.warm import NoSandbox, RunContext, Warm

SECRET = f"secret-{secrets.token_hex(8)}"
# Small, so that attacks on them end soon.
TIGHT = Limits(
    cpu_seconds=4, wall_seconds=10, cell_seconds=7, case_seconds=4, memory_mb=256, processes=48,
    file_mb=16, scratch_mb=32, output_mb=4, message_mb=2,
)  # fmt: skip
SETUP = "# SETUP\nfrom parlab.lesson.checks import check_todo"
CHECK = """# CHECK 1
with check_todo(1, 'double') as call:
    for number in (3, 4, 5):
        got = call(number)
        assert call.same(got, 2 * number), call.wrong('twice', 2 * number)"""
RIGHT = "# TODO 1 · double\ndef double(x):\n    return 2 * x"


@dataclass(frozen=True)
class Case:
    """One case, as `parlab.grade.calls` needs it."""

    arguments: tuple[Any, ...]
    call: str = "call"
    ranks: Callable[..., Ranks] | None = None


CASES = [Case((number,)) for number in (7, 8, 9, 10)]
EXPECTED = tuple(("value", 2 * number) for number in (7, 8, 9, 10))


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    """Warm processes of a grader that has a secret in its environment."""
    os.environ["GRADER_SECRET"] = SECRET
    try:
        with Warm() as processes:
            yield processes
    except NoSandbox as reason:
        if os.environ.get("PARLAB_REQUIRE") == "sandbox":
            raise
        pytest.skip(f"no sandbox on this machine: {reason}")
    finally:
        os.environ.pop("GRADER_SECRET", None)


@pytest.fixture
def context(warm: Warm) -> RunContext:
    """Tight limits."""
    return RunContext(warm, TIGHT)


def exercise(*answers: str) -> NotebookNode:
    """The exercise with these cells in place of its TODO."""
    cells = [SETUP, *answers, CHECK]
    return new_notebook(cells=[new_code_cell(source) for source in cells])


def run(source: str, context: RunContext) -> RunOutcome:
    """nbval's run of the exercise with this answer."""
    return run_notebook(exercise(source), context)


def call(source: str, context: RunContext, cases: list[Case] | None = None) -> CallOutcome:
    """The answer's function ``double`` on cases."""
    return call_answer(1, "double", source, [SETUP], cases or CASES, context)


def says(code: str, context: RunContext) -> Any:
    """What an answer that spies out its surroundings comes home with.

    Args:
        code: the body of a function that returns what it found, as plain data.
    """
    body = "\n".join(f"    {line}" for line in code.strip().splitlines())
    patient = replace(TIGHT, cpu_seconds=30, wall_seconds=90, case_seconds=60)
    context = RunContext(context.warm, patient)
    found = call(f"def double(x):\n{body}", context, [Case((1,))]).results[0]
    assert found[0] in ("value", "raised"), found
    return found[1:] if found[0] == "raised" else found[1]


def processes_with(word: str) -> list[str]:
    """Command lines on this machine that hold ``word``, this process's own excepted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and int(folder.name) != os.getpid():
            found.append(line)
    return found


def children_of(pid: int) -> set[int]:
    """All that descend from a process."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        parents[int(folder.name)] = int(stat.rpartition(")")[2].split()[1])
    found: set[int] = set()
    grown = {pid}
    while grown:
        grown = {child for child, parent in parents.items() if parent in grown} - found
        found |= grown
    return found
