"""nbgrader, somebody else's grader, can use the exercises as they are."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from lessons import EVERY, ROOT, answered, code_cells, load

CONFIG = """
c = get_config()
c.CourseDirectory.course_id = "course"
c.GenerateAssignment.preprocessors = [
    f"nbgrader.preprocessors.{name}"
    for name in ("IncludeHeaderFooter", "LockCells", "ComputeChecksums", "SaveCells")
]
c.ExecutePreprocessor.timeout = 120
"""


@pytest.mark.parametrize(("lesson", "language"), EVERY)
@pytest.mark.parametrize("folder", ["notebooks", "solutions", "colab"])
def test_each_todo_is_an_answer_and_each_check_a_point(
    folder: str, lesson: str, language: str
) -> None:
    keys = {c.id: c.metadata.get("nbgrader") for c in code_cells(load(folder, lesson, language))}
    marked = {name: mark for name, mark in keys.items() if mark}
    assert list(marked) == [f"{kind}-{n}" for n in (1, 2, 3) for kind in ("todo", "check")]
    for name, mark in marked.items():
        check = name.startswith("check")
        assert mark["grade_id"] == name and mark["schema_version"] == 3 and not mark["task"]
        assert (mark["grade"], mark["solution"], mark["locked"]) == (check, not check, check)
        assert mark.get("points") == (1 if check else None)


@pytest.mark.slow
def test_its_autograde_gives_a_right_submission_full_marks(tmp_path: Path) -> None:
    pytest.importorskip("nbgrader", reason="an optional extra: pip install -e '.[nbgrader]'")
    from nbgrader.api import Gradebook

    lesson = "04_model_internal_parallel"
    (tmp_path / "nbgrader_config.py").write_text(CONFIG, encoding="utf-8")
    for where, notebook in {
        "source/lesson": load("notebooks", lesson, "zh"),
        "submitted/right/lesson": answered(lesson, "zh", [1, 2, 3]),
        "submitted/half/lesson": answered(lesson, "zh", [1]),
    }.items():
        (tmp_path / where).mkdir(parents=True)
        nbformat.write(notebook, tmp_path / where / f"{lesson}.ipynb")
    beside = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # alembic
    for command in ("generate_assignment", "autograde"):
        done = subprocess.run(
            [sys.executable, "-m", "nbgrader", command, "lesson"],
            cwd=tmp_path, env=os.environ | {"PATH": beside, "PYTHONPATH": str(ROOT)},
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
    with Gradebook(f"sqlite:///{tmp_path / 'gradebook.db'}") as book:
        scores = {who: book.find_submission("lesson", who).score for who in ("right", "half")}
    assert scores == {"right": 3, "half": 1}
