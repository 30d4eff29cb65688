"""A table without a known header: is it a list of students, or something else?"""

import re
import unicodedata
from collections.abc import Sequence

# A number, a login, an address.
CODE = re.compile(r"[\w.+-]*\d[\w.+-]*|\S+@\S+")
_LONGEST_NAME = 80  # characters
_NO_NAME = re.compile(r"[{}<>\[\]|=#`\\]")
_KNOWN = (
    "student id, name, first name, last name, email, login, identifier (学号, 姓名, 邮箱, 用户名)"
)

Rows = Sequence[Sequence[str]]


class UnknownColumns(ValueError):
    """A table that is no class list; ``told`` says what is wrong, in Chinese and English."""

    def __init__(self, chinese: str, english: str) -> None:
        super().__init__(english)
        self.told = (chinese, english)


def refuse_unless_text(text: str) -> None:
    """Refuses bytes that only happened to decode.

    Raises:
        UnknownColumns: more than a fiftieth of it is no text.
    """
    odd = sum(char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cn") for char in text)
    if 50 * (odd + text.count("\ufffd")) > len(text):
        raise UnknownColumns("不是文本：请导出为 CSV", "is no text: export it as CSV")


def refuse_unless_list(rows: Rows) -> None:
    """Refuses a header that is not known, and what is no list of names or numbers.

    Raises:
        UnknownColumns: it is either.
    """
    if _has_header(rows):
        shown = ", ".join(cell[:30] for cell in rows[0] if cell)
        raise UnknownColumns(
            f"的列认不出来：{shown}；认得的列：{_KNOWN}",
            f"has columns that are not recognised: {shown}; I know {_KNOWN}",
        )
    strange = sum(
        any(len(cell) > _LONGEST_NAME or _NO_NAME.search(cell) for cell in row) for row in rows
    )
    if 5 * strange > len(rows):
        raise UnknownColumns(
            f"不像名单：第一行要写列名，认得的列：{_KNOWN}",
            f"is no list of students: its first line must name the columns; I know {_KNOWN}",
        )


def without_count(rows: Rows) -> list[Sequence[str]]:
    """The rows without columns that only count them, 1, 2, 3 …."""
    counting = {
        column
        for column in range(len(rows[0]))
        if len(rows) > 1 and _column(rows, column) == [str(n) for n in range(1, len(rows) + 1)]
    }
    kept = [[cell for at, cell in enumerate(row) if at not in counting] for row in rows]
    return list(kept) if all(any(row) for row in kept) else list(rows)


def _has_header(rows: Rows) -> bool:
    """Whether a column holds numbers or addresses everywhere but in the first line."""
    first, *rest = rows
    if not rest or any(CODE.fullmatch(cell) for cell in first):
        return False
    return any(
        first[column] and all(CODE.fullmatch(cell) for cell in _column(rest, column))
        for column in range(len(first))
    )


def _column(rows: Rows, at: int) -> list[str]:
    return [row[at] if at < len(row) else "" for row in rows]
