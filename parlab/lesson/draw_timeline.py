"""Timelines of a pipeline: one row a rank, a box for every chunk of work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parlab.lesson.pipeline_charts import Op, Orders, Spans
from parlab.lesson.style import ACCENT, INK, LARGE, NORMAL, SHADES, SMALL, WIDTH_IN

LOOK = {
    "F": ("forward", SHADES[0], INK),
    "B": ("backward", SHADES[2], "white"),
    "W": ("weight gradient", SHADES[1], INK),
}
HEIGHT, NARROWEST_IN = 0.84, 0.11


@dataclass(frozen=True)
class Timeline:
    """What one panel shows.

    Attributes:
        orders: each rank's chunks ``(kind, stage, microbatch)``.
        spans: when each of them begins and ends.
        arrows: from the end of one chunk to the beginning of another.
    """

    title: str
    orders: Orders
    spans: Spans
    arrows: Sequence[tuple[Op, Op]] = field(default=())


def draw_timelines(*timelines: Timeline, unit: str = "time") -> None:
    """One panel a timeline, all on the same scale; what is hatched is the bubble.

    A chunk carries its microbatch's number; on ranks with two stages, the second stage's chunks
    have a thick frame.

    Args:
        unit: what the time axis says.
    """
    ranks = max(len(timeline.orders) for timeline in timelines)
    height = len(timelines) * (0.62 + 0.31 * ranks) + 0.75
    figure, grid = plt.subplots(
        len(timelines), 1, figsize=(WIDTH_IN, height), squeeze=False, layout="constrained"
    )
    end = max(stop for timeline in timelines for row in timeline.spans for _, stop in row)
    for axes, timeline in zip(grid[:, 0], timelines, strict=True):
        _panel(axes, timeline, end)
    grid[-1, 0].set_xlabel(unit, fontsize=NORMAL)
    kinds = {op[0] for timeline in timelines for order in timeline.orders for op in order}
    handles = [
        Rectangle((0, 0), 1, 1, facecolor=shade, edgecolor=INK, label=label)
        for kind, (label, shade, _) in LOOK.items()
        if kind in kinds
    ]
    handles.append(_idle(0, 0, 1, "idle (bubble)"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=len(handles), fontsize=SMALL,
        frameon=False,
    )  # fmt: skip
    plt.show()


def _idle(left: float, bottom: float, width: float, label: str = "") -> Rectangle:
    return Rectangle(
        (left, bottom), width, HEIGHT, facecolor="white", edgecolor="#b5b5b5", hatch="....",
        linewidth=0, label=label,
    )  # fmt: skip


def _panel(axes: Axes, timeline: Timeline, end: float) -> None:
    count = len(timeline.orders)
    own_end = max(stop for row in timeline.spans for _, stop in row)
    inches = WIDTH_IN * 0.9 / end
    for rank, (order, row) in enumerate(zip(timeline.orders, timeline.spans, strict=True)):
        bottom = count - 1 - rank + (1 - HEIGHT) / 2
        axes.add_patch(_idle(0, bottom, own_end))
        for op, (start, stop) in zip(order, row, strict=True):
            _chunk(axes, op, count, (start, stop), bottom, (stop - start) * inches)
    _arrows(axes, timeline)
    axes.set_title(timeline.title, fontsize=LARGE, loc="left")
    axes.set_xlim(0, end)
    axes.set_ylim(0, count)
    axes.set_yticks(
        [count - 0.5 - rank for rank in range(count)], [f"rank {r}" for r in range(count)]
    )
    axes.tick_params(labelsize=SMALL, length=0)
    axes.spines[["top", "right", "left", "bottom"]].set_visible(False)


def _chunk(
    axes: Axes, op: Op, ranks: int, span: tuple[float, float], bottom: float, inches: float
) -> None:
    _, shade, ink = LOOK[op[0]]
    second = op[1] >= ranks
    axes.add_patch(
        Rectangle(
            (span[0], bottom),
            span[1] - span[0],
            HEIGHT,
            facecolor=shade,
            edgecolor=INK,
            linewidth=1.8 if second else 0.6,
        )  # fmt: skip
    )
    if inches >= NARROWEST_IN:
        axes.text(
            sum(span) / 2, bottom + HEIGHT / 2, str(op[2]), ha="center", va="center",
            fontsize=SMALL, color=ink, fontweight="bold" if second else "normal",
        )  # fmt: skip


def _arrows(axes: Axes, timeline: Timeline) -> None:
    place = {
        op: (rank, span)
        for rank, (order, row) in enumerate(zip(timeline.orders, timeline.spans, strict=True))
        for op, span in zip(order, row, strict=True)
    }
    for one, other in timeline.arrows:
        (here, (_, leaves)), (there, (arrives, _)) = place[one], place[other]
        level = [len(timeline.orders) - 0.5 - rank for rank in (here, there)]
        step = 0.3 if here < there else -0.3
        axes.annotate(
            "", (arrives, level[1] + step), (leaves, level[0] - step),
            arrowprops={"arrowstyle": "->", "color": ACCENT, "linewidth": 1.4},
        )  # fmt: skip


def uniform(kinds: Mapping[str, float], stages: int) -> dict[str, list[float]]:
    """The same times for every stage: ``{"F": 1}`` → ``{"F": [1, 1, …]}``."""
    return {kind: [time] * stages for kind, time in kinds.items()}
