"""The course's lessons as the tests see them: built notebooks, their cells, sample answers."""

import ast
import contextlib
import io
import re
import types
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from parlab.author.anchors import anchor_of

ROOT = Path(__file__).resolve().parent.parent
LESSONS = sorted(source.stem for source in (ROOT / "solutions").glob("[0-9][0-9]_*.py"))
LANGUAGES = ("zh", "en")
EVERY = [(lesson, language) for lesson in LESSONS for language in LANGUAGES]
# Each lesson once, languages in turn: for slow tests of what the language cannot change, since
# the build refuses languages whose code differs in more than texts.
ONCE = [(lesson, LANGUAGES[number % 2]) for number, lesson in enumerate(LESSONS)]
_HEAD = re.compile(r"# %% (right|wrong) · (\w+)(?: · (.+))?")


def load(folder: str, lesson: str, language: str) -> NotebookNode:
    """The committed notebook in ``notebooks``, ``solutions`` or ``colab``."""
    return deepcopy(_read(ROOT / folder / ("en" if language == "en" else "") / f"{lesson}.ipynb"))


@cache
def _read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def cell(notebook: NotebookNode, cell_id: str) -> NotebookNode:
    """The one cell with this id."""
    (found,) = [item for item in notebook.cells if item.id == cell_id]
    return found


def todo_numbers(notebook: NotebookNode) -> list[int]:
    """The numbers of the TODO cells."""
    anchors = [anchor_of(item.source) for item in code_cells(notebook)]
    return [anchor.number for anchor in anchors if anchor and anchor.kind == "todo"]


def needed(notebook: NotebookNode, number: int) -> list[int]:
    """The TODOs whose functions TODO ``number`` calls: its check's ``needs``, the first first."""
    names = {
        anchor.function: anchor.number
        for anchor in (anchor_of(item.source) for item in code_cells(notebook))
        if anchor and anchor.kind == "todo"
    }
    found: set[int] = set()
    for node in ast.walk(ast.parse(cell(notebook, f"check-{number}").source)):
        if isinstance(node, ast.keyword) and node.arg == "needs":
            for name in ast.literal_eval(node.value):
                found |= {names[name], *needed(notebook, names[name])}
    return sorted(found)


def answered(
    lesson: str, language: str, numbers: list[int], folder: str = "notebooks"
) -> NotebookNode:
    """The exercise with the solution's cells for these TODOs."""
    exercise, solution = load(folder, lesson, language), load("solutions", lesson, language)
    for number in numbers:
        cell(exercise, f"todo-{number}").source = cell(solution, f"todo-{number}").source
    return exercise


@dataclass(frozen=True)
class Answer:
    """A sample answer to one TODO."""

    lesson: str
    todo: int
    right: bool
    name: str
    expects: str
    source: str

    def __str__(self) -> str:
        verdict = "right" if self.right else "wrong"
        return f"{self.lesson[:2]}-todo{self.todo}-{verdict}-{self.name}"


def answers(lesson: str) -> Iterator[Answer]:
    """The sample answers of a lesson, from ``tests/answers/NN_todo_k.py``."""
    for file in sorted((ROOT / "tests" / "answers").glob(f"{lesson[:2]}_todo_*.py")):
        number = int(file.stem.rpartition("_")[2])
        blocks = re.split(r"^(?=# %%)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
        for block in blocks:
            head, _, source = block.partition("\n")
            found = _HEAD.fullmatch(head)
            assert found, (
                f"{file.name}: {head!r} is no `# %% right · name` or `# %% wrong · name · expects`"
            )
            verdict, name, expects = found.groups()
            yield Answer(lesson, number, verdict == "right", name, expects or "", source)


class Kernel:
    """A notebook's cells run in this process, as a kernel would: one namespace, prints kept."""

    def __init__(self) -> None:
        self.module = types.ModuleType("notebook")

    def run(self, source: str, file: str = "<cell>") -> str:
        """What the cell printed; its exceptions pass through."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(source, file, "exec"), self.module.__dict__)
        return printed.getvalue()

    def __getitem__(self, name: str) -> Any:
        return getattr(self.module, name)
