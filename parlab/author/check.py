"""Says where the committed notebooks differ from what the sources build."""

# mypy: untyped-calls-exclude=nbformat

import difflib
import json
from collections.abc import Iterator
from copy import deepcopy
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode, ValidationError

from parlab.author.notebooks import FOLDERS, SOLUTION, serialize

_Cells = dict[str, str]


def compare_notebook(path: str, built: NotebookNode, root: Path, source: str) -> list[str]:
    """What differs between a committed notebook and the built one, in words and diffs.

    Args:
        path: the notebook, from ``root``.
        built: what its source builds, not executed.
        root: the repository's root.
        source: the lesson's source, to name in the answer.
    """
    file, remedy = root / path, f"run parlab build {Path(path).stem}"
    if not file.is_file():
        return [f"{path}: missing; {remedy}"]
    data = file.read_bytes()
    try:
        committed = json.loads(data)
        cells = _texts(committed["cells"])
        _check_outputs(committed["cells"])
    except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
        what = str(error).partition("\n")[0]
        return [f"{path}: not a notebook ({type(error).__name__}: {what}); {remedy}"]
    found = list(_compare_cells(path, cells, _texts(built.cells), source, remedy))
    wanted = built
    if path.startswith(f"{SOLUTION}/"):
        found += [f"{path}: {what}; {remedy}" for what in _unexecuted(committed["cells"])]
        wanted = with_outputs(built, committed) or built
    expected = serialize(wanted)
    if not found and data.replace(b"\r\n", b"\n") == expected != data:
        found.append(f"{path}: line ends are CRLF: let git keep LF (.gitattributes), then {remedy}")
    elif not found and data != expected:
        found.append(_diff(f"{path}: metadata or layout", data, expected, source))
    return found


def stray_files(root: Path, expected: set[str]) -> list[str]:
    """Names the notebooks that no source builds, and the sources where none belongs."""
    found = []
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root).as_posix()
            kind = file.suffix.lower()
            hidden = any(part.startswith(".") for part in Path(path).parts)
            if hidden or path in expected or (kind == ".py" and file.parent == root / SOLUTION):
                continue
            if kind == ".ipynb":
                found.append(f"{path}: no source builds this notebook; delete it or add the source")
            elif kind == ".py":
                found.append(f"{path}: no place for a source; delete it or move it to {SOLUTION}/")
    return found


def with_outputs(built: NotebookNode, committed: Any) -> NotebookNode | None:
    """A built notebook with the outputs of the committed one; None where its code is another."""
    ran = [cell for cell in committed["cells"] if cell["cell_type"] == "code"]
    notebook = deepcopy(built)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    if [(cell.id, cell.source) for cell in code] != [(c.get("id"), _text(c)) for c in ran]:
        return None
    for cell, before in zip(code, ran, strict=True):
        cell.outputs = nbformat.from_dict(before["outputs"])
        cell.execution_count = before["execution_count"]
    return notebook


def _texts(cells: list[Any]) -> _Cells:
    """Each cell's comparable text by its id; cells without an id are named by position."""
    return {
        str(cell.get("id", f"(no id, position {position})")): f"{cell['cell_type']}\n{_text(cell)}"
        for position, cell in enumerate(cells, 1)
    }


def _text(cell: Any) -> str:
    source = cell["source"]
    return source if isinstance(source, str) else "".join(source)


def _check_outputs(cells: list[Any]) -> None:
    """Raises where what a code cell holds besides its source could not be read."""
    for cell in cells:
        if cell["cell_type"] == "code":
            cell["execution_count"]  # noqa: B018
            for output in cell["outputs"]:
                nbformat.validate(nbformat.from_dict(output), "output", 4, 5)


def _compare_cells(
    path: str, committed: _Cells, built: _Cells, source: str, remedy: str
) -> Iterator[str]:
    if committed.keys() == built.keys() and list(committed) != list(built):
        yield f"{path}: the cells stand in another order than in {source}; {remedy}"
        committed = {cell_id: committed[cell_id] for cell_id in built}
    for here, there in _aligned(list(committed), list(built)):
        if here is None:
            title = f"{path}: cell {there} is missing"
        elif there is None:
            title = f"{path}: cell {here} is in no source"
        else:
            renamed = f", committed as {here}" if here != there else ""
            title = f"{path}: cell {there}{renamed}"
        given, wanted = committed.get(here or "", ""), built.get(there or "", "")
        if here != there and given == wanted:
            yield f"{title}; {remedy}"
        elif given != wanted:
            yield _diff(title, given, wanted, source)


def _aligned(committed: list[str], built: list[str]) -> Iterator[tuple[str | None, str | None]]:
    """Pairs cells by id, and between those by position: a text's new wording is a new id."""
    matcher = difflib.SequenceMatcher(a=committed, b=built, autojunk=False)
    for _, start, end, other_start, other_end in matcher.get_opcodes():
        yield from zip_longest(committed[start:end], built[other_start:other_end])


def _diff(title: str, committed: str | bytes, built: str | bytes, source: str) -> str:
    here, there = (
        (text.decode("utf-8", "replace") if isinstance(text, bytes) else text).split("\n")
        for text in (committed, built)
    )
    lines = difflib.unified_diff(here, there, "committed", f"built from {source}", lineterm="")
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _unexecuted(cells: list[Any]) -> Iterator[str]:
    """What shows that a solution has not been executed from top to bottom."""
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    for count, cell in enumerate(code, 1):
        if cell["execution_count"] is None:
            yield f"cell {cell.get('id')} has not been executed"
        elif cell["execution_count"] != count:
            yield f"cell {cell.get('id')} was executed as {cell['execution_count']}, not as {count}"
        if any(output["output_type"] == "error" for output in cell["outputs"]):
            yield f"cell {cell.get('id')} has failed"
    if not any(cell["outputs"] for cell in code):
        yield "no cell has an output"
