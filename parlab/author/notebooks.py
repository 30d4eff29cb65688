"""Composes the six notebooks of a lesson."""

# mypy: untyped-calls-exclude=nbformat

import ast
from collections.abc import Callable
from dataclasses import dataclass

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from parlab.author.badges import badges
from parlab.author.bundle import pack
from parlab.author.code_rules import parse_python
from parlab.author.embed import carried_modules
from parlab.author.lesson import LANGUAGES, Lesson, Unit
from parlab.author.markers import stub
from parlab.author.problems import Problem, Refused
from parlab.author.repo_links import resolve_repo_links
from parlab.author.repository import Repository
from parlab.author.setup_cell import guarded_setup, single_file_setup

SOLUTION, EXERCISE, TWIN = "solutions", "notebooks", "colab"
FOLDERS = (SOLUTION, EXERCISE, TWIN)
_METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
_COLAB_METADATA = {"provenance": [], "toc_visible": True}
_FOLDED = {"cellView": "form", "jupyter": {"source_hidden": True}}


def notebook_path(folder: str, name: str, language: str) -> str:
    """Where a lesson's notebook lies, from the repository's root."""
    return f"{folder}/{'en/' if language == 'en' else ''}{name}.ipynb"


def notebook_paths(name: str) -> list[str]:
    """Where all six notebooks of a lesson lie."""
    return [notebook_path(folder, name, language) for folder in FOLDERS for language in LANGUAGES]


def compose(lesson: Lesson, repository: Repository) -> dict[str, NotebookNode]:
    """The lesson's notebooks by path, none of them executed.

    Raises:
        Refused: a module that the twins must carry cannot be carried, or the set-up cell is no
            longer Python once it is wrapped.
    """
    code = [unit.cell(lang) for unit in lesson.units for lang in LANGUAGES if not unit.zh.markdown]
    modules = carried_modules((ast.parse(cell.source) for cell in code), repository.root)
    shown = repository.relative(lesson.source)
    bundle = pack(lesson.setup.zh.source, repository.root, shown)
    address = repository.blob("parlab/bench")
    carried = _Carried(modules, bundle, address)
    made = {}
    for folder in FOLDERS:
        for language in LANGUAGES:
            path = notebook_path(folder, lesson.name, language)
            cells = [
                _cell(unit, language, path, repository, _source(folder, language, carried))
                for unit in lesson.units
            ]
            if folder != SOLUTION:
                cells.insert(0, _badges(lesson.name, repository, folder, language))
            made[path] = _notebook(cells, folder)
    _check_setup(lesson, made, repository)
    return made


def serialize(notebook: NotebookNode) -> bytes:
    """A notebook's bytes: always the same for the same notebook."""
    nbformat.validate(notebook)
    text: str = nbformat.writes(notebook, version=nbformat.NO_CONVERT)
    return (text.rstrip("\n") + "\n").encode("utf-8")


@dataclass(frozen=True)
class _Carried:
    """What a twin carries; see `single_file_setup`."""

    modules: dict[str, str]
    bundle: tuple[str, str] | None
    address: str


def _source(folder: str, language: str, carried: _Carried) -> Callable[[Unit], str]:
    """How a code cell's source is made in one kind of notebook."""

    def make(unit: Unit) -> str:
        source = unit.cell(language).source
        if unit.cell_id == "setup":
            if folder == TWIN:
                return single_file_setup(
                    source, language, carried.modules, carried.bundle, carried.address
                )
            return guarded_setup(source, language)
        if folder != SOLUTION and unit.anchor and unit.anchor.is_task:
            return stub(source, unit.anchor.label)
        return source

    return make


def _cell(
    unit: Unit, language: str, path: str, repository: Repository, make: Callable[[Unit], str]
) -> NotebookNode:
    cell = unit.cell(language)
    alone = path.startswith(f"{TWIN}/")
    node: NotebookNode
    if cell.markdown:
        text = resolve_repo_links(cell.source, repository, path, alone)
        node = new_markdown_cell(text, id=unit.cell_id)
    else:
        node = new_code_cell(make(unit), id=unit.cell_id)
    own = unit.anchor.tag if unit.anchor else None
    tags = list(dict.fromkeys([own, *cell.tags] if own else cell.tags))
    if tags:
        node.metadata["tags"] = tags
    if alone and unit.cell_id == "setup":
        node.metadata.update(nbformat.from_dict(_FOLDED))
    return node


def _badges(name: str, repository: Repository, folder: str, language: str) -> NotebookNode:
    other = "en" if language == "zh" else "zh"
    text = badges(
        repository,
        notebook=notebook_path(folder, name, language),
        twin=notebook_path(TWIN, name, language),
        other=notebook_path(folder, name, other),
        language=language,
        alone=folder == TWIN,
    )
    node: NotebookNode = new_markdown_cell(text, id="badges")
    return node


def _notebook(cells: list[NotebookNode], folder: str) -> NotebookNode:
    metadata = dict(_METADATA, colab=_COLAB_METADATA) if folder == TWIN else _METADATA
    notebook: NotebookNode = new_notebook(cells=cells, metadata=nbformat.from_dict(metadata))
    notebook.nbformat_minor = 5
    return notebook


def _check_setup(lesson: Lesson, made: dict[str, NotebookNode], repository: Repository) -> None:
    for notebook in made.values():
        setup = next(cell for cell in notebook.cells if cell.id == "setup")
        try:
            parse_python(setup.source)
        except SyntaxError as error:
            file, line = repository.relative(lesson.source), lesson.setup.zh.line + 1
            message = f"the set-up cell is not Python once parlab is added to it: {error.msg}"
            raise Refused([Problem(file, line, message)]) from None
