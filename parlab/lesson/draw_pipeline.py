"""What a pipeline stage is, what it costs, how long it waits and how much it keeps."""

from collections.abc import Sequence
from itertools import accumulate

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from parlab.lesson.style import (
    ACCENT,
    INK,
    LARGE,
    MUTED,
    NORMAL,
    SHADES,
    SMALL,
    bare,
    canvas,
)


def draw_stage_chain() -> None:
    """Eight layers with embedding and LM head on four ranks: what goes to and fro between them."""
    _, (axes,) = canvas(2.2)
    bare(axes)
    names = ["embed", "L0", "L1", "L2", "L3", "L4", "L5", "L6", "L7", "head"]
    held = [names[:3], names[3:5], names[5:7], names[7:]]
    left = 0.0
    for rank, layers in enumerate(held):
        width = len(layers) * 1.0 + 0.3
        axes.add_patch(Rectangle((left, 0), width, 1.5, facecolor="#f4f4f4", edgecolor=INK))
        for place, name in enumerate(layers):
            x = left + 0.2 + place
            axes.add_patch(
                Rectangle((x, 0.25), 0.9, 0.7, facecolor=SHADES[rank], edgecolor=INK, linewidth=0.6)
            )
            axes.text(
                x + 0.45, 0.6, name, ha="center", va="center", fontsize=SMALL,
                color="white" if rank > 1 else INK,
            )  # fmt: skip
        axes.text(
            left + width / 2, 1.22, f"rank {rank} = stage {rank}", ha="center", va="center",
            fontsize=NORMAL,
        )  # fmt: skip
        if rank:
            _between(axes, left)
        left += width + 1.0
    axes.text(left / 2 - 0.5, 1.75, "forward: activations", ha="center", fontsize=NORMAL, color=INK)
    axes.text(left / 2 - 0.5, -0.5, "backward: gradients", ha="center", fontsize=NORMAL, color=INK)
    axes.set_xlim(-0.1, left - 0.9)
    axes.set_ylim(-0.65, 2.1)
    plt.show()


def _between(axes: Axes, right: float) -> None:
    for y, start, end, shade in (
        (1.05, right - 0.95, right - 0.05, INK),
        (0.45, right - 0.05, right - 0.95, ACCENT),
    ):
        axes.annotate(
            "", (end, y), (start, y),
            arrowprops={"arrowstyle": "-|>", "color": shade, "linewidth": 1.6},
        )  # fmt: skip


def draw_splits(costs: Sequence[float], *splits: tuple[str, Sequence[int]]) -> None:
    """One panel a split: the cost of each stage, layer by layer, and the slowest stage's line.

    Args:
        costs: of each layer, the embedding first and the LM head last; both are hatched.
        splits: title, and how many layers each stage holds.
    """
    _, panels = canvas(3.3, len(splits), sharey=True)
    for panel, (title, sizes) in zip(panels, splits, strict=True):
        slowest = 0.0
        for stage, (size, end) in enumerate(zip(sizes, accumulate(sizes), strict=True)):
            bottom = 0.0
            for layer in range(end - size, end):
                odd = layer in (0, len(costs) - 1)
                panel.bar(
                    stage, costs[layer], bottom=bottom, width=0.76, edgecolor=INK, linewidth=0.5,
                    color=SHADES[0] if odd else SHADES[2], hatch="///" if odd else "",
                )  # fmt: skip
                bottom += costs[layer]
            slowest = max(slowest, bottom)
        panel.axhline(slowest, color=ACCENT, linestyle="--", linewidth=1.2)
        panel.text(
            len(sizes) / 2 - 0.5, slowest * 1.03, f"slowest stage: {slowest:g}", fontsize=SMALL,
            color=ACCENT, ha="center", va="bottom",
        )  # fmt: skip
        panel.set_title(title, fontsize=LARGE, loc="left")
        panel.set_xticks(range(len(sizes)))
        panel.set_xlabel("stage", fontsize=NORMAL)
    panels[0].set_ylabel("cost, MFLOP a token", fontsize=NORMAL)
    top = max(panel.get_ylim()[1] for panel in panels)
    panels[0].set_ylim(0, top * 1.12)
    plt.show()


def draw_bubble(
    microbatches: Sequence[int],
    curves: Sequence[tuple[int, Sequence[float]]],
    points: Sequence[tuple[int, float]] = (),
) -> None:
    """The bubble ratio over the number of microbatches, a curve for each number of stages.

    Args:
        curves: stages, and a ratio for each of ``microbatches``.
        points: simulated ones, ``(microbatches, ratio)``.
    """
    _, (axes,) = canvas(3.4)
    for place, (stages, ratios) in enumerate(curves):
        style = ("-", "--", "-.", ":")[place % 4]
        axes.plot(microbatches, ratios, style, color=SHADES[3], linewidth=1.6)
        axes.annotate(
            f"p = {stages}", (microbatches[-1], ratios[-1]), xytext=(6, 0),
            textcoords="offset points", va="center", fontsize=SMALL, color=INK,
        )  # fmt: skip
    if points:
        across, up = zip(*points, strict=True)
        axes.scatter(across, up, color=ACCENT, s=34, zorder=3, label="simulated")
        axes.legend(loc="upper right", fontsize=SMALL, frameon=False)
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(microbatches), [str(m) for m in microbatches])
    axes.minorticks_off()
    axes.set_ylim(0, 1)
    axes.set_xlim(microbatches[0] * 0.93, microbatches[-1] * 1.35)
    axes.set_xlabel("microbatches m", fontsize=NORMAL)
    axes.set_ylabel("bubble ratio", fontsize=NORMAL)
    plt.show()


def draw_in_flight(title: str, *schedules: tuple[str, Sequence[int]]) -> None:
    """How many microbatches' activations each stage keeps at most, a bar a schedule.

    Args:
        schedules: name, and the peak on each stage.
    """
    _, (axes,) = canvas(2.9)
    width = 0.8 / len(schedules)
    for place, (name, peaks) in enumerate(schedules):
        shade, hatch = ((SHADES[0], "///"), (SHADES[2], ""), (SHADES[3], "..."))[place]
        left = [stage - 0.4 + (place + 0.5) * width for stage in range(len(peaks))]
        axes.bar(left, peaks, width * 0.92, label=name, color=shade, edgecolor=INK, hatch=hatch)
        for x, peak in zip(left, peaks, strict=True):
            axes.text(x, peak, str(peak), ha="center", va="bottom", fontsize=SMALL, color=INK)
    axes.set_title(title, fontsize=NORMAL, loc="left")
    axes.set_xticks(range(len(schedules[0][1])))
    axes.set_xlabel("stage", fontsize=NORMAL)
    axes.set_ylabel("microbatches kept", fontsize=NORMAL)
    axes.set_ylim(0, max(max(peaks) for _, peaks in schedules) * 1.15)
    axes.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize=SMALL, frameon=False)
    axes.tick_params(axis="x", length=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.axhline(0, color=MUTED, linewidth=0.8)
    plt.show()
