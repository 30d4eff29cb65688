"""Reads a notebook as it arrives: old formats, keys missing, broken in many ways; runs nothing."""

import codecs
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from parlab.grade.types import MAX_NOTEBOOK_BYTES, Note

# What one notebook may hold. A lesson has about 60 kB of code, its single-file twin 300 kB.
MAX_CODE = 1_000_000  # characters in all code cells
MAX_CELLS = 2_000
MAX_PROSE = 20_000  # characters of one markdown cell; the rest of it is not needed
_MAX_CONTAINERS = 600_000  # lists and objects in the JSON: each takes 64 bytes or more of memory
_MAX_QUOTES = 4_000_000
_LARGE_OUTPUTS = 2_000_000  # bytes beyond the sources that are worth a note


@dataclass(frozen=True)
class Cell:
    """One cell of a student's notebook.

    Attributes:
        kind: ``code``, ``markdown`` or ``raw``.
        source: its text, lines ended by newlines only.
        id: its id, or nbgrader's ``grade_id``; "" where there is none.
        tags: of its metadata.
    """

    kind: str
    source: str
    id: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Parsed:
    """What could be read of a notebook.

    Attributes:
        cells: in order.
        kernel: the kernel's name, "" where none is named.
        language: the programming language, "" where none is named.
        notes: what was unusual.
    """

    cells: tuple[Cell, ...]
    kernel: str = ""
    language: str = ""
    notes: tuple[Note, ...] = field(default=())


class NotANotebook(Exception):
    """The bytes hold no notebook; ``note`` says why."""

    def __init__(self, key: str, **values: Any) -> None:
        super().__init__(key)
        self.note: Note = (key, values)


def parse(content: bytes) -> Parsed:
    """The cells of a notebook of format 3 or 4, without outputs.

    Raises:
        NotANotebook: it is too large, empty, no JSON, or JSON without cells.
    """
    if len(content) > MAX_NOTEBOOK_BYTES:
        raise NotANotebook("too_large", mb=round(len(content) / 2**20, 1), limit=_limit_mb())
    text, notes = _text(content)
    found = _json(text)
    cells = tuple(_cell(raw) for raw in _raw_cells(found))
    if len(cells) > MAX_CELLS:
        raise NotANotebook("too_many_cells", count=len(cells), limit=MAX_CELLS)
    code = sum(len(cell.source) for cell in cells if cell.kind == "code")
    if code > MAX_CODE:
        raise NotANotebook("too_much_code", count=code, limit=MAX_CODE)
    prose = sum(len(cell.source) for cell in cells) - code
    if len(content) - code - prose > _LARGE_OUTPUTS:
        notes.append(("outputs_cleared", {"mb": round((len(content) - code) / 2**20, 1)}))
    if not isinstance(found.get("nbformat"), int) or found.get("nbformat") != 4:
        notes.append(("old_format", {"format": show_scalar(found.get("nbformat"))}))
    metadata = _mapping(found.get("metadata"))
    kernel = _name(_mapping(metadata.get("kernelspec")).get("name"))
    language = _name(_mapping(metadata.get("language_info")).get("name"))
    return Parsed(cells, kernel, language, tuple(notes))


def slim(parsed: Parsed) -> bytes:
    """The notebook without outputs and what else is not needed: the same for the same sources."""
    cells = []
    for cell in parsed.cells:
        metadata = {"tags": list(cell.tags)} if cell.tags else {}
        entry = {"cell_type": cell.kind, "id": cell.id, "metadata": metadata, "source": cell.source}
        cells.append(entry)
    notebook = {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {
            "kernelspec": {"name": parsed.kernel},
            "language_info": {"name": parsed.language},
        },
        "cells": cells,
    }
    return json.dumps(notebook, ensure_ascii=False, sort_keys=True).encode("utf-8", "replace")


def show_scalar(value: object) -> str:
    """A number or a short text for people, else the type's name."""
    if isinstance(value, int | float | str):
        return str(value)[:20]
    return "–" if value is None else type(value).__name__


def _text(content: bytes) -> tuple[str, list[Note]]:
    """The characters, and a note where they were not plain UTF-8."""
    if not content.strip(b" \t\r\n\0"):
        raise NotANotebook("empty_file")
    if content.startswith(b"PK\x03\x04"):
        raise NotANotebook("is_zip")
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if content.startswith(mark):
            return content.decode(name, "replace"), [("byte_order_mark", {"encoding": name})]
    try:
        return content.decode("utf-8"), []
    except UnicodeDecodeError:
        pass
    if content[1:2] == b"\0":
        return content.decode("utf-16-le", "replace"), [("encoding", {"encoding": "UTF-16"})]
    try:
        return content.decode("gb18030"), [("encoding", {"encoding": "GBK"})]
    except UnicodeDecodeError:
        return content.decode("utf-8", "replace"), [("encoding", {"encoding": "?"})]


def _json(text: str) -> Mapping[str, Any]:
    if text.lstrip()[:1] == "<":
        raise NotANotebook("is_html")
    if text.count("{") + text.count("[") > _MAX_CONTAINERS or text.count('"') > _MAX_QUOTES:
        raise NotANotebook("too_complex")
    try:
        found = json.loads(text, parse_int=_whole)
    except ValueError as error:
        line = getattr(error, "lineno", 0)
        if text.lstrip()[:1] not in ("{", "["):
            raise NotANotebook("not_json") from None
        raise NotANotebook("broken_json", line=line, lines=text.count("\n") + 1) from None
    except (RecursionError, MemoryError):
        raise NotANotebook("too_complex") from None
    if not isinstance(found, dict):
        raise NotANotebook("no_cells")
    return found


def _whole(digits: str) -> int:
    """A whole number of the JSON; the value of an absurdly long one does not matter."""
    return int(digits) if len(digits) < 19 else 0


def _raw_cells(found: Mapping[str, Any]) -> list[Any]:
    cells = found.get("cells")
    if isinstance(cells, list):
        return cells
    sheets = found.get("worksheets")  # format 3 and older
    if isinstance(sheets, list):
        inside = [_mapping(sheet).get("cells") for sheet in sheets]
        return [cell for cells in inside if isinstance(cells, list) for cell in cells]
    raise NotANotebook("no_cells")


def _cell(raw: Any) -> Cell:
    raw = _mapping(raw)
    kind = raw.get("cell_type")
    if kind is None:  # only code has these
        kind = "code" if "outputs" in raw or "execution_count" in raw else "markdown"
    kind = kind if kind in ("code", "raw") else "markdown"
    source = _source(raw.get("source", raw.get("input")))
    if kind != "code":
        source = source[:MAX_PROSE]
    metadata = _mapping(raw.get("metadata"))
    nbgrader = _mapping(metadata.get("nbgrader"))
    tags = metadata.get("tags")
    names = [_name(tag) for tag in tags[:50]] if isinstance(tags, list) else []
    known = _name(nbgrader.get("grade_id")) or _name(raw.get("id")) or _name(metadata.get("id"))
    return Cell(kind, source, known, tuple(name for name in names if name))


def _source(value: Any) -> str:
    if isinstance(value, list):
        value = "".join(line for line in value if isinstance(line, str))
    if not isinstance(value, str):
        return ""
    text: str = value.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.encode("utf-8", "replace").decode("utf-8")  # no lone surrogates


def _name(value: Any) -> str:
    return _source(value)[:100] if isinstance(value, str) else ""


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _limit_mb() -> float:
    return MAX_NOTEBOOK_BYTES / 2**20
