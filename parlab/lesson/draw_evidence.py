"""Where a rank's step goes, whose clock tells the time, and what a measurement is worth."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from parlab.lesson.agreement import BOUND
from parlab.lesson.draw_records import PARTS, evidence
from parlab.lesson.style import ACCENT, INK, LARGE, MUTED, NORMAL, PALE, SHADES, SMALL, canvas

Event = Mapping[str, Any]
Record = Mapping[str, Any]
Span = tuple[float, float]


def draw_rank_step(
    events: Sequence[Event], step: Span, parts: Mapping[str, Sequence[Span]], title: str
) -> None:
    """Three lanes: chunks, communication with posts and blocked time, and the four parts.

    Args:
        events: of one rank, ms; see `parlab.lesson.trace_cases`.
        parts: the step's parts, in words of the reader's own: nothing is computed here.
        title: what the picture is, its evidence level included.
    """
    figure, (axes,) = canvas(3.8)
    for event in events:
        if event["kind"] == "compute":
            _box(axes, 2, event["start"], event["end"], SHADES[2], "", event.get("name", ""))
        else:
            _communication(axes, event)
    for part, (shade, hatch, label) in PARTS.items():
        for start, end in parts[part]:
            _box(axes, 0, start, end, shade, hatch, "")
        axes.barh([0], [0], color=shade, edgecolor=INK, hatch=hatch, label=label)
    axes.barh([0], [0], color=ACCENT, alpha=0.5, label="blocked")
    axes.plot([], [], color=INK, linewidth=1.2, label="in flight")
    axes.plot([], [], color=ACCENT, marker="v", linestyle="none", label="peer posts")
    lanes = ["parts", "communication", "chunks"]
    axes.set_yticks([0, 1, 2], lanes, fontsize=NORMAL)
    axes.set_ylim(-0.55, 2.55)
    axes.set_xlim(step[0] - 0.4, step[1] + 0.4)
    axes.set_xlabel("ms", fontsize=NORMAL)
    figure.legend(loc="outside lower center", ncols=4, fontsize=SMALL, frameon=False)
    axes.set_title(title, fontsize=NORMAL)
    plt.show()


def _box(
    axes: Axes, lane: float, start: float, end: float, shade: str, hatch: str, text: str
) -> None:
    axes.broken_barh(
        [(start, end - start)], (lane - 0.3, 0.6), facecolor=shade, edgecolor=INK, hatch=hatch,
        linewidth=0.7,
    )  # fmt: skip
    if text:
        axes.text((start + end) / 2, lane, text, ha="center", va="center", fontsize=SMALL,
                  color="white")  # fmt: skip


def _communication(axes: Axes, event: Event) -> None:
    axes.plot([event["start"], event["end"]], [1.24, 1.24], color=INK, linewidth=1.2,
              marker="|", markersize=7)  # fmt: skip
    for start, end in event["blocked"]:
        axes.broken_barh([(start, end - start)], (0.72, 0.4), facecolor=ACCENT, alpha=0.5)
    if "peer_start" in event:
        axes.plot([event["peer_start"]], [1.36], color=ACCENT, marker="v", linestyle="none")
    axes.text(event["start"] + 0.1, 1.46, event.get("operation", ""), fontsize=SMALL, color=INK)


def draw_clocks(own: Sequence[Span], shared: Sequence[Span], title: str) -> None:
    """The ranks' windows as their own clocks tell them, and the same on one clock.

    Args:
        own: start and end of each rank's step, ms, on its own clock.
        shared: the same moments on the first rank's clock.
        title: what the picture is, its evidence level included.
    """
    figure, panels = canvas(2.9, 2)
    for panel, windows, name in (
        (panels[0], own, "each rank's own clock"),
        (panels[1], shared, "one clock"),
    ):
        for rank, (start, end) in enumerate(windows):
            panel.barh(rank, end - start, left=start, color=SHADES[2], edgecolor=INK, height=0.6)
        panel.set_yticks(range(len(windows)), [f"rank {n}" for n in range(len(windows))],
                         fontsize=SMALL)  # fmt: skip
        panel.invert_yaxis()
        panel.use_sticky_edges = False
        panel.margins(x=0.06)
        panel.set_xlabel("ms", fontsize=NORMAL)
        panel.set_title(name, fontsize=LARGE)
    for moment in (min(start for start, _ in shared), max(end for _, end in shared)):
        panels[1].axvline(moment, color=ACCENT, linestyle="--", linewidth=1.2)
    figure.suptitle(title, fontsize=NORMAL)
    plt.show()


def draw_worth(records: Sequence[Record]) -> None:
    """Correctness and scaling efficiency, a bar a group; what was not measured says why.

    The efficiency is pale where ranks outnumber cores: it is no evidence of speed.
    """
    groups = [record for record in records if record["name"] != "baseline"]
    figure, (right, fast) = canvas(1.6 + 0.42 * len(groups), 2, sharey=True)
    for place, record in enumerate(groups):
        _error(right, place, record)
        _efficiency(fast, place, record)
    right.axvline(BOUND, color=ACCENT, linestyle="--", linewidth=1.2)
    right.set_xscale("log")
    right.set_xlim(1e-8, 1e-2)
    right.set_xlabel(f"largest gradient error, bound {BOUND:g}", fontsize=NORMAL)
    fast.axvline(1.0, color=MUTED, linestyle=":", linewidth=1.2)
    highest = max([record["metrics"]["scaling_efficiency"] or 0 for record in groups], default=0)
    fast.set_xlim(0, max(1.2, highest * 1.3))
    crowded = any(record["oversubscribed"] for record in groups)
    note = ", no evidence of speed" if crowded else ""
    fast.set_xlabel(f"scaling efficiency{note}", fontsize=NORMAL)
    right.set_yticks(range(len(groups)), [record["name"] for record in groups], fontsize=SMALL)
    right.invert_yaxis()
    figure.suptitle(
        f"correctness and scaling efficiency | evidence level {evidence(records)}", fontsize=NORMAL
    )
    plt.show()


def _error(axes: Axes, place: int, record: Record) -> None:
    found = record["metrics"]["correctness"]
    if found is None:
        _say(axes, 1.2e-8, place, "not measured")
        return
    error = found["largest_gradient_error"]
    axes.barh(place, max(error, 1.3e-8), color=SHADES[1], edgecolor=INK, height=0.6)
    _say(axes, max(error, 1.3e-8), place, f"{error:.1e}" if error else "0 (bit for bit)")


def _efficiency(axes: Axes, place: int, record: Record) -> None:
    value = record["metrics"]["scaling_efficiency"]
    if value is None:
        _say(axes, 0, place, "not measured")
        return
    shade = PALE if record["oversubscribed"] else SHADES[2]
    axes.barh(place, value, color=shade, edgecolor=INK, height=0.6)
    _say(axes, value, place, f"{value:.2f}")


def _say(axes: Axes, x: float, y: float, text: str) -> None:
    axes.annotate(text, (x, y), xytext=(4, 0), textcoords="offset points", va="center",
                  fontsize=SMALL, color=INK,
                  bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8})  # fmt: skip
