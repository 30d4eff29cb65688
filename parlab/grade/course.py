"""A lesson as the grader sees it: the built exercise and solution, their TODOs, every course cell.

All of it comes from the course's own folder, so unlike a submission it is trusted and whole.
"""

# mypy: untyped-calls-exclude=nbformat

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import nbformat
from nbformat import NotebookNode

LANGUAGES = ("zh", "en")
_TODO = re.compile(r"# TODO ([1-9]\d*) · ([A-Za-z_]\w*)")
_BADGES = "badges"


class NoLesson(Exception):
    """There is no such lesson, or its notebooks are not built."""


@dataclass(frozen=True)
class Todo:
    """One of a lesson's tasks.

    Attributes:
        number: from 1.
        function: what it asks for.
        stub: language → source of the exercise's cell.
        solution: language → source of the solution's cell.
    """

    number: int
    function: str
    stub: Mapping[str, str]
    solution: Mapping[str, str]


@dataclass(frozen=True, eq=False)  # one object a run: what is derived from it is kept
class Course:
    """A lesson, its notebooks in both languages, and the names that tell other lessons apart.

    Attributes:
        name: as in ``notebooks/<name>.ipynb``.
        todos: in order.
        exercise: language → notebook; its cell ids are the course's own (``todo-1``, ``check-1``).
        solution: language → notebook.
        twin: language → single-file notebook, where there is one.
        functions_elsewhere: function → the other lesson that asks for it.
        lessons: the names of every lesson, this one too.
    """

    name: str
    todos: tuple[Todo, ...]
    exercise: Mapping[str, NotebookNode]
    solution: Mapping[str, NotebookNode]
    twin: Mapping[str, NotebookNode]
    functions_elsewhere: Mapping[str, str]
    lessons: tuple[str, ...]

    def setup(self, language: str) -> str:
        """The source of the exercise's set-up cell."""
        return next(str(c.source) for c in self.exercise[language].cells if c.id == "setup")

    @cached_property
    def functions(self) -> Mapping[str, int]:
        """Function → number of its TODO."""
        return {todo.function: todo.number for todo in self.todos}

    @cached_property
    def known_cells(self) -> Mapping[str, str]:
        """What a course cell's text is (see ``plain_text``) → its cell id, in every notebook."""
        books = [
            book for group in (self.exercise, self.twin, self.solution) for book in group.values()
        ]
        return {
            plain_text(cell.source): cell.id
            for book in reversed(books)
            for cell in book.cells
            if cell.id != _BADGES and plain_text(cell.source)
        }


def load_course(root: Path, name: str) -> Course:
    """The lesson ``name`` (``"04"`` or ``"04_model_internal_parallel"``) of the course in ``root``.

    Raises:
        NoLesson: there is none of that name, or a notebook of it is missing.
    """
    lessons = sorted(path.stem for path in (root / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    matching = [lesson for lesson in lessons if lesson == name or lesson[:2] == name]
    if not matching:
        raise NoLesson(
            f"没有课程 {name!r}；有：{'、'.join(lessons) or '–'}"
            f" | no lesson {name!r} in {root}; there are: {', '.join(lessons) or 'none'}"
        )
    (name,) = matching
    exercise, solution = (_books(root / folder, name) for folder in ("notebooks", "solutions"))
    for folder, books in (("notebooks", exercise), ("solutions", solution)):
        if "zh" not in books:
            raise NoLesson(f"{folder}/{name}.ipynb 不存在 | is missing: run `make build`")
    elsewhere = {
        function: other
        for other in lessons
        if other != name
        for function in _functions(_books(root / "notebooks", other))
    }
    return Course(
        name,
        _todos(exercise, solution),
        exercise,
        {language: book for language, book in solution.items() if language in exercise},
        _books(root / "colab", name),
        {name: other for name, other in elsewhere.items() if name not in _functions(exercise)},
        tuple(lessons),
    )


_SWITCH = re.compile(r"^(RUN_[A-Z_]+ = )True\b", re.MULTILINE)


def plain_text(source: str) -> str:
    """A cell's text without what editors and lessons change.

    Without blanks at line ends and blank lines around it, and with every switch off that a lesson
    tells its learner to turn on, such as ``RUN_PROOF``.
    """
    text = "\n".join(line.rstrip() for line in source.split("\n")).strip("\n")
    return _SWITCH.sub(r"\1False", text)


def _books(folder: Path, name: str) -> dict[str, NotebookNode]:
    places = {"zh": folder / f"{name}.ipynb", "en": folder / "en" / f"{name}.ipynb"}
    return {
        language: nbformat.read(path, as_version=4)
        for language, path in places.items()
        if path.is_file()
    }


def _todo_cells(book: NotebookNode) -> dict[int, tuple[str, str]]:
    found = {}
    for cell in book.cells:
        match = _TODO.match(cell.source) if cell.cell_type == "code" else None
        if match:
            found[int(match[1])] = (match[2], str(cell.source))
    return found


def _functions(books: Mapping[str, NotebookNode]) -> set[str]:
    return {function for book in books.values() for function, _ in _todo_cells(book).values()}


def _todos(
    exercise: Mapping[str, NotebookNode], solution: Mapping[str, NotebookNode]
) -> tuple[Todo, ...]:
    stubs = {language: _todo_cells(book) for language, book in exercise.items()}
    answers = {language: _todo_cells(book) for language, book in solution.items()}
    return tuple(
        Todo(
            number,
            function,
            {language: cells[number][1] for language, cells in stubs.items()},
            {
                language: cells[number][1]
                for language, cells in answers.items()
                if language in stubs
            },
        )
        for number, (function, _) in sorted(stubs["zh"].items())
    )
