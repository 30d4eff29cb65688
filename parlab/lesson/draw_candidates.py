"""Candidates of one workload: where a step's time goes, and which pass the gates."""

from collections.abc import Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from parlab.lesson.style import ACCENT, INK, NORMAL, SHADES, SMALL, canvas, place_labels

GATE_LETTERS = {"runtime": "R", "memory": "M", "bubble": "B", "communication": "C"}
Candidate = dict[str, Any]


def draw_steps(candidates: Sequence[Candidate]) -> None:
    """One bar a candidate: compute, exposed communication and idle time, in ms a step.

    Args:
        candidates: each with ``name``, ``step_ms``, ``bubble_ratio``, ``communication_ratio``.
    """
    _, (axes,) = canvas(0.9 + 0.33 * len(candidates))
    names = [item["name"] for item in candidates]
    steps = [item["step_ms"] for item in candidates]
    exposed = [item["step_ms"] * item["communication_ratio"] for item in candidates]
    idle = [item["step_ms"] * item["bubble_ratio"] for item in candidates]
    compute = [step - a - b for step, a, b in zip(steps, exposed, idle, strict=True)]
    left = [0.0] * len(names)
    for values, label, shade, hatch in (
        (compute, "compute", SHADES[2], ""),
        (exposed, "exposed communication", SHADES[0], "///"),
        (idle, "idle (bubble)", "white", ".."),
    ):
        axes.barh(
            names, values, left=left, label=label, color=shade, edgecolor=INK, hatch=hatch,
            height=0.72,
        )  # fmt: skip
        left = [a + b for a, b in zip(left, values, strict=True)]
    axes.invert_yaxis()
    axes.set_xlabel("ms per step", fontsize=NORMAL)
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=SMALL,
                frameon=False)  # fmt: skip
    plt.show()


def draw_gates(
    candidates: Sequence[Candidate], limits: dict[str, float], winner: str | None
) -> None:
    """Throughput over peak memory, the memory gate drawn in, failed gates as letters.

    Args:
        candidates: each with ``name``, ``throughput`` (tokens/s), ``peak_memory_mb``,
            ``eligible`` and ``gate_failures``.
        limits: ``memory_mb`` is drawn as a line, the other two stand in the title.
        winner: name of the chosen candidate, or None.
    """
    _, (axes,) = canvas(4.6)
    limit_gb = limits["memory_mb"] / 1000
    for item in candidates:
        _point(axes, item, item["name"] == winner)
    gate = axes.axvline(limit_gb, color=ACCENT, linestyle="--", linewidth=1.2)
    axes.margins(0.08)
    right = axes.get_xlim()[1]
    axes.axvspan(limit_gb, max(right, limit_gb * 1.05), color=ACCENT, alpha=0.08, linewidth=0)
    axes.set_xlim(right=max(right, limit_gb * 1.05))
    axes.set_title(
        f"gates: memory ≤ {limit_gb:g} GB, bubble ≤ {limits['bubble_ratio']:g}, "
        f"communication ≤ {limits['communication_ratio']:g}",
        fontsize=NORMAL,
    )
    axes.set_xlabel("peak memory per rank, GB", fontsize=NORMAL)
    axes.set_ylabel("throughput, tokens/s", fontsize=NORMAL)
    for marker, shade, label in (
        ("*", ACCENT, "selected"),
        ("o", SHADES[2], "eligible"),
        ("X", "white", "rejected: M memory, B bubble, C communication, R runtime"),
    ):
        axes.scatter([], [], marker=marker, color=shade, edgecolor=INK, s=90, label=label)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, fontsize=SMALL, frameon=False
    )
    labels = [
        (
            item["peak_memory_mb"] / 1000,
            item["throughput"],
            " ".join([item["name"], *(GATE_LETTERS[name] for name in item["gate_failures"])]),
        )
        for item in candidates
    ]
    place_labels(axes, labels, avoid=[gate])
    plt.show()


def _point(axes: Axes, item: Candidate, chosen: bool) -> None:
    marker, shade, size = ("o", SHADES[2], 80) if item["eligible"] else ("X", "white", 80)
    if chosen:
        marker, shade, size = "*", ACCENT, 260
    axes.scatter(
        [item["peak_memory_mb"] / 1000], [item["throughput"]], marker=marker, color=shade,
        edgecolor=INK, s=size, zorder=3,
    )  # fmt: skip
