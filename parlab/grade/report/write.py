"""Writes everything that a run hands out into its folder."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from parlab.grade.corrections import Correction
from parlab.grade.report import lms, pages, tables
from parlab.grade.report.picture import png
from parlab.grade.report.statistics import broken_rules, of_class
from parlab.grade.report.told import NO_FUNCTION, notes_of
from parlab.grade.rows import NOT_HANDED_IN, Row, number
from parlab.grade.texts import LANGUAGES, say, status_name
from parlab.grade.types import Note
from parlab.lesson.files import write_whole

FEEDBACK = "feedback"
_FILES = {
    "grades.csv": ("成绩表，用 Excel 打开", "the grades, for a spreadsheet"),
    "grades.json": ("全部结果，给程序用", "everything, for programs"),
    "moodle.csv": ("导入 Moodle", "for Moodle's import"),
    "moodle-feedback.zip": (
        "在 Moodle 中一次上传所有反馈页",
        "every feedback page, for Moodle's “upload multiple feedback files”",
    ),
    "canvas.csv": ("导入 Canvas 成绩册", "for Canvas's gradebook import"),
    "nbgrader.csv": ("nbgrader 格式的成绩", "as nbgrader exports it"),
    "class.png": ("上面的图", "the picture above"),
}


@dataclass(frozen=True)
class Handout:
    """What the report is about.

    Attributes:
        about: what stands on every page.
        rows: one a student.
        students: key → what the platform knows of them.
        roster: the platform's list, where there is one.
        notes: about the class.
        lost: corrections that fit nobody.
    """

    about: pages.About
    rows: Sequence[Row]
    students: Mapping[str, lms.Student]
    roster: lms.RosterLike | None
    notes: Sequence[Note] = ()
    lost: Sequence[Correction] = ()


def write(handout: Handout, out: Path) -> Path:
    """Writes tables, pages and import files; pages of students who are gone are removed.

    Returns:
        The class page.

    Raises:
        OSError: a file cannot be written; each that was is whole.
    """
    about, rows = handout.about, handout.rows
    handed_in = [row for row in rows if row.status != NOT_HANDED_IN]
    (out / FEEDBACK).mkdir(parents=True, exist_ok=True)
    student_pages = {row.graded.student: pages.student_page(row, about) for row in rows}
    for student, page in student_pages.items():
        _text(out / FEEDBACK / f"{student}.html", page)
    _remove_others(out / FEEDBACK, {f"{student}.html" for student in student_pages})
    found = of_class(rows, about.points, about.rules)
    picture = png(found, about.most)
    contents: dict[str, str | bytes | None] = {
        "grades.csv": tables.grades_csv(rows, about.points, about.language),
        "grades.json": tables.grades_json(rows, _head(about), about.points),
        "class.png": picture,
        **_imports(
            handout, {row.graded.student: student_pages[row.graded.student] for row in handed_in}
        ),
    }
    for name, content in contents.items():
        if content is None:
            (out / name).unlink(missing_ok=True)
        else:
            _text(out / name, content)
    index = LANGUAGES.index(about.language)
    files = [(name, _FILES[name][index]) for name in _FILES if contents.get(name) is not None]
    index_page = out / "class.html"
    _text(
        index_page,
        pages.class_page(rows, found, about, picture, handout.notes, handout.lost, files),
    )
    return index_page


def _imports(handout: Handout, feedback_pages: Mapping[str, str]) -> dict[str, str | bytes | None]:
    about, rows, students, roster = (
        handout.about, handout.rows, handout.students, handout.roster,
    )  # fmt: skip
    lesson, most = about.lesson, about.most
    short = {row.graded.student: summary(row, about) for row in rows}
    return {
        "moodle.csv": lms.moodle_csv(rows, students, roster, lesson, most, short),
        "moodle-feedback.zip": lms.moodle_zip(rows, students, feedback_pages),
        "canvas.csv": lms.canvas_csv(rows, students, roster, lesson, most),
        "nbgrader.csv": lms.nbgrader_csv(rows, students, lesson, most),
    }


def summary(row: Row, about: pages.About) -> str:
    """A few sentences, for a platform's comment field; the grader's own words alone."""
    index = LANGUAGES.index(about.language)
    parts = [status_name(row.status, about.language)]
    parts += [
        f"TODO {todo.todo}: {number(value) or '–'}/{number(about.points[todo.todo])}"
        for todo, value in zip(row.graded.todos, row.points, strict=True)
    ]
    parts += [
        say(note, about.language)
        for todo in row.graded.todos
        for note in notes_of(row, todo.todo, NO_FUNCTION)
    ]
    broken = [(todo, rule) for todo, rule in broken_rules(row, about.rules) if not rule.about_input]
    parts += [f"TODO {todo} ✗ {rule.text[index]}" for todo, rule in broken[:3]]
    return "; ".join(parts)


def _head(about: pages.About) -> dict[str, object]:
    return {"lesson": about.lesson, "seed": about.seed, "when": about.when}


def _text(path: Path, content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode("utf-8", "replace")
    write_whole(path, lambda fresh: fresh.write_bytes(data))


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Removes pages of an earlier run that no student has any more."""
    for path in folder.glob("*.html"):
        if path.name not in wanted:
            with contextlib.suppress(OSError):
                path.unlink()
