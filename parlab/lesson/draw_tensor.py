"""How tensor parallelism cuts: one product, two products in a row, a block's matrices by head."""

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parlab.lesson.style import INK, LARGE, MUTED, NORMAL, PALE, SHADES, SMALL, bare, canvas

RANKS = 4
# Readable on light and on dark shades.
_ON = (INK, INK, "white", "white")


def draw_products() -> None:
    """Y = X · A with A cut by columns and by rows over 4 ranks: who holds what of X, A and Y."""
    _, panels = canvas(3.5, 2)
    for panel, title in zip(panels, ("column parallel", "row parallel"), strict=True):
        bare(panel)
        panel.set_title(title, fontsize=LARGE, color=INK)
        panel.set_xlim(-0.8, 20.8)
        panel.set_ylim(-2.6, 6.6)
    left, right = panels
    _matrix(left, 0, 1, 5, 2.6, "", "X", "every rank: all")
    _matrix(left, 7, 0, 5, 5, "columns", "A", "rank r: columns")
    _matrix(left, 14.5, 1, 5, 2.6, "columns", "Y", "rank r: columns")
    _matrix(right, 0, 1, 5, 2.6, "columns", "X", "rank r: columns")
    _matrix(right, 7, 0, 5, 5, "rows", "A", "rank r: rows")
    _summands(right, 14.3, 2.4, 5, 2.6)
    for panel in panels:
        panel.text(6, 2.4, "·", ha="center", va="center", fontsize=18, color=INK)
        panel.text(13.4, 2.4, "=", ha="center", va="center", fontsize=14, color=INK)
    plt.show()


def _matrix(
    panel: Axes, x: float, y: float, width: float, height: float, cut: str, name: str, says: str
) -> None:
    for rank in range(RANKS if cut else 1):
        if cut == "columns":
            _tile(panel, x + rank * width / RANKS, y, width / RANKS, height, rank)
        elif cut == "rows":
            _tile(panel, x, y + (RANKS - 1 - rank) * height / RANKS, width, height / RANKS, rank)
        else:
            _everywhere(panel, x, y, width, height)
    _letter(panel, x + width / 2, 5.5, name)
    panel.text(x + width / 2, -0.8, says, ha="center", va="top", fontsize=SMALL, color=INK)


def _summands(panel: Axes, x: float, y: float, width: float, height: float) -> None:
    """One sheet a rank, each as large as Y, one upon the other."""
    for rank in range(RANKS):
        left, low = x + 0.5 * rank, y - 0.8 * rank
        sheet = Rectangle((left, low), width, height, facecolor=SHADES[rank], edgecolor="white")
        panel.add_patch(sheet)
        panel.text(left + 0.5, low + height - 0.4, str(rank) if rank == 0 else f"+ {rank}",
                   ha="left", va="center", fontsize=SMALL, color=_ON[rank])  # fmt: skip
    middle = x + 0.25 * (RANKS - 1) + width / 2
    _letter(panel, middle, 5.5, "Y")
    says = "rank r: a summand"
    panel.text(middle, -0.8, says, ha="center", va="top", fontsize=SMALL, color=INK)


def _letter(panel: Axes, x: float, y: float, name: str) -> None:
    panel.text(x, y, name, ha="center", va="center", fontsize=NORMAL, color=INK, weight="bold")


def _tile(panel: Axes, x: float, y: float, width: float, height: float, rank: int) -> None:
    panel.add_patch(Rectangle((x, y), width, height, facecolor=SHADES[rank], edgecolor="white"))
    panel.text(x + width / 2, y + height / 2, str(rank), ha="center", va="center", fontsize=SMALL,
               color=_ON[rank])  # fmt: skip


def _everywhere(panel: Axes, x: float, y: float, width: float, height: float) -> None:
    panel.add_patch(
        Rectangle((x, y), width, height, facecolor=PALE, edgecolor="#c4c4c4", hatch="//",
                  linewidth=0.6)
    )  # fmt: skip


def draw_chain() -> None:
    """Column then row on 2 ranks: where f and g stand, and what each does forward and backward."""
    _, (axes,) = canvas(3.6)
    bare(axes)
    axes.set_xlim(0, 20)
    axes.set_ylim(-0.9, 7.2)
    _box(axes, 0.2, 3, 1.6, 1.4, "X", "white")
    for rank, y in ((0, 4.9), (1, 1.1)):
        shade, ink = SHADES[2 * rank], _ON[2 * rank]
        _box(axes, 5.4, y, 2.6, 1.4, f"· A{'₀₁'[rank]}", shade, ink)
        _box(axes, 9.0, y, 2.0, 1.4, "GeLU", shade, ink)
        _box(axes, 12.0, y, 2.6, 1.4, f"· B{'₀₁'[rank]}", shade, ink)
        for start, end in ((8.0, 9.0), (11.0, 12.0)):
            _arrow(axes, (start, y + 0.7), (end, y + 0.7))
        _arrow(axes, (4.2, 3.7), (5.4, y + 0.7))
        _arrow(axes, (14.6, y + 0.7), (15.7, 3.7))
        axes.text(10, y + 1.75, f"rank {rank}", ha="center", va="center", fontsize=SMALL, color=INK)
    _box(axes, 2.9, 3, 1.3, 1.4, "f", "white")
    _box(axes, 15.7, 3, 1.3, 1.4, "g", "white")
    _box(axes, 18.2, 3, 1.6, 1.4, "Z", "white")
    _arrow(axes, (1.8, 3.7), (2.9, 3.7))
    _arrow(axes, (17.0, 3.7), (18.2, 3.7))
    for x, forward, backward in ((3.55, "X, unchanged", "all-reduce"),
                                 (16.35, "all-reduce", "gradient, unchanged")):  # fmt: skip
        axes.text(x, 0.6, f"forward: {forward}", ha="center", va="top", fontsize=SMALL, color=INK)
        axes.text(
            x, -0.1, f"backward: {backward}", ha="center", va="top", fontsize=SMALL, color=INK
        )
        axes.plot([x, x], [0.8, 2.9], color=MUTED, linestyle=":", linewidth=1)
    plt.show()


def _box(
    axes: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    text: str,
    shade: str,
    ink: str = INK,
) -> None:
    axes.add_patch(Rectangle((x, y), width, height, facecolor=shade, edgecolor=INK))
    axes.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=LARGE,
              color=ink)  # fmt: skip


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": MUTED, "lw": 1.2})


def draw_owners(heads: int, kv_heads: int, tp: int) -> None:
    """A block's seven matrices as [in, out], coloured by the rank that owns a part.

    Columns of wq, wk and wv and rows of wo are heads, in order.
    """
    _, (axes,) = canvas(4.8)
    bare(axes)
    axes.set_xlim(-0.5, 34)
    axes.set_ylim(-0.4, 20.4)
    q, kv, ffn, hidden = 8.0, 8.0 * kv_heads / heads, 10.0, 6.0
    x = 0.0
    for name, width, parts, letter in (
        ("wq", q, heads, "Q"), ("wk", kv, kv_heads, "K"), ("wv", kv, kv_heads, "V"),
    ):  # fmt: skip
        _strip(axes, x, 11, width, hidden, parts, tp, letter)
        _named(axes, x + width / 2, 17.2, name, "hidden × heads")
        x += width + 2.2
    _strip(axes, 27, 10.2, hidden, 7.6, heads, tp, "Q", rows=True)
    _named(axes, 30, 18, "wo", "heads × hidden")
    for name, x in (("w_gate", 0), ("w_up", 12.2)):
        _strip(axes, x, 0.6, ffn, hidden, tp, tp, "")
        _named(axes, x + ffn / 2, 6.8, name, "hidden × ffn")
    _strip(axes, 27, 0, hidden, 7, tp, tp, "", rows=True)
    _named(axes, 30, 7.2, "w_down", "ffn × hidden")
    plt.show()


def _strip(
    axes: Axes, x: float, y: float, width: float, height: float, parts: int, tp: int, letter: str,
    rows: bool = False,
) -> None:  # fmt: skip
    """A matrix in equal parts along one dim, dealt out to the ranks one run after another."""
    owners = [rank for rank, run in enumerate(torch.arange(parts).tensor_split(tp)) for _ in run]
    for part, rank in enumerate(owners):
        if rows:
            place = (x, y + height - (part + 1) * height / parts, width, height / parts)
        else:
            place = (x + part * width / parts, y, width / parts, height)
        axes.add_patch(
            Rectangle(place[:2], *place[2:], facecolor=SHADES[rank], edgecolor="white", linewidth=1)
        )
        axes.text(place[0] + place[2] / 2, place[1] + place[3] / 2,
                  f"{letter}{part}" if letter else f"{rank}", ha="center", va="center",
                  fontsize=SMALL, color=_ON[rank])  # fmt: skip


def _named(axes: Axes, x: float, y: float, name: str, sizes: str) -> None:
    axes.text(x, y, f"{name}\n{sizes}", ha="center", va="bottom", fontsize=SMALL, color=INK)
