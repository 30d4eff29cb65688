"""``grades.csv`` and ``grades.json``, and how every CSV of the grader is written."""

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from parlab.grade.graded import to_plain
from parlab.grade.report.visible import cell, one_line
from parlab.grade.report.words import item_name
from parlab.grade.rows import Row, number
from parlab.grade.texts import say

BOM = "\ufeff"


def csv_text(header: Sequence[str], lines: Iterable[Sequence[object]], bom: bool = True) -> str:
    """A table as CSV: quoted where needed, no formulas, CRLF.

    Args:
        bom: begin with a byte-order mark, without which Excel reads UTF-8 as something else.
    """
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow([cell(name.removeprefix(BOM)) for name in header])
    writer.writerows([[cell(value) for value in line] for line in lines])
    return (BOM if bom else "") + table.getvalue()


def grades_csv(rows: Sequence[Row], points: Mapping[int, float], language: str) -> str:
    """One line a student: status, points per TODO, total, seconds, notes."""
    header = ["student", "name", "status", *(f"todo_{number}" for number in points)]
    header += ["total", "max", "seconds", "peak_memory_mb", "corrected", "notes", "file"]
    most = sum(points.values())
    return csv_text(header, (_line(row, most, language) for row in rows))


def _line(row: Row, most: float, language: str) -> list[object]:
    graded = row.graded
    memory = graded.peak_memory_mb
    return [
        graded.student,
        graded.display,
        row.status,
        *(_points(value) for value in row.points),
        _points(row.total),
        _points(most),
        round(graded.seconds, 2),
        "" if memory is None else round(memory),
        "yes" if row.corrections else "",
        notes_text(row, language),
        graded.path,
    ]


def notes_text(row: Row, language: str) -> str:
    """All notes of a row on one line."""
    texts = [say(note, language) for note in (*row.graded.found, *row.graded.notes)]
    texts += [
        f"{item_name(correction.item, language)}: {number(correction.points)} ({correction.reason})"
        for correction in row.corrections
    ]
    return " | ".join(one_line(text) for text in texts if text)


def _points(value: float | None) -> object:
    """A number as a spreadsheet takes it, whole where it is whole."""
    if value is None:
        return ""
    return int(value) if value == int(value) else value


def grades_json(rows: Sequence[Row], about: Mapping[str, Any], points: Mapping[int, float]) -> str:
    """Everything that is known, for programs."""
    students = []
    for row in rows:
        plain = to_plain(row.graded)
        plain["points"] = list(row.points)
        plain["computed_points"] = list(row.computed)
        plain["total"] = row.total
        plain["corrections"] = [
            {"item": one.item, "points": one.points, "reason": one.reason}
            for one in row.corrections
        ]
        students.append(plain)
    whole = {
        **about,
        "points": {str(number): value for number, value in points.items()},
        "students": students,
    }
    return json.dumps(whole, ensure_ascii=False, indent=1, default=str) + "\n"
