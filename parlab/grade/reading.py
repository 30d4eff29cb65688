"""A student's notebook read beside the lesson: which course cell is each cell, if any."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from parlab.grade.clean import Cleaned, clean
from parlab.grade.course import Course, plain_text
from parlab.grade.damaged import Cell
from parlab.grade.markers import Marker, marker_of
from parlab.grade.names import Piece, pieces

_ALIKE = 0.6  # share of a course cell's lines that make another cell an edited form of it
_LEAST_LINES = 3


@dataclass(frozen=True)
class CodeCell:
    """One cell of a student's notebook that is not empty.

    Attributes:
        index: its place among all cells of the notebook, from 0.
        cell: as parsed.
        marker: what its first lines say it is.
        cleaned: its code without magics; for prose an empty one.
        pieces: its top-level statements; empty where it is no Python.
        course_id: id of the course cell that it is or was; None for the student's own.
        pristine: whether it is that cell unchanged.
    """

    index: int
    cell: Cell
    marker: Marker | None
    cleaned: Cleaned
    pieces: tuple[Piece, ...]
    course_id: str | None
    pristine: bool

    @property
    def is_own(self) -> bool:
        """Whether the student added it: neither a course cell nor a TODO's."""
        return self.course_id is None


def read_cells(cells: Sequence[Cell], course: Course) -> list[CodeCell]:
    """The code cells of a notebook, in order."""
    lines = _lines(course)
    return [
        _read(index, cell, course, lines)
        for index, cell in enumerate(cells)
        if cell.kind == "code" and cell.source.strip()
    ]


def read_hidden(cells: Sequence[Cell], course: Course) -> list[CodeCell]:
    """Code of the course that stands in markdown or raw cells, where it does not run."""
    found = []
    for index, cell in enumerate(cells):
        if cell.kind == "code" or not cell.source.strip():
            continue
        known = course.known_cells.get(plain_text(cell.source))
        marker = marker_of(cell.source)
        course_id = known if known in _code_ids(course) else None
        if course_id is None and marker and _plausible(marker, course):
            course_id = marker.cell_id
        if course_id:
            cleaned = clean(cell.source)
            cut = pieces(cleaned.source, cleaned.tree) if cleaned.tree else []
            found.append(CodeCell(index, cell, marker, cleaned, tuple(cut), course_id, bool(known)))
    return found


def language_of_cells(cells: Iterable[Cell], course: Course) -> str:
    """The language whose course cells the notebook holds most of; Chinese where they tie."""
    texts = {plain_text(cell.source) for cell in cells}
    counts: Counter[str] = Counter()
    for language, known in _books(course):
        counts[language] = max(counts[language], len(texts & known))
    return max(course.exercise, key=lambda language: (counts[language], language == "zh"))


@lru_cache(maxsize=8)
def _books(course: Course) -> list[tuple[str, set[str]]]:
    """Language and cells of every notebook of the lesson."""
    groups = (course.exercise, course.twin, course.solution)
    return [
        (language, {plain_text(cell.source) for cell in book.cells})
        for books in groups
        for language, book in books.items()
    ]


def known_count(cells: Iterable[Cell], course: Course) -> int:
    """How many different course cells, prose too, the notebook holds unchanged."""
    texts = {plain_text(cell.source) for cell in cells}
    return len({course.known_cells[text] for text in texts if text in course.known_cells})


def _read(index: int, cell: Cell, course: Course, lines: "_Lines") -> CodeCell:
    marker = marker_of(cell.source)
    course_id, pristine = course.known_cells.get(plain_text(cell.source)), True
    if course_id is None:
        course_id, pristine = _edited_form(cell, marker, course, lines), False
    if pristine and not str(course_id).startswith("todo-"):  # restored whole: not looked into
        return CodeCell(index, cell, marker, Cleaned(cell.source, None), (), course_id, True)
    cleaned = clean(cell.source)
    cut = pieces(cleaned.source, cleaned.tree) if cleaned.tree else []
    return CodeCell(index, cell, marker, cleaned, tuple(cut), course_id, pristine)


def _edited_form(cell: Cell, marker: Marker | None, course: Course, lines: "_Lines") -> str | None:
    """By its marker, else by its id, else by its lines."""
    if marker and _plausible(marker, course):
        return marker.cell_id
    if cell.id in _code_ids(course):
        return cell.id
    return lines.most_alike(cell.source)


def _plausible(marker: Marker, course: Course) -> bool:
    """Whether the marker can be this lesson's: number and function exist here."""
    if marker.function in course.functions_elsewhere:
        return False
    ids = _code_ids(course)
    return marker.cell_id in ids


@lru_cache(maxsize=8)
def _code_ids(course: Course) -> set[str]:
    book = next(iter(course.exercise.values()))
    return {cell.id for cell in book.cells if cell.cell_type == "code"}


@lru_cache(maxsize=8)
def _lines(course: Course) -> "_Lines":
    return _Lines(course)


class _Lines:
    """Finds the course cell that shares most lines with a student's."""

    def __init__(self, course: Course) -> None:
        self._cells: dict[str, list[Counter[str]]] = {}
        self._by_line: dict[str, set[str]] = {}
        for books in (course.exercise, course.twin):
            for book in books.values():
                for cell in book.cells:
                    if cell.cell_type == "code" and not cell.id.startswith("todo-"):
                        self._add(cell.id, cell.source)

    def _add(self, cell_id: str, source: str) -> None:
        counted = _counted(source)
        if sum(counted.values()) < _LEAST_LINES:
            return
        self._cells.setdefault(cell_id, []).append(counted)
        for line in counted:
            self._by_line.setdefault(line, set()).add(cell_id)

    def most_alike(self, source: str) -> str | None:
        """The id of a cell at least ``_ALIKE`` like this one, from both sides."""
        counted = _counted(source)
        total = sum(counted.values())
        near = {cell_id for line in counted for cell_id in self._by_line.get(line, ())}
        best: tuple[float, str] = (0.0, "")
        for cell_id in sorted(near):
            for other in self._cells[cell_id]:
                shared = sum((counted & other).values())
                best = max(best, (shared / max(total, sum(other.values())), cell_id))
        return best[1] if best[0] >= _ALIKE else None


def _counted(source: str) -> Counter[str]:
    return Counter(line.strip() for line in source.split("\n") if line.strip())


def labels(course: Course, language: str) -> Mapping[str, str]:
    """Cell id → what people call it: ``CHECK 1``, or its number among the code cells and a line."""
    found = {}
    code = [cell for cell in course.exercise[language].cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        marker = marker_of(cell.source)
        if marker:
            found[cell.id] = marker.cell_id.upper().replace("-", " ")
        else:
            first = cell.source.strip().split("\n", 1)[0]
            found[cell.id] = f"[{number}] {first[:40]}"
    return found
