"""Reads a jupytext percent file into cells that know their line numbers."""

import re
from collections.abc import Callable
from dataclasses import dataclass

import jupytext

from parlab.author.problems import Problem

# Comments stay comments: jupytext would otherwise turn `# copy the mesh` into a shell command.
_FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
_HEADER_KEYS = {
    "format_name": "percent",
    "format_version": "'1.3'",
    "jupytext_version": r"\d+(\.\d+)+",
}
_CELL_START = re.compile(r"\s*#\s*%%")
_ATTRIBUTE = r' lang="(?:zh|en)"| tags=\["[^"\\\]]+"(?:, "[^"\\\]]+")*\]'
_CELL_HEADER = re.compile(rf"# %%( \[markdown\])?((?:{_ATTRIBUTE})*)")
Report = Callable[[int, str], None]


@dataclass(frozen=True)
class Cell:
    """One cell of the source.

    Attributes:
        markdown: prose rather than code.
        language: ``"zh"``, ``"en"`` or None where the cell is shared.
        line: the line of the cell's header; the source's first line is the next one.
    """

    markdown: bool
    language: str | None
    tags: tuple[str, ...]
    source: str
    line: int

    def line_with(self, needle: str) -> int:
        """The file's line where ``needle`` first stands in this cell, else the header's line."""
        for number, text in enumerate(self.source.split("\n"), self.line + 1):
            if needle in text:
                return number
        return self.line


def read_cells(file: str, data: bytes) -> tuple[list[Cell], list[Problem]]:
    """The cells of a source and what is wrong with its form.

    Args:
        file: name used in the problems.
        data: the file's content.
    """
    problems: list[Problem] = []

    def report(line: int, message: str) -> None:
        problems.append(Problem(file, line, message))

    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        report(data[: error.start].count(b"\n") + 1, f"{error.reason}: save the file as UTF-8")
        return [], problems
    lines = _plain_lines(text, report)
    start = _check_file_header(lines, report)
    while start < len(lines) and not _CELL_START.match(lines[start]):
        if lines[start].strip():
            report(
                start + 1, f"{lines[start]!r} stands before the first cell: give it a # %% header"
            )
        start += 1
    if start == len(lines):
        report(1, "the file has no cell: start one with # %%")
        return [], problems
    return _split(lines, start, report), problems


def _plain_lines(text: str, report: Report) -> list[str]:
    if text.startswith("\ufeff"):
        report(1, "the file starts with a byte order mark: save it as UTF-8 without BOM")
        text = text[1:]
    if "\r" in text:
        line = text[: text.index("\r")].count("\n") + 1
        report(line, r"the line holds a carriage return (\r): save the file with LF line ends")
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.endswith("\n"):
        report(text.count("\n") + 1, "the last line is not ended: end the file with a newline")
        text += "\n"
    return text.split("\n")


def _check_file_header(lines: list[str], report: Report) -> int:
    """Reports a faulty YAML header; returns the index of the line after it."""
    if lines[0] != "# ---" or "# ---" not in lines[1:]:
        report(1, "the YAML header is missing: copy the # --- block from another lesson")
        return 0
    end = lines.index("# ---", 1)
    for key, form in _HEADER_KEYS.items():
        found = [i for i in range(end) if re.match(rf"#\s+{key}:", lines[i])]
        value = lines[found[0]].partition(":")[2].strip() if found else None
        if value is None or not re.fullmatch(form, value):
            wanted = form if "\\" not in form else "the version of jupytext in use"
            line = found[0] + 1 if found else 1
            report(line, f"the header's {key} is {value or 'missing'}: set it to {wanted}")
    return end + 1


def _split(lines: list[str], start: int, report: Report) -> list[Cell]:
    body = "\n".join(lines[start:])
    notebook = jupytext.reads(body, fmt=_FORMAT)
    cells: list[Cell] = []
    at = start
    sound = True
    for node in notebook.cells:
        # Lines like `# %%` inside the previous cell's strings lie before `at`.
        header = next((i for i in range(at, len(lines)) if _CELL_START.match(lines[i])), None)
        if header is None:
            break
        sound &= _check_cell_header(lines[header], header + 1, report)
        cells.append(_cell(lines[header], node.source.rstrip("\n"), header + 1))
        at = header + 1 + node.source.count("\n")
        if node.metadata.get("cell_marker"):
            report(header + 2, f"{lines[header + 1]!r}: write markdown as lines that start with #")
            sound = False
    if sound:
        _check_round_trip(notebook, lines, start, report)
    return cells


def _check_cell_header(line: str, number: int, report: Report) -> bool:
    found = _CELL_HEADER.fullmatch(line)
    attributes = re.findall(_ATTRIBUTE, found[2]) if found else []
    keys = [attribute.partition("=")[0] for attribute in attributes]
    if found and len(keys) == len(set(keys)):
        return True
    report(
        number,
        f"cell header {line!r} is malformed: write {_likely_header(line)!r} (one blank between "
        'the parts, values quoted, only lang="zh", lang="en" and tags=["a", "b"])',
    )
    return False


def _likely_header(line: str) -> str:
    cell = _cell(line, "", 0)
    language = f' lang="{cell.language}"' if cell.language else ""
    tags = " tags=[{}]".format(", ".join(f'"{tag}"' for tag in cell.tags)) if cell.tags else ""
    return f"# %%{' [markdown]' if cell.markdown else ''}{language}{tags}"


def _cell(header: str, source: str, line: int) -> Cell:
    """Reads also malformed headers, so that one slip does not make every later rule complain."""
    language = re.search(r"\blang\"?\s*[=:]\s*[\"']?(zh|en)\b", header)
    tags = re.search(r"\btags\"?\s*[=:]\s*\[([^\]]*)\]", header)
    return Cell(
        markdown="[markdown]" in header or "[md]" in header,
        language=language[1] if language else None,
        tags=tuple(re.findall(r"[\w-]+", tags[1])) if tags else (),
        source=source,
        line=line,
    )


def _check_round_trip(notebook: object, lines: list[str], start: int, report: Report) -> None:
    written = jupytext.writes(notebook, fmt=_FORMAT).split("\n")
    body = written[written.index("# ---", 1) + 1 :] if written[0] == "# ---" else written
    while body and not body[0]:
        body.pop(0)
    given = lines[start:]
    for index, (here, there) in enumerate(zip(given, body, strict=False)):
        if here != there:
            report(start + index + 1, f"jupytext would rewrite {here!r} as {there!r}: write that")
            return
