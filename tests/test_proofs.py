"""A lesson's proof in real processes: it runs, says what went wrong, and leaves nothing behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pytest
from lessons import EVERY, ONCE, ROOT, answered, code_cells, load
from nbclient import NotebookClient

from parlab.lesson import proof, proof_rank
from parlab.lesson.carry import CannotCarry, carried_source
from parlab.lesson.language import speak

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torchrun")]
WITH_PROOF = [
    (lesson, language)
    for lesson, language in EVERY
    if "run_proof(" in (ROOT / "solutions" / f"{lesson}.py").read_text(encoding="utf-8")
]
HELPERS = """
import math
import torch
from functools import lru_cache
from math import sqrt as root

FACTOR = 2
SIZES = {'a': [1, 2]}
KIND = torch.float64
shadow = object()

def twice(x):
    return FACTOR * x

@lru_cache
def kept(x, more=FACTOR):
    return twice(x) + more - FACTOR + int(root(0)) + SIZES['a'][0] - 1

def double(x):
    shadow = kept(x)
    return torch.tensor(shadow, dtype=KIND).item()

def spin():
    while True:
        math.sin(1.0)
"""


@pytest.fixture(autouse=True)
def programs_importable(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # where proofs make their folders
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    speak("en")
    yield
    speak("zh")


@pytest.fixture
def notebook(tmp_path):
    """Names as a notebook's cells define them."""
    file = tmp_path / "cells.py"
    file.write_text(HELPERS)
    names = {"__name__": "__main__"}
    exec(compile(HELPERS, str(file), "exec"), names)
    return names


def lives(marker: str) -> list[str]:
    """Processes whose command line names this folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if marker in line:
            found.append(line)
    return found


def run(functions, what, **options):
    return proof.run_proof(True, "proof_programs", functions, what=what, **options)


def test_the_learners_functions_run_on_every_rank(notebook, tmp_path, capsys):
    result = run([notebook["double"]], "sum", ranks=3)
    printed = capsys.readouterr().out
    assert result == {"sum": 6.0}, printed
    assert "rank 0 of 3 begins" in printed and "3 processes are up" in printed
    assert "rank 1 of 3" not in printed
    assert not lives(str(tmp_path))


def test_what_does_not_agree_is_said_with_its_rank(notebook, capsys):
    assert run([notebook["double"]], "wrong", ranks=2) is None
    printed = capsys.readouterr().out
    assert "❌ rank 1 failed: AssertionError: column 3: expected 7, got 8" in printed


def test_a_learners_error_names_its_line(tmp_path, capsys):
    text = "def double(x):\n    return [][x + 5]\n"
    (tmp_path / "cell.py").write_text(text)
    names = {"__name__": "__main__"}
    exec(compile(text, str(tmp_path / "cell.py"), "exec"), names)
    assert run([names["double"]], "sum", ranks=2) is None
    printed = capsys.readouterr().out
    assert "IndexError" in printed and "double: return [][x + 5]" in printed


def test_a_hang_ends_in_time_and_names_the_rank_and_the_line(
    notebook, tmp_path, monkeypatch, capsys
):
    end = proof._end

    def end_one_after_the_other(process):
        (folder,) = tmp_path.glob("proof-*")
        said = {"kind": "RuntimeError", "message": "connection closed by peer", "where": ""}
        proof_rank.write(folder / "failed-0.json", json.dumps({**said, "time": time.time()}))
        end(process)

    monkeypatch.setattr(proof, "_end", end_one_after_the_other)
    began = time.monotonic()
    assert run([notebook["double"], notebook["spin"]], "hang", ranks=2, seconds=6) is None
    assert time.monotonic() - began < proof.START_S
    printed = capsys.readouterr().out
    assert "❌" in printed and "rank 1: spin" in printed
    assert not lives(str(tmp_path))


def test_a_slow_start_is_not_the_learners_fault(notebook, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(proof, "START_S", 0.5)
    assert run([notebook["double"]], "sum", ranks=2) is None
    printed = capsys.readouterr().out
    assert "⏸" in printed and "your code has not run yet" in printed and "❌" not in printed
    assert not lives(str(tmp_path))


def test_nothing_starts_while_the_switch_is_off(monkeypatch, capsys):
    monkeypatch.setattr(subprocess, "Popen", None)
    assert proof.run_proof(False, "proof_programs", []) is None
    assert "RUN_PROOF = True" in capsys.readouterr().out


def test_an_old_torch_is_told_and_stops_nothing(capsys):
    assert proof.run_proof(True, "proof_programs", [], needs=(99, 0)) is None
    assert "torch ≥ 99.0" in capsys.readouterr().out


def test_where_no_process_can_start_it_says_so(notebook, monkeypatch, capsys):
    def refuse(*_args, **_options):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert run([notebook["double"]], "sum") is None
    assert "(Operation not permitted). The lesson is complete without" in capsys.readouterr().out


def test_a_value_that_no_text_can_say_is_named():
    names = {"__name__": "__main__", "net": object()}
    text = "def f():\n    return net\n"
    file = Path(__file__).with_name("cell_that_is_not_there.py")
    exec(compile(text, str(file), "exec"), names)
    import linecache

    linecache.cache[str(file)] = (len(text), None, text.splitlines(True), str(file))
    with pytest.raises(CannotCarry, match="net: object"):
        carried_source([names["f"]])


def test_an_interrupt_leaves_no_process(tmp_path):
    script = tmp_path / "learner_script.py"
    script.write_text(
        textwrap.dedent("""
        from parlab.lesson.proof import run_proof
        def double(x):
            return 2 * x
        try:
            run_proof(True, "proof_programs", [double], ranks=2, what="slow")
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """)
    )
    environment = os.environ | {"PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True,
                               env=environment)  # fmt: skip
    said = ""
    while "begins" not in said:
        line = process.stdout.readline()
        assert line, said
        said += line
    process.send_signal(signal.SIGINT)
    assert "interrupted" in process.communicate(timeout=15)[0]
    assert not lives(str(tmp_path)) and not list(tmp_path.glob("proof-*"))


def _switched_on(notebook):
    for cell in code_cells(notebook):
        cell.source = cell.source.replace("RUN_PROOF = False", "RUN_PROOF = True")
    return notebook


# A solution and two twins; tests/test_browser.py turns on the proof of an exercise.
@pytest.mark.parametrize(
    ("lesson", "language", "folder"),
    [
        (*walk, "solutions" if number == 0 else "colab")
        for number, walk in enumerate(walk for walk in WITH_PROOF if walk in ONCE)
    ],
)
def test_the_solution_proves_itself(lesson, language, folder, tmp_path):
    """The twin runs alone: what it carries is all that its ranks can import from parlab."""
    whole = load("solutions", lesson, language)
    if folder == "colab":
        whole = answered(lesson, language, [1, 2, 3], folder)
    notebook = _switched_on(whole)
    (index,) = [i for i, c in enumerate(notebook.cells) if "run_proof(" in c.source
                and c.id != "setup" and "RUN_PROOF = " in c.source]  # fmt: skip
    notebook.cells = notebook.cells[: index + 1]
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    printed = "".join(o.get("text", "") for o in notebook.cells[index].outputs)
    assert "✅" in printed and "❌" not in printed, printed


def test_every_lesson_before_the_project_ends_on_a_proof():
    assert {lesson[:2] for lesson, _ in WITH_PROOF} >= {"01", "02", "03"}
