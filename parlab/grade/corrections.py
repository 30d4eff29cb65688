"""Hand corrections: a table that people keep, which no run overwrites.

Columns: ``student`` (key, name, number or file name), ``item`` (a TODO's number, or ``total``),
``points`` and ``reason``; where a table serves several lessons, ``lesson`` (``04``) as well.
"""

import csv
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

NAME = "corrections.csv"
COLUMNS = ("student", "item", "points", "reason")
OF_LESSON = "lesson"
TOTAL = "total"
LARGEST = 4 * 1024 * 1024  # bytes


class BadCorrections(Exception):
    """The file cannot be used; names file, line, value and remedy, a line for each problem."""


@dataclass(frozen=True)
class Correction:
    """One decision of a person.

    Attributes:
        student: key or name, as written.
        item: a TODO's number, or ``total``.
        points: what it is worth now.
        reason: shown to the student.
        line: in the file.
    """

    student: str
    item: str
    points: float
    reason: str
    line: int


def read(path: Path, points: Mapping[int, float], lesson: str) -> list[Correction]:
    """The corrections of a lesson in a file; none where there is no file.

    Args:
        path: UTF-8 or GB18030 (Excel's CSV in Chinese), separated by comma, semicolon or tab.
        points: TODO number → its points, the most that a correction may give.
        lesson: its name. A line that names another is left out; one that names none counts.

    Raises:
        BadCorrections: lines cannot be used; all of them are named.
    """
    if not path.exists():
        return []
    try:
        rows = [(line, row) for line, row in _rows(path) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise BadCorrections(f"{path}: {error.strerror}: give a CSV file") from None
    except csv.Error as error:
        raise BadCorrections(
            f"{path}: no table ({error}): look for a quotation mark that is not closed"
        ) from None
    if not rows:
        return []
    header = [cell.strip().lower() for cell in rows[0][1]]
    missing = [name for name in COLUMNS[:3] if name not in header]
    known = (*COLUMNS, OF_LESSON)
    odd = [name for name in header if name and (name not in known or header.count(name) > 1)]
    if missing or odd:
        said = f"no column {', '.join(missing)}" if missing else f"column {odd[0]!r}"
        raise BadCorrections(
            f"{path}:{rows[0][0]}: {said}: the first line must be {','.join(COLUMNS)}, with "
            f"{OF_LESSON} beside them where the table serves several lessons"
        )
    found: list[Correction] = []
    problems: list[tuple[int, str]] = []
    for line, row in rows[1:]:
        cells = dict(zip(header, [cell.strip() for cell in row], strict=False))
        try:
            if _is_of(lesson, path, line, cells):
                found.append(_correction(path, line, cells, points))
        except BadCorrections as problem:
            problems.append((line, str(problem)))
    problems += _doubles(path, found)
    if problems:
        raise BadCorrections("\n".join(text for _, text in sorted(problems)))
    return found


def template() -> str:
    """An empty table for people to fill in."""
    return ",".join(COLUMNS) + "\r\n"


def by_student(
    corrections: Iterable[Correction],
    names: Mapping[str, str],
    others: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> tuple[dict[str, list[Correction]], list[Correction]]:
    """The corrections of each student key, and those that fit nobody or several, or do not count.

    Args:
        names: student key → name for people.
        others: student key → what else names the student, where no key or name fits: the file's
            name, the number, the key that a run without this roster gives.
    """
    keys = _keys_by_word({key: (key, name) for key, name in names.items()})
    spare = _keys_by_word({key: words for key, words in others.items() if key in names})
    found: dict[str, list[Correction]] = {}
    lost = []
    for correction in corrections:
        word = correction.student
        fits = [word] if word in names else keys.get(word) or spare.get(word, [])
        if len(fits) != 1:
            lost.append(correction)
            continue
        own = found.setdefault(fits[0], [])
        lost += [one for one in own if one.item == correction.item]  # the later line counts
        own[:] = [*(one for one in own if one.item != correction.item), correction]
    return found, lost


def _keys_by_word(words: Mapping[str, Iterable[str]]) -> dict[str, list[str]]:
    keys: dict[str, list[str]] = {}
    for key, own in words.items():
        for word in {word.strip() for word in own}:
            keys.setdefault(word, []).append(key)
    return keys


def _rows(path: Path) -> Iterable[tuple[int, list[str]]]:
    data = path.read_bytes()
    if len(data) > LARGEST:
        raise BadCorrections(f"{path}: {len(data)} bytes: at most {LARGEST}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        try:
            text = data.decode("gb18030")
        except UnicodeDecodeError:
            raise BadCorrections(f"{path}: neither UTF-8 nor GB18030: save it as UTF-8") from None
    first = text.split("\n", 1)[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    for row in reader:
        yield reader.line_num, row


def _is_of(lesson: str, path: Path, line: int, cells: Mapping[str, str]) -> bool:
    """Whether a line is for this lesson; a spreadsheet makes 4 of 04."""
    said = cells.get(OF_LESSON, "")
    number = re.match(r"(\d+)(?:_|\.0*$|$)", said)
    if said and not number:
        raise BadCorrections(f"{path}:{line}: lesson {said!r}: write its number, as {lesson[:2]}")
    return number is None or int(number[1]) == int(lesson[:2])


def _correction(
    path: Path, line: int, cells: Mapping[str, str], points: Mapping[int, float]
) -> Correction:
    student = cells.get("student", "").removeprefix("'")
    if not student:
        raise BadCorrections(f"{path}:{line}: no student: write a key or a name")
    item = re.sub(r"(?i)^todo[\s_]*", "", cells.get("item", "")).lower()
    allowed = {str(number): most for number, most in points.items()}
    allowed[TOTAL] = sum(points.values())
    if item not in allowed:
        raise BadCorrections(
            f"{path}:{line}: item {cells.get('item', '')!r}: write one of {', '.join(allowed)}"
        )
    given = cells.get("points", "")
    try:
        value = float(given)
    except ValueError:
        value = math.nan
    if not 0 <= value <= allowed[item]:
        raise BadCorrections(
            f"{path}:{line}: points {given!r}: write a number from 0 to {allowed[item]:g}"
        )
    return Correction(student, item, round(value, 2), cells.get("reason", ""), line)


def _doubles(path: Path, found: Sequence[Correction]) -> list[tuple[int, str]]:
    problems = []
    seen: dict[tuple[str, str], int] = {}
    for one in found:
        first = seen.setdefault((one.student, one.item), one.line)
        if first != one.line:
            text = f"{one.student}, {one.item} stands in line {first} already: keep one of them"
            problems.append((one.line, f"{path}:{one.line}: {text}"))
    return problems
