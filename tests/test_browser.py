"""A learner's way through a lesson in JupyterLab, in a real browser."""

import os
from pathlib import Path

import nbformat
import pytest
from browser import chromium, open_lab
from lessons import EVERY, ROOT, answers, cell, code_cells, load, todo_numbers

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
PICTURES = ROOT / "test-results"
# A walk takes about a minute: the project in one language, a lesson with a proof in the other.
WALKS = [walk for walk in EVERY if walk[0][:2] + walk[1] in ("03zh", "04en")]


@pytest.fixture
def browser() -> str:
    """A Chromium; without one the test is skipped, or fails where one is required."""
    found = chromium()
    if not found:
        message = "no Chromium or Chrome here: install one, or name it in PARLAB_CHROMIUM"
        if "chromium" in os.environ.get("PARLAB_REQUIRE", ""):
            pytest.fail(message)
        pytest.skip(message)
    PICTURES.mkdir(exist_ok=True)
    return found


@pytest.mark.parametrize(("lesson", "language"), WALKS)
def test_a_learner_s_way_through_the_lesson(
    lesson: str, language: str, browser: str, tmp_path: Path
) -> None:
    exercise, solution = load("notebooks", lesson, language), load("solutions", lesson, language)
    numbers = todo_numbers(exercise)
    heads = {n: cell(exercise, f"todo-{n}").source.split("\n")[0] for n in numbers}
    labels = {n: head.removeprefix("# ") for n, head in heads.items()}
    nbformat.write(exercise, tmp_path / "lesson.ipynb")
    with open_lab(tmp_path, "lesson.ipynb", browser) as lab:

        def picture(what: str) -> None:
            lab.page.screenshot(path=PICTURES / f"{lesson[:2]}-{language}-{what}.png")

        picture("0-opened")
        assert lab.overflowing() == []

        lab.run_all()
        assert lab.output("# CHECK 1").startswith(f"⏳ {labels[1]} · ")
        picture("1-not-done")
        assert lab.ran("# CHECK 1") and not lab.ran("# CHECK 2")

        for number in numbers[1:]:
            lab.run(heads[number])
            shown = lab.run(f"# CHECK {number}")
            assert shown.startswith(f"⏳ {labels[number]} · ") and len(shown.splitlines()) == 1

        for number in numbers:
            lab.type_into(heads[number], cell(solution, f"todo-{number}").source)
        lab.run_all()
        for number in numbers:
            assert lab.output(f"# CHECK {number}").startswith(f"✅ {labels[number]} · ")
            picture(f"2-passed-{number}")

        proof = [c.source for c in code_cells(exercise) if c.source.startswith("RUN_PROOF = False")]
        if proof:
            lab.type_into("RUN_PROOF", proof[0].replace("False", "True", 1))
            said = lab.run("RUN_PROOF")
            assert "✅" in said and "❌" not in said, said
            picture("4-proved")

        for number in numbers:
            wrong = next(a for a in answers(lesson) if a.todo == number and not a.right)
            lab.type_into(heads[number], f"{heads[number]}\n{wrong.source}")
            lab.run(heads[number])
            lines = lab.run(f"# CHECK {number}").splitlines()
            assert lines[0] == f"❌ {labels[number]}" and 4 <= len(lines) <= 6, lines
            picture(f"3-wrong-{number}")
            lab.type_into(heads[number], cell(solution, f"todo-{number}").source)
            lab.run(heads[number])
            assert lab.run(f"# CHECK {number}").startswith("✅")
