"""What tensor parallelism sends: an all-reduce on a ring, a layer's bytes, sequence parallelism."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parlab.lesson.style import ACCENT, INK, LARGE, MUTED, NORMAL, PALE, SHADES, SMALL, bare, canvas

_ON = (INK, INK, "white", "white")


def draw_ring() -> None:
    """An all-reduce over 4 ranks, step by step: which piece each rank sends to the next one.

    Played through piece by piece: after the first half every piece has been summed on one rank,
    after the second every rank has every sum.
    """
    size = 4
    known = [[{rank} for _ in range(size)] for rank in range(size)]  # who is in rank's piece
    sends: list[list[int]] = []
    while any(len(who) < size for row in known for who in row):
        step = len(sends)
        pieces = [(rank - step) % size for rank in range(size)]
        if step >= size - 1:  # the piece that is complete and that the next rank lacks
            pieces = [
                next(
                    p
                    for p in range(size)
                    if len(known[r][p]) == size > len(known[(r + 1) % size][p])
                )
                for r in range(size)
            ]
        moved = [(rank, piece, set(known[rank][piece])) for rank, piece in enumerate(pieces)]
        for rank, piece, who in moved:
            known[(rank + 1) % size][piece] |= who
        sends.append(pieces)
    _, (axes,) = canvas(2.9)
    bare(axes)
    axes.set_xlim(-1.6, len(sends) + 0.2)
    axes.set_ylim(-0.2, size + 1.2)
    for step, pieces in enumerate(sends):
        for rank, piece in enumerate(pieces):
            x, y = step + 0.04, size - 1 - rank + 0.06
            axes.add_patch(Rectangle((x, y), 0.92, 0.88, facecolor=SHADES[piece]))
            axes.text(x + 0.46, y + 0.44, f"piece {piece}", ha="center",
                      va="center", fontsize=SMALL, color=_ON[piece])  # fmt: skip
        axes.text(
            step + 0.5, size + 0.12, f"step {step + 1}", ha="center", fontsize=SMALL, color=INK
        )
    for rank in range(size):
        way = f"rank {rank} → rank {(rank + 1) % size}"
        axes.text(-0.1, size - 0.5 - rank, way, ha="right", va="center", fontsize=SMALL, color=INK)
    half = len(sends) / 2
    for x, name in ((half / 2, "reduce-scatter: add"), (1.5 * half, "all-gather: pass on")):
        axes.text(x, size + 0.65, name, ha="center", fontsize=NORMAL, color=INK)
    axes.plot([half, half], [0, size + 1.1], color=INK, linewidth=1.2)
    plt.show()


def draw_layer_traffic(rows: Sequence[Mapping[str, Any]]) -> None:
    """Bytes that a rank sends for one layer over tp, and what that does to a step.

    Args:
        rows: each with ``name`` (model), ``tp``, ``sent`` (bytes a layer and rank, forward and
            backward) and ``compute_s`` (seconds that the rank computes for it).
    """
    _, (left, right) = canvas(3.9, 2)
    names = list(dict.fromkeys(row["name"] for row in rows))
    styles = list(zip(("o", "s", "D"), SHADES[1:], strict=True))
    for name, (marker, shade) in zip(names, styles, strict=False):
        own = [row for row in rows if row["name"] == name]
        left.plot([row["tp"] for row in own], [row["sent"] / 1e6 for row in own], marker=marker,
                  color=shade, markeredgecolor=INK, label=name)  # fmt: skip
    last = [row for row in rows if row["name"] == names[-1] and row["tp"] > 1]
    for link, gigabytes, line in (("inside a machine, 450 GB/s", 450, "-"),
                                  ("between machines, 50 GB/s", 50, "--")):  # fmt: skip
        times = [row["sent"] / gigabytes / 1e9 for row in last]
        share = [100 * t / (t + row["compute_s"]) for t, row in zip(times, last, strict=True)]
        right.plot(
            [row["tp"] for row in last], share, line, marker="o", color=SHADES[3], label=link
        )
    for axes, label in (
        (left, "MB sent per rank and layer"),
        (right, "% of the time spent sending"),
    ):
        axes.set_xscale("log", base=2)
        ticks = sorted({row["tp"] for row in (rows if axes is left else last)})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.minorticks_off()
        axes.set_xlabel("tp", fontsize=NORMAL)
        axes.set_ylabel(label, fontsize=NORMAL)
        axes.set_ylim(bottom=0)
        axes.legend(fontsize=SMALL, frameon=False, loc="upper left")
        axes.set_ylim(top=axes.get_ylim()[1] * 1.35)
    left.set_title("traffic", fontsize=LARGE)
    right.set_title(names[-1], fontsize=LARGE)
    plt.show()


def draw_regions() -> None:
    """Along a block: what is cut by heads or columns, what every rank holds, and what SP cuts."""
    _, (axes,) = canvas(3.5)
    bare(axes)
    regions = (
        ("norm", 2.1, False), ("q k v, attention, wo", 4.6, True), ("+, norm", 2.5, False),
        ("gate, up, down", 3.9, True), ("+", 1.5, False),
    )  # fmt: skip
    for y, name, shares in ((4.2, "TP", False), (0.9, "TP + SP", True)):
        x, inside = 0.0, False
        axes.text(-0.3, y + 0.6, name, ha="right", va="center", fontsize=NORMAL, color=INK)
        for text, width, cut in regions:
            if x:
                _operation(axes, x - 0.5, y, inside, shares)
            style: dict[str, Any] = {"facecolor": SHADES[2]}
            if not cut:
                style = {"facecolor": SHADES[0]} if shares else {"facecolor": PALE, "hatch": "//"}
            axes.add_patch(Rectangle((x, y), width, 1.2, edgecolor="#9a9a9a", **style))
            axes.text(x + width / 2, y + 0.6, text, ha="center", va="center", fontsize=SMALL,
                      color="white" if cut else INK,
                      bbox=None if cut or shares else {"facecolor": PALE, "edgecolor": "none",
                                                       "pad": 1})  # fmt: skip
            x, inside = x + width + 1.0, cut
    for place, (shade, hatch, text) in enumerate((
        (PALE, "//", "every rank: all tokens"),
        (SHADES[0], "", "1/tp of the tokens"),
        (SHADES[2], "", "all tokens, 1/tp of the heads or columns"),
    )):  # fmt: skip
        x = 5.6 * place
        axes.add_patch(
            Rectangle((x, -1.6), 0.6, 0.6, edgecolor="#9a9a9a", facecolor=shade, hatch=hatch)
        )
        axes.text(x + 0.8, -1.3, text, va="center", fontsize=SMALL, color=INK)
    axes.set_xlim(-2.2, 18.8)
    axes.set_ylim(-1.8, 7.2)
    plt.show()


def _operation(axes: Axes, x: float, y: float, leaving: bool, shares: bool) -> None:
    """The arrow between two regions, and what is sent there forward."""
    axes.annotate("", (x + 0.5, y + 0.6), (x - 0.5, y + 0.6),
                  arrowprops={"arrowstyle": "->", "color": MUTED})  # fmt: skip
    if shares:
        text = "reduce-\nscatter" if leaving else "all-\ngather"
    else:
        text = "all-\nreduce" if leaving else "–"
    axes.text(x, y + 1.4, text, ha="center", va="bottom", fontsize=SMALL,
              color=INK if text == "–" else ACCENT)  # fmt: skip


def draw_activations(rows: Sequence[Mapping[str, Any]]) -> None:
    """Activations of one layer on one rank, without and with sequence parallelism.

    Args:
        rows: each with ``name``, ``tp_mb`` and ``sp_mb``.
    """
    _, (axes,) = canvas(3.1)
    places = range(len(rows))
    for shift, key, label, shade, hatch in (
        (-0.2, "tp_mb", "TP", SHADES[0], "//"), (0.2, "sp_mb", "TP + SP", SHADES[2], ""),
    ):  # fmt: skip
        values = [row[key] for row in rows]
        axes.bar([place + shift for place in places], values, 0.38, label=label, color=shade,
                 edgecolor=INK, hatch=hatch)  # fmt: skip
        for place, value in zip(places, values, strict=True):
            axes.text(place + shift, value, f"{value:.0f}", ha="center", va="bottom",
                      fontsize=SMALL, color=INK)  # fmt: skip
    axes.set_xticks(list(places), [row["name"] for row in rows])
    axes.set_ylabel("MB per layer and rank", fontsize=NORMAL)
    axes.legend(fontsize=SMALL, frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    plt.show()
