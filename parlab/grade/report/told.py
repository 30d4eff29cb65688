"""Which of a submission's notes stand where."""

from collections.abc import Collection

from parlab.grade.rows import Row
from parlab.grade.types import Note

# Why a TODO has no function that can be called.
NO_FUNCTION = ("syntax_error", "renamed", "function_absent", "todo_absent")


def notes_of(row: Row, todo: int, keys: Collection[str]) -> list[Note]:
    """The submission's notes with one of these keys that are about this TODO."""
    return [note for note in row.graded.notes if note[0] in keys and note[1].get("todo") == todo]
