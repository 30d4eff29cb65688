"""Files that learning platforms import, in the columns that their own importers look for.

Moodle (mod/assign/feedback/offline/importgradeslib.php) finds its columns by their names in the
site's language: Identifier, Grade, Last modified (grade), Feedback comments. So its own worksheet,
given as ``--roster``, is handed back filled in; without one there is a table for Moodle's
gradebook import, where the columns are chosen on the page. Feedback files go into a zip of folders
``<name>_<number>_assignfeedback_file_`` (feedback/file/importziplib.php).

Canvas (lib/gradebook_importer.rb) wants Student, ID, (SIS User ID, SIS Login ID), Section before
the assignments, and a "Points Possible" line. A column ``Title (id)`` names an assignment that is
there, any other title makes a new one.

nbgrader's columns are those of its CsvExportPlugin.
"""

import html
import io
import re
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from parlab.grade.report.tables import csv_text
from parlab.grade.report.visible import Exact, one_line
from parlab.grade.rows import Row, number

# Moodle's column names, lower case, in its English and its Chinese language packs.
_IDENTIFIER = ("identifier", "标识符", "识别号", "編號", "識別號")
_GRADE = ("grade", "成绩", "分数", "評分", "成績")
_MOST = ("maximum grade", "最高成绩", "最高分", "最高分数", "最高成績")
_COMMENTS = ("feedback comments", "反馈评论", "反馈意见", "評語回饋", "回饋評語")
_PLATFORMS = ("moodle", "canvas")
_CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account")
_SIS = ("SIS User ID", "SIS Login ID")
NBGRADER = (
    "assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email",
    "raw_score", "late_submission_penalty", "score", "max_score",
)  # fmt: skip


class RosterLike(Protocol):
    """The platform's list of students, as it was read."""

    @property
    def kind(self) -> str: ...

    @property
    def header(self) -> tuple[str, ...]: ...

    @property
    def possible(self) -> Mapping[str, str]: ...


@dataclass(frozen=True)
class Student:
    """What is known of a student beside the submission.

    Attributes:
        number: a platform's own number.
        row: the roster's row, column → value.
        platform: whose number it is: ``moodle``, ``canvas``, or another list's.
        fields: the roster's values by their meaning (see ``roster.Entry``).
    """

    number: str
    row: Mapping[str, str]
    platform: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """What the school calls the student by: student number, else login; empty if unknown."""
        own = "" if self.platform in _PLATFORMS else self.fields.get("number", "")
        return self.fields.get("student_number") or self.fields.get("login") or own

    def number_at(self, platform: str) -> str:
        """The number at one platform; that of another means somebody else there."""
        return self.number if self.platform == platform else ""


_NOBODY = Student("", {})


def moodle_csv(
    rows: Sequence[Row],
    students: Mapping[str, Student],
    roster: RosterLike | None,
    lesson: str,
    most: float,
    feedback: Mapping[str, str],
) -> str:
    """The grading worksheet filled in; without one, a table for the gradebook import.

    Students without a total keep what the worksheet had.

    Args:
        most: the points of the whole lesson; scaled to the worksheet's maximum, where that differs.
        feedback: student key → a few sentences, plain text.
    """
    if roster is None or roster.kind != "moodle":
        header = ["Full name", "ID number", f"{lesson} (max {number(most)})", "Feedback comments"]
        lines = [
            [
                row.graded.display,
                _code(students, row),
                _cell(row.total),
                _comment(feedback.get(row.graded.student, "")),
            ]
            for row in rows
        ]
        return csv_text(header, lines)
    return csv_text(
        roster.header,
        [
            _worksheet_line(row, students[row.graded.student].row, roster.header, most, feedback)
            for row in rows
            if row.graded.student in students and students[row.graded.student].row
        ],
    )


def _worksheet_line(
    row: Row,
    known: Mapping[str, str],
    header: Sequence[str],
    most: float,
    feedback: Mapping[str, str],
) -> list[object]:
    grade, comments = _find(header, _GRADE), _find(header, _COMMENTS)
    line: list[object] = [_kept(known.get(name, "")) for name in header]
    if row.total is None:
        return line
    limit = _find(header, _MOST)
    scale = 1.0
    if limit is not None:
        top = _float(known.get(header[limit], ""))
        scale = top / most if top and most else 1.0
    if grade is not None:
        line[grade] = _cell(round(row.total * scale, 2))
    if comments is not None:
        line[comments] = _comment(feedback.get(row.graded.student, ""))
    return line


def moodle_zip(
    rows: Sequence[Row], students: Mapping[str, Student], pages: Mapping[str, str]
) -> bytes | None:
    """The pages, in the folders that Moodle gives back to each student; None without numbers.

    Args:
        pages: student key → the page's HTML.
    """
    numbered = [(row, _participant(students, row)) for row in rows]
    if not any(digits for _, digits in numbered):
        return None
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for row, digits in numbered:
            page = pages.get(row.graded.student)
            if digits and page:
                name = re.sub(r"[_/\\.\s:*?\"<>|\ufffd]+", " ", one_line(row.graded.display))
                folder = f"{name.strip() or 'student'}_{digits}_assignfeedback_file_"
                entry = zipfile.ZipInfo(f"{folder}/feedback.html", (2000, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, page)
    return data.getvalue()


def canvas_csv(
    rows: Sequence[Row],
    students: Mapping[str, Student],
    roster: RosterLike | None,
    lesson: str,
    most: float,
) -> str:
    """A gradebook with this one assignment; students without a total have an empty cell.

    Args:
        most: the points of the whole lesson; scaled to the assignment's, where those differ.
    """
    exported = roster is not None and roster.kind == "canvas"
    header = list(roster.header) if exported and roster else []
    kept = [name for name in header if name in _CANVAS] or ["Student", "ID"]
    if not exported and any(known.code for known in students.values()):
        kept += _SIS
    kept.append("Section")
    title = _assignment(header, lesson)
    top = _float(roster.possible.get(title, "")) if roster else 0.0
    scale = top / most if top and most else 1.0
    lines: list[list[object]] = [
        [Exact("    Points Possible"), *[""] * (len(kept) - 1), _cell(top or most)],
    ]
    for row in rows:
        known = students.get(row.graded.student, _NOBODY)
        given = dict(known.row) if exported else _sis(known)
        given.setdefault("Student", row.graded.display)
        given.setdefault("ID", known.number_at("canvas"))
        total = None if row.total is None else round(row.total * scale, 2)
        lines.append([*(given.get(name, "") for name in kept), _cell(total)])
    return csv_text([*kept, title], lines, bom=False)


def _sis(known: Student) -> dict[str, str]:
    """The columns by which Canvas finds a student whose ID is not known."""
    return {"SIS User ID": known.fields.get("student_number", ""),
            "SIS Login ID": known.fields.get("login", "")}  # fmt: skip


def _assignment(header: Sequence[str], lesson: str) -> str:
    """The lesson's column in Canvas's export, with its id; a new title where there is none."""
    named = [name for name in header if re.search(r"\(\d+\)$", name)]
    for word in (lesson, lesson.partition("_")[2].replace("_", " "), lesson.replace("_", " ")):
        fits = [name for name in named if word and word.lower() in name.lower()]
        if len(fits) == 1:
            return fits[0]
    number = re.match(r"0*(\d+)_", lesson)
    form = rf"(?<!\d)0*{number[1]}(?!\d).*\(\d+\)$" if number else r"(?!)"
    fits = [name for name in named if re.search(form, name)]
    return fits[0] if len(fits) == 1 else lesson


def nbgrader_csv(
    rows: Sequence[Row], students: Mapping[str, Student], lesson: str, most: float
) -> str:
    """As ``nbgrader export`` writes it; a student without a total has empty scores."""
    lines = []
    for row in rows:
        known = students.get(row.graded.student, _NOBODY).fields
        score = _cell(row.total)
        lines.append(
            [
                lesson,
                "",
                "",
                _code(students, row),
                known.get("last", ""),
                known.get("first", ""),
                known.get("email", ""),
                score,
                0,
                score,
                _cell(most),
            ]
        )
    return csv_text(NBGRADER, lines, bom=False)


def _code(students: Mapping[str, Student], row: Row) -> str:
    """The student's number or login; the key, where neither is known."""
    return students.get(row.graded.student, _NOBODY).code or row.graded.student


def _participant(students: Mapping[str, Student], row: Row) -> str:
    """Moodle's number of a student: digits alone, else empty."""
    known = students.get(row.graded.student, _NOBODY)
    for name, value in known.row.items():
        if name.strip().lstrip("\ufeff").lower() in _IDENTIFIER:
            digits = re.search(r"(\d+)\s*$", value)
            if digits:
                return digits[1]
    number = known.number_at("moodle")
    return number if number.isdecimal() else ""


def _find(header: Sequence[str], names: Sequence[str]) -> int | None:
    for index, name in enumerate(header):
        if name.strip().lstrip("\ufeff").lower() in names:
            return index
    return None


def _float(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        return 0.0


def _cell(value: float | None) -> Any:
    if value is None:
        return ""
    return int(value) if value == int(value) else value


def _kept(value: str) -> str:
    """A cell of the platform's own file; its dash for "no date" is no formula."""
    return Exact(value) if value == "-" else value


def _comment(text: str) -> str:
    """Moodle shows comments as HTML."""
    return html.escape(text)
