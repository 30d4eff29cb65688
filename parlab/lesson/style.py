"""One look for every figure: readable at notebook width and in greyscale."""

from collections.abc import Sequence
from typing import Any, Literal

import matplotlib.pyplot as plt
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

# Light to dark in this order, so that a greyscale print keeps them apart.
SHADES = ("#fde9b8", "#9fd0cb", "#5b8fb9", "#3a4a7b")
INK, MUTED, ACCENT, PALE = "#222222", "#6f6f6f", "#c0392b", "#eeeeee"
WIDTH_IN = 9.0
SMALL, NORMAL, LARGE = 9, 10, 11

Side = Literal["left", "right", "center"]
# Where a label stands beside its point, and how many points away.
SIDES: dict[Side, int] = {"left": 10, "right": -10, "center": 0}


def canvas(height_in: float, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure of notebook width with ``columns`` axes side by side."""
    figure, axes = plt.subplots(
        1, columns, figsize=(WIDTH_IN, height_in), squeeze=False, layout="constrained", **options
    )
    for axis in axes[0]:
        axis.tick_params(labelsize=SMALL)
        axis.spines[["top", "right"]].set_visible(False)
    return figure, list(axes[0])


def bare(axes: Axes) -> None:
    """Hide ticks and frame: for drawings that are no plots."""
    axes.set_axis_off()


def place_labels(
    axes: Axes, labels: Sequence[tuple[float, float, str]], avoid: Sequence[Artist] = ()
) -> None:
    """Write ``(x, y, text)`` beside each point where it hits no point, label or ``avoid``.

    The axes' limits must be final. A label that fits nowhere takes the first place.
    """
    figure = axes.get_figure()
    assert figure is not None
    figure.canvas.draw()
    taken = [artist.get_window_extent() for artist in avoid]
    for x, y, _ in labels:
        left, bottom = axes.transData.transform((x, y)) - 8
        taken.append(Bbox.from_bounds(left, bottom, 16, 16))
    for x, y, text in labels:
        taken.append(_place(axes, x, y, text, taken))


def _place(axes: Axes, x: float, y: float, text: str, taken: Sequence[Bbox]) -> Bbox:
    label = axes.annotate(
        text, (x, y), xytext=(0, 0), textcoords="offset points", fontsize=SMALL, color=INK,
        va="center",
    )  # fmt: skip
    inside = axes.get_window_extent()
    places: list[tuple[Side, int, int]] = [
        (side, shift, rise)
        for rise in (0, 9, -9, 16, -16, 24, -24)
        for side, shift in SIDES.items()
    ]
    for side, shift, rise in [*places, places[0]]:
        label.set_horizontalalignment(side)
        label.set_position((shift, rise))
        box = label.get_window_extent()
        fits = inside.x0 <= box.x0 and box.x1 <= inside.x1
        if fits and not any(box.overlaps(other) for other in taken):
            break
    return box
