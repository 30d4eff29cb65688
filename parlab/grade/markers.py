"""What a student's cell says it is in its first lines, read with tolerance."""

import re
from dataclasses import dataclass

# The course writes "# TODO 1 · name", "# CHECK 1", "# SETUP"; people and editors change the dot
# and the blanks, write "todo", and put a line of their own (a magic, a comment) above.
_MARK = re.compile(
    r"\s*#+\s*(?:(?P<todo>(?i:TODO))\s*(?P<number>\d{1,3})(?!\d)(?P<rest>[^\n]*)"
    r"|CHECK\s*(?:(?P<check>\d{1,3})(?!\d)|(?P<extra_check>EXTRA\b))[^\n]*"
    r"|(?P<setup>SETUP)\b[^\n]*|(?P<extra>EXTRA)\b(?P<extra_rest>[^\n]*))\s*\Z"
)
_FUNCTION = re.compile(r"\s*[^\w\s]*\s*([A-Za-z_]\w*)")
_LINES = 3  # how many lines that are not blank are looked at


@dataclass(frozen=True)
class Marker:
    """A cell's own claim.

    Attributes:
        cell_id: ``setup``, ``todo-1``, ``check-1``, ``extra`` or ``check-extra``.
        number: the TODO's, for a TODO or its check.
        function: the name that a TODO or EXTRA line gives, where it gives one.
    """

    cell_id: str
    number: int | None = None
    function: str = ""

    @property
    def is_todo(self) -> bool:
        """Whether the cell says that it answers a TODO."""
        return self.cell_id.startswith("todo-")


def marker_of(source: str) -> Marker | None:
    """The first marker among the first lines, where there is one."""
    lines = [line for line in source[:2_000].split("\n") if line.strip()][:_LINES]
    for line in lines:
        found = _MARK.match(line)
        if found and (found["todo"] or line.startswith("#")):
            return _marker(found)
    return None


def _marker(found: re.Match[str]) -> Marker:
    if found["todo"]:
        number = int(found["number"])
        return Marker(f"todo-{number}", number, _function(found["rest"]))
    if found["check"]:
        return Marker(f"check-{int(found['check'])}", int(found["check"]))
    if found["extra_check"]:
        return Marker("check-extra")
    if found["setup"]:
        return Marker("setup")
    return Marker("extra", None, _function(found["extra_rest"]))


def _function(rest: str) -> str:
    found = _FUNCTION.match(rest)
    return found[1] if found else ""
