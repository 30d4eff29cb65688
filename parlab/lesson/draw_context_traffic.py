"""What context parallelism moves: over the sequence length, over cp, and beside the compute."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

from parlab.lesson.style import ACCENT, INK, NORMAL, SHADES, SMALL, canvas

Curve = Sequence[float]
# Colour, line style and marker, so that greyscale keeps the curves apart.
_LOOKS = (
    (SHADES[3], "-", "o"),
    (SHADES[2], "--", "s"),
    (ACCENT, "-", "^"),
    ("#8a6d1d", "--", "D"),
)


def draw_traffic(
    lengths: Sequence[int],
    over_length: Mapping[str, Curve],
    cps: Sequence[int],
    over_cp: Mapping[str, Curve],
) -> None:
    """Bytes that a rank sends in one layer's forward ring.

    Args:
        lengths: sequence lengths in tokens.
        over_length: label → bytes at each length.
        cps: numbers of ranks.
        over_cp: label → bytes at each cp, for the longest sequence.
    """
    _, (left, right) = canvas(3.5, 2)
    for look, (label, values) in zip(_LOOKS, over_length.items(), strict=False):
        _curve(left, lengths, [value / 1e6 for value in values], label, look)
    _logarithmic(left, lengths, [_tokens(length) for length in lengths])
    left.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, fontsize=SMALL, frameon=False
    )
    left.set_xlabel("sequence length, tokens", fontsize=NORMAL)
    left.set_ylabel("MB sent per rank and layer", fontsize=NORMAL)
    for look, (label, values) in zip(_LOOKS[::2], over_cp.items(), strict=False):
        _curve(right, cps, [value / 1e6 for value in values], label, look)
    _logarithmic(right, cps, [str(cp) for cp in cps])
    right.set_xlabel(f"cp, at {_tokens(lengths[-1])} tokens", fontsize=NORMAL)
    plt.show()


def draw_overlap(lengths: Sequence[int], compute_ms: Curve, send_ms: Mapping[str, Curve]) -> None:
    """Time of attention's compute beside that of moving K and V, for one rank and layer."""
    _, (axes,) = canvas(3.3)
    _curve(axes, lengths, compute_ms, "compute", (INK, "-", "o"))
    for look, (label, values) in zip(_LOOKS[1:], send_ms.items(), strict=False):
        _curve(axes, lengths, values, label, look)
    _logarithmic(axes, lengths, [_tokens(length) for length in lengths])
    axes.set_xlabel("sequence length, tokens", fontsize=NORMAL)
    axes.set_ylabel("ms per layer, forward", fontsize=NORMAL)
    plt.show()


def _curve(
    axes: Axes, x: Sequence[float], y: Curve, label: str, look: tuple[str, str, str]
) -> None:
    colour, line, marker = look
    axes.plot(x, y, label=label, color=colour, linestyle=line, marker=marker, markersize=5)


def _logarithmic(axes: Axes, x: Sequence[float], labels: Sequence[str]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(list(x), labels)
    axes.minorticks_off()
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=SMALL, frameon=False)


def _tokens(length: int) -> str:
    return f"{length // 1024}K" if length >= 1024 else str(length)
