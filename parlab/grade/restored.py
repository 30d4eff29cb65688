"""What happened to the course's own cells: edited, deleted, doubled, moved, turned into prose.

Every one of them is restored, because the rebuilt notebook starts from the pristine exercise; here
it is only noted, so that nothing is overwritten in silence.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from parlab.grade.course import Course
from parlab.grade.damaged import Parsed
from parlab.grade.reading import CodeCell, labels
from parlab.grade.types import Note

_SHOWN = 6
_KERNELS = ("", "python3", "python", "ipykernel")
_TAGS = ("raises-exception", "skip-execution")


def restored_notes(
    cells: Sequence[CodeCell], hidden: Sequence[CodeCell], course: Course, language: str
) -> list[Note]:
    """One note for each kind of change to course cells, naming them."""
    names = labels(course, language)
    order = [cell_id for cell_id in names]
    seen = [cell.course_id for cell in cells if cell.course_id in names]
    counts = Counter(seen)
    pristine = {cell.course_id for cell in cells if cell.pristine}
    prose = {cell.course_id for cell in hidden} - set(seen)
    changed = {
        "cells_edited": [i for i in order if i in counts and i not in pristine],
        "cells_deleted": [i for i in order if i not in counts and i not in prose],
        "cells_doubled": [i for i in order if counts[i] > 1],
        "cells_moved": _moved([order.index(i) for i in dict.fromkeys(seen) if i], order),
        "cells_prose": [i for i in order if i in prose],
    }
    notes: list[Note] = []
    for key, ids in changed.items():
        # An answered TODO is meant to differ, and what counts of it is said by the answer's notes.
        ids = [i for i in ids if not i.startswith("todo-") and i != "extra"]
        if ids:
            values = {"cells": [names[i] for i in ids[:_SHOWN]], "count": len(ids)}
            notes.append((key, values))
    return notes


def dropped_notes(parsed: Parsed, cells: Sequence[CodeCell]) -> list[Note]:
    """What was dropped from the cells, and what of the notebook's metadata was replaced."""
    notes: list[Note] = []
    lines = [line for cell in cells for key, v in cell.cleaned.notes if key == "magics"
             for line in v["lines"]]  # fmt: skip
    count = sum(v["count"] for cell in cells for key, v in cell.cleaned.notes if key == "magics")
    if count:
        notes.append(("magics", {"lines": lines[:5], "count": count}))
    tags = sorted({
        tag for cell in parsed.cells for tag in cell.tags
        if tag in _TAGS or tag.startswith("nbval-")
    })  # fmt: skip
    comments = sum(
        v["count"] for cell in cells for key, v in cell.cleaned.notes if key == "nbval_markers"
    )
    if tags or comments:
        notes.append(("nbval_markers", {"tags": tags, "count": comments}))
    for cell in cells:
        for key, values in cell.cleaned.notes:
            if key == "cell_too_long":
                notes.append((key, {**values, "cell": cell.index + 1}))
    if parsed.kernel not in _KERNELS:
        notes.append(("kernel_replaced", {"kernel": parsed.kernel}))
    if parsed.language not in ("", "python"):
        notes.append(("not_python", {"language": parsed.language}))
    return notes


def _moved(positions: Sequence[int], order: Sequence[str]) -> list[str]:
    """The ids outside a longest run of cells that kept their order."""
    tails: list[int] = []
    best: list[int] = []
    for position in positions:
        at = bisect_left(tails, position)
        tails[at : at + 1] = [position]
        best.append(at)
    keep: set[int] = set()
    wanted = len(tails) - 1
    for position, length in zip(reversed(positions), reversed(best), strict=True):
        if length == wanted and (not keep or position < min(keep)):
            keep.add(position)
            wanted -= 1
    return [order[i] for i in sorted(set(positions) - keep)]
