"""The class list that an LMS exports, and which student of it a submission belongs to.

Read are Moodle's grading worksheet and participants' list, Canvas's gradebook, nbgrader's
students.csv, any table whose header names such columns, and a plain list without header: in UTF-8
(with mark or without), UTF-16 or GBK, separated by commas, semicolons or tabs.

A submission is matched by the first of these that finds someone:

1. the LMS's own number (Moodle's participant, Canvas's ID);
2. login, student number or e-mail address, whole;
3. the name, whole: upper and lower case, accents, blanks and the order of its parts do not matter;
4. a login, number or name that stands as words of its own in the file's or folder's name (numbers,
   the LMS's own too, from four digits on); where number and name are not one student's: both;
5. a name in a script without blanks that is part of a word: a guess, which is told.

A first line with none of the columns is a student too where the rest is like it: a list of names or
numbers. Row numbers are nobody's. What has other columns, or is no such list, is refused.

Several found at one step: ambiguous, the submission keeps the name it came with and it is reported.
"""

import codecs
import csv
import io
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from parlab.grade.lists import (
    CODE,
    UnknownColumns,
    refuse_unless_list,
    refuse_unless_text,
    without_count,
)
from parlab.grade.person_names import in_order, name_forms, plain, together
from parlab.grade.roster_match import guess, match_words

_MAX_BYTES = 10 * 2**20
_MAX_ROWS = 20_000
_TITLES = 5  # rows among which the one that names the columns is looked for
_FIELDS = {
    "number": ("identifier", "标识符", "识别符", "識別碼", "identifiant", "id", "canvas user id",
               "lms_user_id", "编号"),
    "login": ("sis login id", "username", "user name", "login", "login id", "用户名", "账号"),
    "student_number": ("sis user id", "id number", "idnumber", "student id", "student number",
                       "student_id", "学号", "學號", "id号", "id号码", "学生编号", "integration id",
                       "工号"),
    "email": ("email address", "email", "e-mail", "e-mail address", "邮箱", "电子邮件", "电子邮箱",
              "电子邮件地址", "電郵地址", "電子郵件"),
    "full": ("full name", "fullname", "student", "student name", "name", "全名", "姓名", "学生",
             "学生姓名"),
    "first": ("first name", "firstname", "first_name", "given name", "名", "名字"),
    "last": ("last name", "lastname", "last_name", "surname", "family name", "姓", "姓氏"),
}  # fmt: skip
_BY_HEADER = {name: key for key, names in _FIELDS.items() for name in names}
_NOT_STUDENTS = ("pointspossible", "manualposting", "studenttest", "teststudent")
_EXACT = ("login", "student_number", "email")


class RosterUnreadable(Exception):
    """The roster cannot be read; says why and what to do."""


@dataclass(frozen=True)
class Entry:
    """One student of the roster.

    Attributes:
        display: the name for people.
        number: the LMS's own number.
        exact: logins, numbers and addresses, in plain form.
        names: the name in every order, in plain form.
        row: the file's row, column → value.
        fields: what is known by its meaning, whatever its column is called: ``number``, ``login``,
            ``student_number``, ``email``, ``full``, ``first``, ``last``; only what is there.
    """

    display: str
    number: str
    exact: frozenset[str]
    names: frozenset[str]
    row: Mapping[str, str] = field(default_factory=dict, compare=False)
    fields: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True)
class Roster:
    """A class list.

    Attributes:
        kind: ``moodle``, ``canvas``, ``nbgrader``, ``table`` or ``list``.
        header: the columns as the file names them.
        entries: its students, in the file's order.
        possible: Canvas's row of points possible, column → value; empty without one.
    """

    kind: str
    header: tuple[str, ...]
    entries: tuple[Entry, ...]
    possible: Mapping[str, str] = field(default_factory=dict)

    def match(self, name: str, number: str = "", rule: str = "") -> tuple[int, ...]:
        """Indices of the students that fit at the first step where any does; empty for nobody.

        Args:
            name: as the path has it.
            number: the LMS's, where the path holds one.
            rule: which LMS wrote it (see ``students.Identity``).
        """
        if number and rule == self.kind:
            found = [i for i, entry in enumerate(self.entries) if entry.number == number]
            if found:
                return tuple(found)
        return (
            self.match_whole(name) or match_words(self.entries, name) or guess(self.entries, name)
        )

    def is_guess(self, name: str) -> bool:
        """Whether only step 5 finds somebody."""
        found = self.match_whole(name) or match_words(self.entries, name)
        return not found and bool(guess(self.entries, name))

    def match_whole(self, name: str) -> tuple[int, ...]:
        """Steps 2 and 3."""
        wanted = plain(name)
        for attribute in ("exact", "names"):
            found = [i for i, e in enumerate(self.entries) if wanted in getattr(e, attribute)]
            if found and wanted:
                return tuple(found)
        return ()


def load_roster(path: Path) -> Roster:
    """The class list in a file.

    Raises:
        RosterUnreadable: it is no table of text, or names nobody.
    """
    if not path.exists():
        raise RosterUnreadable(_say(path, "不存在：请核对路径", "does not exist: check the path"))
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise RosterUnreadable(_say(path, "太大", "is larger than 10 MB"))
        content = path.read_bytes()
    except OSError as error:
        raise RosterUnreadable(_say(path, "不能读取", f"cannot be read: {error}")) from None
    if content.startswith((b"PK\x03\x04", b"\xd0\xcf\x11\xe0")):
        raise RosterUnreadable(_say(path, "是 Excel 文件：另存为 CSV", "is Excel: save it as CSV"))
    try:
        return parse_roster(decode(content))
    except csv.Error as error:
        raise RosterUnreadable(
            _say(path, f"不是表格（{error}）", f"is no table: {error}")
        ) from None
    except UnknownColumns as error:
        raise RosterUnreadable(_say(path, *error.told)) from None
    except ValueError as error:
        raise RosterUnreadable(_say(path, "没有学生", f"names nobody: {error}")) from None


def decode(content: bytes) -> str:
    """The text of a table in the encodings that LMSs and Excel write."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    start = content[:2_000]
    if start.count(0) * 5 > len(start):  # UTF-16 without its mark
        little = start[1::2].count(0) >= start[::2].count(0)
        return content.decode("utf-16-le" if little else "utf-16-be", "replace")
    for encoding in ("utf-8-sig", "gb18030"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1")


def parse_roster(text: str) -> Roster:
    """The class list in a table.

    Raises:
        UnknownColumns: it is no class list, or none of its columns is known.
        ValueError: it names nobody.
    """
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")
    first = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=lambda mark: (_outside_quotes(first, mark), mark == ","))
    try:
        rows = _rows(text, delimiter, strict=True)
    except csv.Error:  # a quotation mark that is not closed, if it is a class list at all
        rows = _rows(text, delimiter, strict=False)
        if rows and not any(_header(cell) in _BY_HEADER for cell in rows[0]):
            refuse_unless_list(rows)
        raise
    if not rows:
        raise ValueError("it is empty")
    refuse_unless_text(text)
    fields = [_BY_HEADER.get(_header(cell)) for cell in rows[0]]
    if not any(fields):
        refuse_unless_list(rows)
        return Roster("list", (), tuple(_plain_entry(row) for row in without_count(rows)))
    header = tuple(rows[0])
    entries = [_entry(header, fields, row) for row in rows[1:]]
    kept = tuple(dict.fromkeys(entry for entry in entries if entry))
    if not kept:
        raise ValueError("no row below the header holds a name")
    return Roster(_kind(header), header, kept, _possible(header, rows[1:]))


def _rows(text: str, delimiter: str, strict: bool) -> list[list[str]]:
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=strict)
    rows = [[_cell(cell) for cell in row] for row in islice(reader, _MAX_ROWS)]
    return _from_header([row for row in rows if any(map(plain, row))])


def _cell(text: str) -> str:
    """Without blanks around it; a number that a spreadsheet has made 2023001.0 of as it was."""
    return re.sub(r"^(\d+)\.0+$", r"\1", text.strip())


def _from_header(rows: list[list[str]]) -> list[list[str]]:
    """Without a title above the row that names the columns, if one of the first does."""
    for place, row in enumerate(rows[:_TITLES]):
        if sum(_header(cell) in _BY_HEADER for cell in row) > 1:
            return rows[place:]
    return rows


def _entry(header: Sequence[str], fields: Sequence[str | None], row: Sequence[str]) -> Entry | None:
    values: dict[str, str] = {}
    exact: set[str] = set()
    for key, value in zip(fields, row, strict=False):
        if key and value:
            values.setdefault(key, value)
        if key == "number" and (len(value) > 3 or _kind(header) == "nbgrader"):
            exact.add(plain(value))  # in a file's name, or what nbgrader's folders are called
        if key in _EXACT and value:
            exact |= {plain(value)} | ({plain(value.partition("@")[0])} if "@" in value else set())
    first, last = values.get("first", ""), values.get("last", "")
    full = values.get("full", "")
    display = in_order(full) or together(first, last)
    if plain(full) in _NOT_STUDENTS or plain(display) in _NOT_STUDENTS:
        return None
    number = values.get("number", "")
    found = re.search(r"(\d+)$", number)  # Moodle writes "Participant 12345"
    number = found[1] if found and not number.isdigit() and " " in number else number
    names = name_forms(full, first, last)
    display = display or next((values[k] for k in (*_EXACT, "number") if k in values), "")
    if not display:
        return None
    cells = [*row, *[""] * len(header)][: len(header)]
    by_column = dict(zip(header, cells, strict=True))
    return Entry(display, number, frozenset(exact), names, by_column, values)


def _possible(header: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, str]:
    """Canvas's row of points possible, which stands before the students."""
    for row in rows:
        if row and plain(row[0]) == _NOT_STUDENTS[0]:
            return dict(zip(header, row, strict=False))
    return {}


def _plain_entry(row: Sequence[str]) -> Entry:
    """A row of a list without header: each of its cells may be a name or a number."""
    cells = [cell for cell in row if cell]
    named = [cell for cell in cells if not CODE.fullmatch(cell)]
    exact = {plain(cell) for cell in cells if cell not in named}
    exact |= {plain(cell.partition("@")[0]) for cell in cells if "@" in cell}
    together = name_forms(" ".join(named)) if len(named) == 2 else frozenset()
    names = frozenset(form for cell in named for form in name_forms(cell)) | together
    shown = " ".join(named[:2]) if len(named) == 2 and all(c.isascii() for c in named) else ""
    display = shown or (named or cells)[0]
    by_column = {str(n): c for n, c in enumerate(row, 1)}
    return Entry(display, "", frozenset(exact), names, by_column, _plain_fields(cells, named))


def _plain_fields(cells: Sequence[str], named: Sequence[str]) -> dict[str, str]:
    """The number and the address in a row without header."""
    codes = [cell for cell in cells if cell not in named and "@" not in cell]
    addresses = [cell for cell in cells if "@" in cell]
    found = {"student_number": codes, "email": addresses}
    return {key: values[0] for key, values in found.items() if values}


def _kind(header: Sequence[str]) -> str:
    names = {_header(cell) for cell in header}
    if {"student", "id", "section"} <= names or "sis login id" in names:
        return "canvas"
    if names & {"identifier", "标识符", "识别符", "識別碼", "identifiant"}:
        return "moodle"
    if "id" in names and names & {"first_name", "last_name", "lms_user_id"}:
        return "nbgrader"
    return "table"


def _header(cell: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", cell).casefold().strip("\ufeff* ").split())


def _outside_quotes(line: str, mark: str) -> int:
    return re.sub(r'"[^"]*"', "", line).count(mark)


def _say(path: Path, chinese: str, english: str) -> str:
    return f"名单 {path} {chinese} | roster {path} {english}"
