"""A class's rows: results with points, and with what people corrected by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from parlab.grade.corrections import TOTAL, Correction
from parlab.grade.decide import points_of
from parlab.grade.graded import Graded

NOT_HANDED_IN = "no_submission"


@dataclass(frozen=True)
class Row:
    """One student's line.

    Attributes:
        graded: the result.
        computed: points per TODO as graded; None where the grader failed or nothing came.
        points: the same after corrections.
        total: their sum, or the corrected total; None where a part is unknown.
        corrections: what was corrected.
    """

    graded: Graded
    computed: tuple[float | None, ...]
    points: tuple[float | None, ...]
    total: float | None
    corrections: tuple[Correction, ...] = ()

    @property
    def status(self) -> str:
        """One of `types.STATUSES`, or `NOT_HANDED_IN`."""
        return self.graded.status


def make_rows(
    results: Iterable[Graded],
    points: Mapping[int, float],
    corrections: Mapping[str, Sequence[Correction]],
) -> list[Row]:
    """One row a result, in the same order.

    Args:
        points: TODO number → its points.
        corrections: student key → corrections.
    """
    return [_row(graded, points, corrections.get(graded.student, ())) for graded in results]


def _row(graded: Graded, points: Mapping[int, float], corrections: Sequence[Correction]) -> Row:
    computed = points_of([todo.share for todo in graded.todos], points)
    by_item = {correction.item: correction.points for correction in corrections}
    final = [
        by_item.get(str(todo.todo), value)
        for todo, value in zip(graded.todos, computed, strict=True)
    ]
    known = [value for value in final if value is not None]
    total = round(sum(known), 2) if len(known) == len(final) else None
    return Row(
        graded=graded,
        computed=tuple(computed),
        points=tuple(final),
        total=by_item.get(TOTAL, total),
        corrections=tuple(corrections),
    )


def number(value: float | None) -> str:
    """Points as people write them: no needless zeros; empty for None."""
    return "" if value is None else f"{value:.2f}".rstrip("0").rstrip(".")
