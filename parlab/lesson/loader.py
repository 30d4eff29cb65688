"""Loads the functions that a lesson's TODOs ask for: the learner's when finished, else the answer.

A rule that a lesson teaches lives in that lesson alone. Whoever needs it (the benchmark's gates,
the planner) takes it from here and writes down which one it was.
"""

import ast
import contextlib
import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from parlab.lesson.undisturbed import undisturbed

_SETUP = re.compile(r"(#@title .*\n)?# SETUP\b")  # a twin's has a title
_TODO = re.compile(r"# TODO ([1-9]\d*) · ([A-Za-z_]\w*)")
_CHECK = re.compile(r"# CHECK ([1-9]\d*)")
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


class LessonUnusable(Exception):
    """Neither a finished notebook nor the lesson's source could be loaded; says why."""


@dataclass(frozen=True)
class Loaded:
    """A lesson's functions and where they came from.

    Attributes:
        functions: by name.
        origin: ``"learner"`` (a finished notebook) or ``"solution"`` (the lesson's source).
        source: the file's path below the repository, or its name.
        sha256: of the TODO cells' text, joined by newlines.
        note: why it is not the learner's; empty where it is.
    """

    functions: Mapping[str, Callable[..., Any]]
    origin: str
    source: str
    sha256: str
    note: str = ""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.functions[name]

    def describe(self) -> str:
        """One line for people."""
        line = (
            f"the {self.origin}'s functions decide, from {self.source} (sha256 {self.sha256[:12]})"
        )
        return f"{line}, since {self.note}" if self.note else line


def load_lesson(
    root: Path,
    lesson: str,
    notebook: Path | None = None,
    load: Callable[[Path, str], Loaded] | None = None,
) -> Loaded:
    """The functions of ``lesson`` as the learner left them, if every check passes, else the answer.

    Args:
        root: the folder that holds ``notebooks/`` and ``solutions/``.
        lesson: the lesson's name, as in ``solutions/<lesson>.py``.
        notebook: the learner's notebook, where one is named: it is taken or refused. By default
            ``notebooks/<lesson>.ipynb`` and its English twin are looked at.
        load: what loads a notebook, instead of `load_notebook`.

    Raises:
        LessonUnusable: the notebook that was named cannot be used, or there is no finished one and
            no source.
    """
    load = load or load_notebook
    if notebook:
        return load(notebook, _shown(notebook, root))
    solution = root / "solutions" / f"{lesson}.py"
    places = [root / "notebooks" / f"{lesson}.ipynb", root / "notebooks" / "en" / f"{lesson}.ipynb"]
    notes = []
    for place in [place for place in places if place.is_file()]:
        try:
            return load(place, _shown(place, root))
        except LessonUnusable as reason:
            notes.append(str(reason))
    return load_solution(solution, _shown(solution, root), "; ".join(notes) or "no notebook")


def load_notebook(path: Path, shown: str = "") -> Loaded:
    """The functions of a notebook in which every TODO is done and every check passes.

    Runs its set-up, TODO and check cells, nothing else.

    Raises:
        LessonUnusable: it cannot be read, a TODO is open, or a check fails; says which.
    """
    shown = shown or path.name
    sources = notebook_cells(path, shown)
    todos = _todos(sources)
    cells_to_run = [s for s in sources if _SETUP.match(s) or _TODO.match(s)]
    checks = [source for source in sources if _CHECK.match(source)]
    with undisturbed():
        namespace = _run([*cells_to_run, *checks], shown)
    return _loaded(todos, namespace, "learner", shown)


def notebook_cells(path: Path, shown: str) -> list[str]:
    """The code cells of a notebook whose TODOs all have an answer and a check; nothing is run.

    Raises:
        LessonUnusable: it cannot be read, a TODO is open, or a check is gone; says which.
    """
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except OSError as error:
        raise LessonUnusable(f"{shown} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise LessonUnusable(f"{shown} cannot be read: {type(error).__name__}: {error}") from None
    todos = _todos(sources)
    if not todos:
        raise LessonUnusable(f"{shown} has no TODO cell")
    checked = {int(match[1]) for source in sources if (match := _CHECK.match(source))}
    for number, (_, source) in todos.items():
        if f'NotImplementedError("TODO {number}")' in source.replace("'", '"'):
            raise LessonUnusable(f"{shown} is not finished: TODO {number} is open")
        if number not in checked:
            raise LessonUnusable(f"{shown} has no CHECK {number} cell: put it back")
    return sources


def load_solution(path: Path, shown: str = "", note: str = "") -> Loaded:
    """The functions of a lesson's source, which needs no check.

    Runs its TODO cells, after those imports of its set-up cell that they use.

    Raises:
        LessonUnusable: the source cannot be read or has no TODO cell.
    """
    shown = shown or path.name
    try:
        sources = list(_percent_cells(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise LessonUnusable(f"{shown} cannot be read ({error.strerror}); {note}") from None
    todos = _todos(sources)
    if not todos:
        raise LessonUnusable(f"{shown} has no TODO cell; {note}")
    cells = [source for _, source in todos.values()]
    namespace = _run([*_setup_imports(sources, cells), *cells], shown)
    return _loaded(todos, namespace, "solution", shown, note)


def _setup_imports(sources: list[str], cells: list[str]) -> list[str]:
    """What the set-up cell imports and ``cells`` use; drawing modules, say, cost a second."""
    setup = next((source for source in sources if source.startswith("# SETUP")), "")
    try:
        trees = [ast.parse(source) for source in (setup, *cells)]
    except SyntaxError:
        return []  # running them says so
    used = {node.id for tree in trees[1:] for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = []
    for node in trees[0].body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [a for a in node.names if (a.asname or a.name.split(".")[0]) in used]
            if node.names:
                found.append(ast.unparse(node))
    return ["\n".join(["# SETUP", *found])] if found else []


def _percent_cells(text: str) -> Iterator[str]:
    """The code cells of a percent source."""
    heads = list(_CELL.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        if "[markdown]" not in head[1]:
            yield text[head.end() : end].strip("\n")


def _todos(sources: list[str]) -> dict[int, tuple[str, str]]:
    """Number → (function, source) of the TODO cells; of a language pair the first."""
    found: dict[int, tuple[str, str]] = {}
    for source in sources:
        if match := _TODO.match(source):
            found.setdefault(int(match[1]), (match[2], source))
    return found


def _run(sources: list[str], shown: str) -> dict[str, Any]:
    module = ModuleType("lesson")
    with contextlib.redirect_stdout(io.StringIO()):
        for source in sources:
            first = source.split("\n", 1)[0].lstrip("# ")
            try:
                exec(compile(source, f"<{shown}: {first}>", "exec"), module.__dict__)
            except (Exception, SystemExit) as error:
                said = str(error).split("\n", 1)[0]
                reason = f"{first} raised {type(error).__name__}: {said}"
                raise LessonUnusable(f"{shown} is not finished: {reason}") from None
    return module.__dict__


def _loaded(
    todos: dict[int, tuple[str, str]],
    namespace: dict[str, Any],
    origin: str,
    shown: str,
    note: str = "",
) -> Loaded:
    names = [name for name, _ in todos.values()]
    missing = [name for name in names if not callable(namespace.get(name))]
    if missing:
        raise LessonUnusable(f"{shown} does not define {', '.join(missing)}")
    text = "\n".join(source.strip("\n") for _, source in todos.values())
    digest = hashlib.sha256(text.encode()).hexdigest()
    return Loaded({name: namespace[name] for name in names}, origin, shown, digest, note)


def _shown(path: Path, root: Path) -> str:
    try:
        return path.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return path.name
