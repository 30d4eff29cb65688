"""Text from outside, made harmless for a reader's eyes and for a spreadsheet."""

import re
import unicodedata

# What a spreadsheet takes for the start of a formula; the full-width forms are what an input
# method types, and some spreadsheets turn them round.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")
# Characters that reorder or hide the text around them.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_KEPT = {"\n", "\t", "\u200d", "\u200c"}  # joiners belong to names in some scripts
_SPACES = re.compile(r"\s+")


def visible(text: object) -> str:
    """``str(text)`` with control and bidirectional characters shown as ``�``."""
    return "".join(
        "\ufffd" if unicodedata.category(char) in _HIDDEN and char not in _KEPT else char
        for char in str(text)
    )


def one_line(text: object) -> str:
    """`visible` text on one line."""
    return _SPACES.sub(" ", visible(text)).strip()


class Exact(str):
    """A cell that is written as it stands: words of a platform's own format, never a student's."""


def cell(value: object) -> str:
    """A spreadsheet's cell: text that would be a formula gets an apostrophe before it.

    Numbers that the grader made itself are handed in as numbers and stay as they are.
    """
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, Exact):
        return str(value)
    text = one_line(value)
    risky = str(value).lstrip(" ").startswith(_FORMULA) or text.startswith(_FORMULA)
    return f"'{text}" if risky else text
