"""A device mesh drawn with the process groups of each of its axes."""

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from parlab.lesson.style import ACCENT, INK, LARGE, MUTED, SMALL, bare, canvas

Point = tuple[float, float]


def draw_mesh(pp: int, cp: int, tp: int, highlight: int) -> None:
    """One panel an axis: ranks that share a line are one process group.

    Args:
        pp, cp, tp: sizes of the axes; ranks are numbered with tp innermost.
        highlight: the rank whose three groups are drawn in red.
    """
    _, panels = canvas(0.9 + 1.15 * pp, 3)
    places = {
        (p * cp + c) * tp + t: (t + 0.42 * c, -(1.75 * p) - 0.62 * c)
        for p in range(pp)
        for c in range(cp)
        for t in range(tp)
    }
    ranks = list(places)
    strides = {"pp": (tp * cp, pp), "cp": (tp, cp), "tp": (1, tp)}
    for panel, (axis, (stride, size)) in zip(panels, strides.items(), strict=True):
        starts = [rank for rank in ranks if rank // stride % size == 0]
        groups = [[start + stride * step for step in range(size)] for start in starts]
        _panel(panel, places, groups, highlight)
        panel.set_title(f"{axis}: {len(groups)} groups of {size}", fontsize=LARGE)
        _label_axes(panel, pp, cp, tp)
        panel.set_ylim(-1.75 * (pp - 1) - 0.62 * (cp - 1) - 0.5, 0.95)
        panel.set_xlim(-1.75, tp - 0.5 + 0.42 * (cp - 1))
    plt.show()


def _label_axes(panel: Axes, pp: int, cp: int, tp: int) -> None:
    """pp and cp left of the first rank of each row, tp above the first row."""
    for p in range(pp):
        for c in range(cp):
            panel.text(
                -0.42, -1.75 * p - 0.62 * c, f"pp={p} cp={c}" if c == 0 else f"cp={c}",
                ha="right", va="center", fontsize=SMALL, color=MUTED,
            )  # fmt: skip
    for t in range(tp):
        panel.text(t, 0.5, f"tp={t}", ha="center", fontsize=SMALL, color=MUTED)


def _panel(panel: Axes, places: dict[int, Point], groups: list[list[int]], highlight: int) -> None:
    bare(panel)
    for group in groups:
        chosen = highlight in group
        xs, ys = zip(*(places[rank] for rank in group), strict=True)
        panel.plot(
            xs, ys, linewidth=5 if chosen else 3, color=ACCENT if chosen else "#c4c4c4",
            zorder=2 if chosen else 1, solid_capstyle="round",
        )  # fmt: skip
    for rank, (x, y) in places.items():
        mine = rank == highlight
        panel.scatter(
            [x], [y], s=270, facecolor=ACCENT if mine else "white", edgecolor=INK, zorder=3
        )
        panel.text(
            x, y, str(rank), ha="center", va="center", fontsize=SMALL,
            color="white" if mine else INK, zorder=4,
        )  # fmt: skip
