"""Sorts what was found by whose it is."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from parlab.grade.course import Course
from parlab.grade.roster import Entry, Roster
from parlab.grade.students import (
    Identity,
    copy_number,
    flat_name,
    identify,
    safe_name,
    show_name,
)
from parlab.grade.types import Note
from parlab.grade.walk import EMPTY, Found

_NOTEBOOK = (".ipynb", ".ipynb.txt", ".ipynb.json")
# What somebody may have handed in instead of a notebook; other files in a flat folder are left
# aside, since they may be the instructor's (a roster, a read-me).
_INSTEAD = (".py", ".pdf", ".html", ".htm", ".doc", ".docx", ".rar", ".7z", ".tar", ".gz", ".tgz")
_KEPT = 200  # files of one student that are remembered at most
_SHOWN = 5


@dataclass
class Student:
    """What was found of one student so far."""

    identity: Identity
    entry: int | None = None
    notebooks: list[tuple[Found, Identity]] = field(default_factory=list)
    others: list[Found] = field(default_factory=list)
    count: int = 0
    notes: list[Note] = field(default_factory=list)

    def add(self, found: Found, identity: Identity) -> None:
        """Keeps what may be the submission, within bounds."""
        if found.kind != EMPTY and found.name.lower().endswith(_NOTEBOOK):
            self.count += 1
            self.notebooks.append((found, identity))
            if len(self.notebooks) > 2 * _KEPT:
                self.notebooks = newest_first(self.notebooks)[:_KEPT]
        elif len(self.others) < _KEPT:
            self.others.append(found)


def by_student(
    found: Sequence[Found],
    course: Course,
    roster: Roster | None,
    submitted: bool,
    notes: list[Note],
) -> tuple[list[Student], list[Found]]:
    """Everything sorted by whose it is; files of nobody apart."""
    students: dict[object, Student] = {}
    aside: list[Found] = []
    for item in found:
        identity = identify(item.parts, course.lessons, submitted)
        if roster and identity.rule in ("folders", "flat"):
            identity = _named_in_roster(item, identity, roster, course)
        loose = identity.rule == "flat" and item.kind != EMPTY
        if loose and not item.name.lower().endswith((*_NOTEBOOK, *_INSTEAD, ".zip")):
            aside.append(item)
            continue
        student = students.setdefault(identity.key, Student(identity))
        student.add(item, identity)
    if roster:
        return _matched(list(students.values()), roster, notes), aside
    return list(students.values()), aside


def _named_in_roster(item: Found, identity: Identity, roster: Roster, course: Course) -> Identity:
    """The first part of the path that is, whole, one student of the roster."""
    for part in item.parts:
        name = flat_name(part, course.lessons)
        if len(roster.match_whole(name)) == 1:
            return Identity(identity.rule, name, file=identity.file)
    return identity


def _matched(students: list[Student], roster: Roster, notes: list[Note]) -> list[Student]:
    """Students with their roster entry; two that fit the same entry become one."""
    by_entry: dict[int, Student] = {}
    kept: list[Student] = []
    claims: dict[int, set[tuple[str, str]]] = {}
    matches = {}
    for student in students:
        identity = student.identity
        fits = roster.match(identity.name, identity.number, identity.rule)
        matches[id(student)] = fits
        if len(fits) == 1 and identity.number:
            claims.setdefault(fits[0], set()).add((identity.rule, identity.number))
    for student in students:
        fits = matches[id(student)]
        name = show_name(student.identity.name)
        if not fits:
            student.notes.append(("not_on_roster", {"name": name}))
        elif len(fits) > 1 or len(claims.get(fits[0], ())) > 1:
            shown = [show_name(roster.entries[i].display) for i in fits[:_SHOWN]]
            note: Note = ("roster_ambiguous", {"name": name, "candidates": shown})
            student.notes.append(note)
            notes.append(note)
        elif fits[0] in by_entry:
            first = by_entry[fits[0]]
            first.count += student.count
            first.notebooks = newest_first([*first.notebooks, *student.notebooks])[:_KEPT]
            first.others += student.others
            continue
        else:
            if roster.is_guess(student.identity.name):
                taken = show_name(roster.entries[fits[0]].display)
                student.notes.append(("roster_guessed", {"name": name, "taken": taken}))
            student.entry = fits[0]
            by_entry[fits[0]] = student
        kept.append(student)
    return kept


def other_names(student: Student, entry: Entry | None, course: Course) -> frozenset[str]:
    """What else may stand for a student: numbers, files, the key that another run would give."""
    names = {student.identity.name, *(entry.fields.values() if entry else ())}
    for found, identity in student.notebooks:
        names |= {identity.name, identity.file, found.path, *found.parts}
        names |= {part.rpartition(".")[0] for part in found.parts}
        names |= {flat_name(part, course.lessons) for part in found.parts}
    return frozenset(names | {safe_name(name) for name in names}) - {""}


def newest_first(notebooks: Iterable[tuple[Found, Identity]]) -> list[tuple[Found, Identity]]:
    """Notebooks of one student, the newest first."""
    listed = list(notebooks)
    uploads = all(identity.upload for _, identity in listed)

    def age(item: tuple[Found, Identity]) -> tuple[float, float, int, str]:
        found, identity = item
        upload = identity.upload if uploads else 0
        return upload, found.time, copy_number(identity.file or found.name), found.path

    return sorted(listed, key=age, reverse=True)


def inside_wrapper(found: list[Found], course: Course) -> tuple[list[Found], str]:
    """The files below the folders that hold the whole class, and the innermost one's name.

    Looked through are folders that everything lies in, down to where several students' folders or
    files stand side by side; where that is nowhere, none: it is one student's folder.
    """
    inner = found
    while inner and all(len(item.parts) > 1 for item in inner):
        first = {item.parts[0] for item in inner}
        (name, *others) = first
        if others or identify((name, "x.ipynb"), course.lessons).number:
            break
        inner = [_without_first(item) for item in inner]
        if name == "submitted" or len(_students_at(inner, course)) > 1:
            return inner, name.removesuffix(".zip")
    return found, ""


def _students_at(found: Sequence[Found], course: Course) -> set[str]:
    """Names of folders, and of notebooks that are called more than the lesson, side by side."""
    names = set()
    for item in found:
        name = flat_name(item.parts[0], course.lessons)
        own = name not in course.lessons and item.name.lower().endswith((*_NOTEBOOK, ".zip"))
        if len(item.parts) > 1 or own or identify(item.parts, course.lessons).number:
            names.add(item.parts[0] if len(item.parts) > 1 else name)
    return names


def _without_first(item: Found) -> Found:
    return Found(
        item.parts[1:], item.size, item.time, item.kind, item.read, item.notes, item.problem
    )
