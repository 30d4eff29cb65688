"""A class of pupils whose true status and scores are known from how each submission was made."""

import copy
import csv
import io
import json
import random
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from grade_damage import HARMLESS, STYLES, Notebook, code, encoded, find, text_of, truncated
from lessons import ROOT, Answer, answers

from parlab.grade.course import Course

FULL, LESS, ZERO = "full", "less", "zero"  # of a TODO's points: all, not all (also none), none
LAYOUTS = ("flat", "folders", "nbgrader", "moodle", "moodle_flat", "canvas")
ZIPPED = ("moodle", "moodle_flat", "canvas")
# What a style's own damage would take away: the two together leave no right answer.
_CLASH = {
    "helper_in_check": ("checks_deleted", "checks_as_markdown", "checks_edited"),
    "wrapped_later": ("todos_as_markdown",),
}
_SURNAMES = (*"王李张刘陈杨黄赵吴周", "Müller", "O'Brien", "Smith", "García", "Nguyễn", "Kaplan")
_GIVEN = (*"伟芳娜敏静丽强磊军洋", "Ann", "José", "Zoë", "Bob", "Mei-Lin", "Łukasz", "Sam", "Thị")


@dataclass
class Pupil:
    """One student, what they handed in, and what it is worth.

    Attributes:
        surname, given, number, login: as the LMS knows them; number and login are unique.
        content: the file's bytes; None where no notebook was handed in.
        file: the file's name as the student called it.
        status: the true status, or ``no_submission``.
        scores: TODO → ``full``, ``less`` or ``zero``.
        kind: how it was made.
        notes: keys of notes that must be there.
        late: whether the LMS marks it.
    """

    surname: str
    given: str
    number: int
    login: str
    content: bytes | None
    file: str
    status: str
    scores: dict[int, str]
    kind: str
    notes: tuple[str, ...] = ()
    late: bool = False
    extra: list[tuple[str, bytes]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """As people say it: Chinese surname first."""
        if not (self.surname + self.given).isascii() and self.surname[0] >= "一":
            return self.surname + self.given
        return f"{self.given} {self.surname}"


def make_class(course: Course, n: int = 300, seed: int = 0) -> list[Pupil]:
    """``n`` pupils (60 at least, so that every kind is there), the same for the same seed."""
    makers = _makers(course, random.Random(seed))
    chance = random.Random(seed + 1)
    pupils = []
    for index in range(n):
        kind, make = makers[index % len(makers)]
        content, status, scores, notes = make()
        surname, given = chance.choice(_SURNAMES), chance.choice(_GIVEN)
        if status != "unreadable" and chance.random() < 0.1:
            file = f"作业{index} 最终版.ipynb"
        else:
            file = f"{course.name}.ipynb"
        pupils.append(
            Pupil(surname, given, 20_230_000 + index, f"u{20_230_000 + index}", content, file,
                  status, scores, kind, notes, late=index % 17 == 0)
        )  # fmt: skip
    return pupils


Made = tuple[bytes | None, str, dict[int, str], tuple[str, ...]]


def _makers(course: Course, chance: random.Random) -> list[tuple[str, Callable[[], Made]]]:
    """Name and maker of every kind; those that are not damaged come more than once."""
    maker = _Maker(course, chance)
    kinds: list[tuple[str, Callable[[], Made]]] = []
    for style in STYLES:
        kinds.append((f"right_{style}", lambda style=style: maker.right(style)))
    for damage in HARMLESS:
        kinds.append((f"damaged_{damage}", lambda damage=damage: maker.damaged(damage)))
    special = (
        maker.untouched, maker.solution, maker.twin_right, maker.english_right, maker.one_open,
        maker.wrong, maker.wrong, maker.wrong, maker.redefined_right, maker.redefined_wrong,
        maker.renamed, maker.todo_deleted, maker.syntax_error, maker.byte_order_mark,
        maker.utf_16, maker.gbk, maker.truncated, maker.not_json, maker.empty, maker.web_page,
        maker.other_lesson, maker.pdf_only, maker.untouched_twin, maker.pass_only,
    )  # fmt: skip
    return kinds + [(make.__name__, make) for make in special]


class _Maker:
    """Makes one submission at a time."""

    def __init__(self, course: Course, chance: random.Random) -> None:
        self.course = course
        self.chance = chance
        self.names = {todo.number: todo.function for todo in course.todos}
        self.right_ones: dict[int, list[str]] = {n: [] for n in self.names}
        self.wrong_ones: dict[int, list[str]] = {n: [] for n in self.names}
        answer: Answer
        for answer in answers(course.name):
            group = self.right_ones if answer.right else self.wrong_ones
            group[answer.todo].append(answer.source)

    def book(self, folder: str = "notebooks", language: str = "zh") -> Notebook:
        place = ROOT / folder / ("en" if language == "en" else "") / f"{self.course.name}.ipynb"
        loaded: Notebook = json.loads(place.read_text(encoding="utf-8"))
        return loaded

    def pick(self) -> dict[int, tuple[str, str]]:
        return {n: (self.names[n], self.chance.choice(self.right_ones[n])) for n in self.names}

    def answered(self, folder: str = "notebooks", language: str = "zh", style: str = "plain"):
        book = self.book(folder, language)
        STYLES[style](book, self.pick())
        return book

    def done(self, book: Notebook, *notes: str, how: str = "utf-8") -> Made:
        return encoded(book, how), "ok", dict.fromkeys(self.names, FULL), notes

    def some(self, book: Notebook, status: str, scores: dict[int, str], *notes: str) -> Made:
        return encoded(book), status, {**dict.fromkeys(self.names, FULL), **scores}, notes

    def lost(self, content: bytes | None, status: str = "unreadable") -> Made:
        return content, status, dict.fromkeys(self.names, ZERO), ()

    # -- right
    def right(self, style: str) -> Made:
        return self.done(self.answered(style=style))

    def damaged(self, damage: str) -> Made:
        styles = [style for style in STYLES if damage not in _CLASH.get(style, ())]
        book = self.answered(style=self.chance.choice(styles))
        return self.done(HARMLESS[damage](book))

    def twin_right(self) -> Made:
        return self.done(self.answered("colab"))

    def english_right(self) -> Made:
        return self.done(self.answered("notebooks", "en", "decorated"))

    def solution(self) -> Made:
        return self.done(self.book("solutions"), "is_solution")

    def redefined_right(self) -> Made:
        book = self.answered()
        wrong = self.chance.choice(self.wrong_ones[1])
        book["cells"].insert(0, code(wrong))
        return self.done(book, "several_answers")

    def byte_order_mark(self) -> Made:
        return self.done(self.answered(), "byte_order_mark", how="utf-8-sig")

    def utf_16(self) -> Made:
        return self.done(self.answered(), "byte_order_mark", how="utf-16")

    def gbk(self) -> Made:
        return self.done(self.answered(), "encoding", how="gb18030")

    # -- less than full
    def wrong(self) -> Made:
        answers_ = self.pick()
        number = self.chance.choice(list(self.names))
        answers_[number] = (self.names[number], self.chance.choice(self.wrong_ones[number]))
        book = self.book()
        STYLES["plain"](book, answers_)
        return self.some(book, "partial", {number: LESS})

    def redefined_wrong(self) -> Made:
        book = self.answered()
        book["cells"].append(code(self.chance.choice(self.wrong_ones[1])))
        return self.some(book, "partial", {1: LESS}, "several_answers")

    def syntax_error(self) -> Made:
        book = self.answered()
        cell = book["cells"][find(book, "# TODO 2 ·")]
        cell["source"] = text_of(cell).replace("):", ") :\n  )", 1)
        return self.some(book, "does_not_run", {2: ZERO}, "syntax_error")

    # -- unfinished
    def untouched(self) -> Made:
        return self.some(self.book(), "unfinished", dict.fromkeys(self.names, ZERO))

    def untouched_twin(self) -> Made:
        return self.some(self.book("colab", "en"), "unfinished", dict.fromkeys(self.names, ZERO))

    def one_open(self) -> Made:
        book, chosen = self.book(), self.pick()
        chosen.pop(2)
        STYLES["plain"](book, chosen)
        return self.some(book, "unfinished", {2: ZERO})

    def pass_only(self) -> Made:
        book = self.answered()
        cell = book["cells"][find(book, "# TODO 3 ·")]
        cell["source"] = f"# TODO 3 · {self.names[3]}\ndef {self.names[3]}(*args):\n    pass\n"
        return self.some(book, "unfinished", {3: ZERO})

    # -- missing
    def renamed(self) -> Made:
        book = self.answered()
        cell = book["cells"][find(book, "# TODO 1 ·")]
        head, _, rest = text_of(cell).partition("\n")
        cell["source"] = head + "\n" + rest.replace(self.names[1], "my_answer")
        return self.some(book, "missing_answers", {1: ZERO}, "renamed")

    def todo_deleted(self) -> Made:
        book = self.answered()
        del book["cells"][find(book, "# TODO 3 ·")]
        return self.some(book, "missing_answers", {3: ZERO}, "todo_absent")

    # -- not to be read, or not of this lesson
    def truncated(self) -> Made:
        return self.lost(truncated(encoded(self.answered())))

    def not_json(self) -> Made:
        return self.lost("这是我的作业 def f(): pass".encode())

    def empty(self) -> Made:
        return self.lost(b"")

    def web_page(self) -> Made:
        return self.lost(b"<!DOCTYPE html><html><body>Log in</body></html>")

    def pdf_only(self) -> Made:
        return self.lost(None)

    def other_lesson(self) -> Made:
        others = [name for name in self.course.lessons if name != self.course.name]
        if others:
            place = ROOT / "notebooks" / f"{self.chance.choice(others)}.ipynb"
            return self.lost(place.read_bytes(), "wrong_lesson")
        book = self.book()
        book["cells"] = [
            code("# TODO 1 · some_other_function\ndef some_other_function(): return 1")
        ]
        return self.lost(encoded(book), "wrong_lesson")


# --------------------------------------------------------------------------------- layouts
def write_class(pupils: Sequence[Pupil], target: Path, layout: str) -> Path:
    """The class as one of ``LAYOUTS``: below the folder ``target``, or in a zip of that name.

    Returns:
        What is graded.
    """
    if layout in ZIPPED:
        target = target.with_suffix(".zip")
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for pupil in pupils:
                for path, content in _files(pupil, layout):
                    archive.writestr(path, content)
        return target
    for pupil in pupils:
        for path, content in _files(pupil, layout):
            place = target / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
    return target / "submitted" if layout == "nbgrader" else target


def _files(pupil: Pupil, layout: str) -> list[tuple[str, bytes]]:
    """The pupil's files with their paths in a layout."""
    name, content = pupil.file, pupil.content
    if pupil.status == "no_submission":
        return []
    if content is None:
        name, content = "report.pdf", b"%PDF-1.4"
    return [(_path(pupil, layout, n), c) for n, c in [(name, content), *pupil.extra]]


def _path(pupil: Pupil, layout: str, file: str) -> str:
    stem, _, ending = file.rpartition(".")
    if layout == "flat":
        return f"{pupil.name}_{pupil.number}_{file}"
    if layout == "folders":
        return f"{pupil.name} {pupil.number}/{file}"
    if layout == "nbgrader":
        return f"submitted/{pupil.login}/lesson-04/{file}"
    moodle = f"{pupil.name.replace('_', ' ')}_{pupil.number}_assignsubmission_file_"
    if layout == "moodle":
        return f"{moodle}/{file}"
    if layout == "moodle_flat":
        return f"{moodle}{file}"
    squeezed = "".join(c for c in f"{pupil.surname}{pupil.given}".lower() if c.isalnum())
    late = "_LATE" if pupil.late else ""
    return f"{squeezed}{late}_{pupil.number}_{pupil.number * 7}_{stem}.{ending}"


def roster(pupils: Sequence[Pupil], kind: str, encoding: str = "utf-8") -> bytes:
    """The class list as an LMS exports it: ``moodle``, ``canvas``, ``nbgrader`` or ``list``."""
    file = io.StringIO()
    write = csv.writer(file, lineterminator="\r\n").writerow
    if kind == "moodle":
        write(["Identifier", "Full name", "Email address", "Status", "Grade"])
    elif kind == "canvas":
        write(["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lesson 4 (901)"])
        write(["    Points Possible", "", "", "", "", "100"])
    elif kind == "nbgrader":
        write(["id", "first_name", "last_name", "email", "lms_user_id"])
    for pupil in pupils:
        mail = f"{pupil.login}@example.edu"
        write({
            "moodle": [f"Participant {pupil.number}", pupil.name, mail, "Submitted", ""],
            "canvas": [f"{pupil.surname}, {pupil.given}", pupil.number, f"S{pupil.number}",
                       pupil.login, "A", ""],
            "nbgrader": [pupil.login, pupil.given, pupil.surname, mail, pupil.number],
            "list": [pupil.number, pupil.name],
        }[kind])  # fmt: skip
    return file.getvalue().encode(encoding)


def shuffled(pupils: Sequence[Pupil], seed: int = 0) -> list[Pupil]:
    """The same pupils in another order."""
    mixed = copy.copy(list(pupils))
    random.Random(seed).shuffle(mixed)
    return mixed
