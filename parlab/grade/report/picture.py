"""The class in one picture: totals above, each TODO below. Narrow, so that a phone can show it.

There are no words in it, so that it suits either language whatever fonts a machine has; the page's
caption says what is what.
"""

import base64
import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from parlab.grade.report.statistics import ClassStatistics
from parlab.lesson.style import ACCENT, INK, NORMAL, SHADES, SMALL

WIDTH_IN, HEIGHT_IN, DPI = 5.0, 4.6, 200
BINS = 10
_SHARES = {"full": "100%", "part": "1–99%", "zero": "0%"}  # of a TODO's points


def draw(found: ClassStatistics, most: float) -> Figure:
    """The figure.

    Args:
        most: the points of the whole lesson.
    """
    figure = Figure(figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained")
    FigureCanvasAgg(figure)
    top, bottom = figure.subplots(2, 1, height_ratios=(3, 2))
    width = most / BINS
    counts = [0] * BINS
    for total in found.totals:
        counts[min(int(total / width), BINS - 1)] += 1
    starts = [width * index for index in range(BINS)]
    top.bar(starts, counts, width=width * 0.9, align="edge", color=SHADES[2])
    top.axvline(found.median, color=ACCENT, linestyle="--", linewidth=1.4)
    top.set_title(f"n = {len(found.totals)}", fontsize=NORMAL, color=INK)
    top.set_xlim(0, most)
    top.yaxis.get_major_locator().set_params(integer=True)
    names = [f"TODO {todo.todo}" for todo in found.todos]
    left = [0] * len(names)
    for part, shade, hatch in (
        ("full", SHADES[3], ""),
        ("part", SHADES[1], "///"),
        ("zero", SHADES[0], ".."),
    ):
        label = _SHARES[part]
        values = [getattr(todo, part) for todo in found.todos]
        bottom.barh(
            names, values, left=left, color=shade, hatch=hatch, edgecolor="white", label=label
        )
        left = [before + value for before, value in zip(left, values, strict=True)]
    bottom.invert_yaxis()
    bottom.set_xlim(0, max([*left, 1]))
    bottom.xaxis.get_major_locator().set_params(integer=True)
    bottom.legend(
        loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, fontsize=SMALL, frameon=False
    )
    for axes in (top, bottom):
        axes.tick_params(labelsize=SMALL)
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def png(found: ClassStatistics, most: float) -> bytes:
    """The picture as PNG."""
    data = io.BytesIO()
    draw(found, most).savefig(data, format="png", dpi=DPI)
    return data.getvalue()


def data_uri(image: bytes) -> str:
    """The picture within a page."""
    return "data:image/png;base64," + base64.b64encode(image).decode("ascii")
