"""Collects a class: one submission a student, whatever lies in the folder or zip.

Nothing is executed, extracted or changed. Of several notebooks of one student the newest counts
that can be read as this lesson's: by Canvas's upload number where all have one, else by time of
change, then by the number that copies carry, then by name. The others are named in a note.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from parlab.grade.archives import Unreadable
from parlab.grade.course import Course
from parlab.grade.damaged import NotANotebook, Parsed, parse, slim
from parlab.grade.rebuild import belongs_to
from parlab.grade.roster import Entry, Roster, load_roster
from parlab.grade.students import Identity, show_name, unique_names
from parlab.grade.texts import LANGUAGES, say
from parlab.grade.types import Note, Submission
from parlab.grade.walk import EMPTY, Found, walk
from parlab.grade.whose import Student, by_student, inside_wrapper, newest_first, other_names

_TRIED = 20  # notebooks of one student that are read at most, the newest first
_SHOWN = 5
_MANY = 6  # notebooks under one name that look like a folder of several students


class NothingToCollect(Exception):
    """There is no such folder, or nothing that anybody could have handed in."""


@dataclass(frozen=True)
class Person:
    """Who a submission belongs to.

    Attributes:
        name: for people.
        number: the LMS's own number, "" where it is not known.
        platform: whose number it is, as ``moodle`` or ``canvas``.
        late: whether the LMS marked it as late.
        row: the roster's row, column → value; empty without a roster.
        fields: the roster's values by their meaning (see ``roster.Entry``).
        others: what else may stand for the student: numbers, files, the key without this roster.
    """

    name: str
    number: str = ""
    late: bool = False
    row: Mapping[str, str] = field(default_factory=dict)
    platform: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    others: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Collection:
    """A class's submissions.

    Attributes:
        submissions: one a student, sorted by name; those of the roster without any, too.
        people: student key → person.
        roster: the class list, if one was given.
        key_of: index of a roster entry → student key.
        layout: ``flat``, ``folders``, ``nbgrader``, ``moodle``, ``canvas`` or ``mixed``.
        notes: about the class as a whole.
    """

    submissions: tuple[Submission, ...]
    people: Mapping[str, Person]
    roster: Roster | None
    key_of: Mapping[int, str]
    layout: str
    notes: tuple[Note, ...]


def collect(path: Path, course: Course, roster: Path | None = None) -> Collection:
    """The submissions in a folder or zip.

    Args:
        path: a folder, an LMS's zip, or one notebook.
        course: the lesson; notebooks of another one count only where there is none of this.
        roster: the LMS's exported class list.

    Raises:
        NothingToCollect: the path does not exist, or holds nothing that could be a submission.
        RosterUnreadable: the roster is no class list.
    """
    classlist = load_roster(roster) if roster else None
    if not path.exists():
        raise NothingToCollect(
            f"{path} 不存在：请核对路径，给出收上来的文件夹或 zip"
            " | does not exist: check the path, give the folder or zip that was handed in"
        )
    found, wrapper = inside_wrapper(_walked(path), course)
    submitted = (wrapper or path.resolve().name) == "submitted"
    notes: list[Note] = []
    students, aside = by_student(found, course, classlist, submitted, notes)
    if not students:
        names = ", ".join(show_name(item.path) for item in found[:3]) or "–"
        raise NothingToCollect(
            f"{path} 里没有可以批改的文件（有：{names}）"
            f" | holds nothing to grade (there is: {names}): give the folder or zip with notebooks"
        )
    if aside:
        shown = [show_name(item.path) for item in aside[:_SHOWN]]
        notes.append(("left_aside", {"files": shown, "count": len(aside)}))
    rules = {student.identity.rule for student in students}
    layout = rules.pop() if len(rules) == 1 else "mixed"
    return _collected(students, classlist, course, layout, notes)


def _walked(path: Path) -> list[Found]:
    """Everything below the path.

    Raises:
        NothingToCollect: the folder or archive itself cannot be read.
    """
    found = list(walk(path))
    for item in found:
        if not item.parts and item.problem:
            chinese, english = (say(item.problem, language) for language in LANGUAGES)
            remedy = ("请重新下载", "download it again")
            if path.is_dir():
                remedy = ("请检查权限", "check its permissions")
            raise NothingToCollect(
                f"{path}：{chinese}{remedy[0]}。 | {path}: {english} Remedy: {remedy[1]}."
            )
    return found


def _collected(
    students: Sequence[Student],
    roster: Roster | None,
    course: Course,
    layout: str,
    notes: list[Note],
) -> Collection:
    entries = roster.entries if roster else ()
    present = {student.entry for student in students}
    absent = [index for index in range(len(entries)) if index not in present]
    rows: list[tuple[Person, Student | None, int | None]] = []
    for student in students:
        entry = entries[student.entry] if student.entry is not None else None
        person = replace(
            _person(student, entry, roster), others=other_names(student, entry, course)
        )
        rows.append((person, student, student.entry))
    rows += [(_person(None, entries[index], roster), None, index) for index in absent]
    rows.sort(key=lambda row: (row[0].name.casefold(), row[0].number, row[1] is None))
    keys = unique_names([(person.name, person.number) for person, _, _ in rows])
    submissions = [
        _submission(key, person, student, course)
        for key, (person, student, _) in zip(keys, rows, strict=True)
    ]
    if absent and roster:
        notes.append(("without_submission", {"count": len(absent)}))
    return Collection(
        tuple(submissions),
        {key: person for key, (person, _, _) in zip(keys, rows, strict=True)},
        roster,
        {entry: key for key, (_, _, entry) in zip(keys, rows, strict=True) if entry is not None},
        layout,
        tuple(notes),
    )


def _person(student: Student | None, entry: Entry | None, roster: Roster | None) -> Person:
    """Whose a submission, or an entry of the roster without one, is."""
    name = number = platform = ""
    late = False
    if student:
        name, number, platform = (
            student.identity.name,
            student.identity.number,
            student.identity.rule,
        )
        late = student.identity.late or any(found.late for _, found in student.notebooks)
    if not entry or not roster:
        return Person(show_name(name), number, late, {}, platform)
    if not number:
        number, platform = entry.number, roster.kind
    shown = show_name(entry.display)
    return Person(shown, number, late, dict(entry.row), platform, dict(entry.fields))


def _submission(key: str, person: Person, student: Student | None, course: Course) -> Submission:
    if student is None:
        return Submission(key, person.name, "", None, (), ("no_submission", {}))
    notes = list(student.notes)
    if person.late:
        notes.append(("late", {}))
    if student.count >= _MANY:
        notes.append(("many_notebooks", {"count": student.count}))
    if not student.notebooks:
        return _without_notebook(key, person, student, notes)
    chosen, passed_over = _choose(newest_first(student.notebooks), course)
    found, parsed, problem = chosen
    others = [
        show_name(other.path) for other, _ in newest_first(student.notebooks) if other is not found
    ]
    if others:
        values = {"used": show_name(found.path), "files": others[:_SHOWN], "count": len(others)}
        notes.append(("newest_of_several", values))
    notes += passed_over
    notes += found.notes
    path = show_path(found)
    if parsed is None:
        return Submission(key, person.name, path, None, tuple(notes), problem)
    notes += parsed.notes
    return Submission(key, person.name, path, slim(parsed), tuple(notes))


def show_path(found: Found) -> str:
    """Where a file lies, for people."""
    return "/".join(show_name(part) for part in found.parts)


def _choose(
    notebooks: Sequence[tuple[Found, Identity]], course: Course
) -> tuple[tuple[Found, Parsed | None, Note | None], list[Note]]:
    """The newest notebook of this lesson; else the newest of another; else the newest at all."""
    notes: list[Note] = []
    fallback: tuple[Found, Parsed | None, Note | None] | None = None
    for found, _ in notebooks[:_TRIED]:
        parsed, problem = _read(found)
        foreign = belongs_to(parsed, course) if parsed else None
        if parsed and foreign is None:
            return (found, parsed, None), notes
        if len(notebooks) > 1:
            reason = problem or foreign
            assert reason is not None
            key = "newer_unreadable" if problem else "newer_other_lesson"
            notes.append((key, {"file": show_path(found), "reason": reason[0]}))
        if fallback is None or (parsed and fallback[1] is None):
            fallback = (found, parsed, problem)
    assert fallback is not None
    return fallback, []


def _read(found: Found) -> tuple[Parsed | None, Note | None]:
    try:
        return parse(found.read()), None
    except (Unreadable, NotANotebook) as reason:
        return None, reason.note


def _without_notebook(key: str, person: Person, student: Student, notes: list[Note]) -> Submission:
    """A student who handed in something, but no notebook."""
    real = [item for item in student.others if item.kind != EMPTY and not item.problem]
    path = show_path((real or student.others)[0]) if student.others else ""
    problems = [item.problem for item in student.others if item.problem]
    if not real and problems:
        return Submission(key, person.name, path, None, tuple(notes), problems[0])
    files = [show_name(item.name) for item in real[:_SHOWN]]
    problem: Note = ("no_notebook", {"files": files, "count": len(real)})
    return Submission(key, person.name, path, None, tuple(notes), problem)
