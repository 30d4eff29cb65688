"""What of a result is said where: the student reads some notes, the teacher all."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from parlab.grade.cases import Rule
from parlab.grade.graded import RuleResult
from parlab.grade.rows import Row
from parlab.grade.types import Note

# Why a TODO has no function that can be called.
NO_FUNCTION = ("syntax_error", "renamed", "function_absent", "todo_absent")
# Of these the student need know nothing: they ask the teacher to do or decide something.
FOR_THE_TEACHER = (
    "not_on_roster", "roster_ambiguous", "roster_guessed", "many_notebooks", "same_key",
    "is_solution", "grader_error", "run_again",
)  # fmt: skip
# Statuses, and notes, that a teacher should look at before the marks go out.
STATUSES_TO_SEE = ("grader_error", "tampered", "unreadable", "wrong_lesson", "missing_answers")
_NOTES_TO_SEE = (
    *FOR_THE_TEACHER, *NO_FUNCTION, "cells_edited", "cells_deleted", "newer_unreadable",
    "newer_other_lesson",
)  # fmt: skip
_FEW = 3  # students with one and the same note are no pattern of the class


def all_notes(row: Row) -> list[Note]:
    """Everything that was noticed, in order."""
    return [*row.graded.found, *row.graded.notes]


def for_the_student(row: Row) -> list[Note]:
    """What the foot of a student's page says: not the teacher's, nor what a TODO's card says."""
    on_cards = [note for todo in row.graded.todos for note in notes_of(row, todo.todo, NO_FUNCTION)]
    return [
        note for note in all_notes(row) if note[0] not in FOR_THE_TEACHER and note not in on_cards
    ]


def notes_of(row: Row, todo: int, keys: Collection[str]) -> list[Note]:
    """The submission's notes with one of these keys that are about this TODO."""
    return [note for note in row.graded.notes if note[0] in keys and note[1].get("todo") == todo]


def waits(result: RuleResult, results: Sequence[RuleResult], rules: Mapping[str, Rule]) -> bool:
    """Whether a rule that earns nothing was not judged, rather than broken.

    So it is where values are wrong on which its cases depend; and where no case changed the input,
    but nothing else is right.
    """
    rule = rules.get(result.key)
    if rule is None or result.passed:
        return False
    if rule.about_input:
        return result.right == result.total
    return any(one.key in rule.needs and not one.passed for one in results)


def to_look_at(rows: Sequence[Row]) -> tuple[tuple[Row, tuple[Note, ...]], ...]:
    """Rows that ask for the teacher's eye, and the notes that say why.

    A note that most of the class has, such as cells that a newer version of the course changed,
    says nothing of one student.
    """
    counts = Counter(repr(note) for row in rows for note in all_notes(row))
    common = {said for said, count in counts.items() if count > max(_FEW, len(rows) / 2)}
    found = []
    for row in rows:
        seen = row.status in STATUSES_TO_SEE
        notes = tuple(
            note
            for note in all_notes(row)
            if repr(note) not in common
            and (note[0] in _NOTES_TO_SEE or (seen and note in row.graded.notes))
        )
        if seen or notes:
            found.append((row, notes))
    return tuple(found)
