"""What each axis cuts: the same small model, split over two ranks by pp, tp and cp."""

from collections.abc import Callable

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parlab.lesson.style import INK, LARGE, NORMAL, PALE, SHADES, SMALL, bare, canvas

LAYERS, HEADS, TOKENS = 8, 8, 16
Owner = Callable[[float], int | None]


def draw_cuts() -> None:
    """Three panels, pp = 2, tp = 2, cp = 2: who owns which layers, heads and tokens."""
    _, panels = canvas(4.1, 3)
    nobody: Owner = lambda _: None  # noqa: E731
    half: Owner = lambda share: int(share >= 0.5)  # noqa: E731
    for panel, title, layer, head, token in (
        (panels[0], "pp = 2 cuts layers", half, nobody, nobody),
        (panels[1], "tp = 2 cuts heads and matrices", nobody, half, nobody),
        (panels[2], "cp = 2 cuts the sequence", nobody, nobody, half),
    ):
        bare(panel)
        panel.text(4, 9.4, title, ha="center", fontsize=LARGE, color=INK)
        _weights(panel, layer, head)
        _sequence(panel, token)
        panel.set_xlim(-1.2, 8.4)
        panel.set_ylim(-2.9, 10)
    plt.show()


def _weights(panel: Axes, layer: Owner, head: Owner) -> None:
    for row in range(LAYERS):
        for column in range(HEADS):
            owner = layer(row / LAYERS)
            owner = head(column / HEADS) if owner is None else owner
            _tile(panel, column, LAYERS - 1 - row, 1, 1, owner)
    for row in (0, LAYERS - 1):
        panel.text(
            -0.2, LAYERS - 0.5 - row, f"L{row}", ha="right", va="center", fontsize=SMALL, color=INK
        )
    for column in (0, HEADS - 1):
        panel.text(
            column + 0.5, LAYERS + 0.15, f"H{column}", ha="center", fontsize=SMALL, color=INK
        )
    for owner in (0, 1):
        if layer(0.9) is not None:
            _label(panel, 4, 6 - 4 * owner, owner)
        elif head(0.9) is not None:
            _label(panel, 2 + 4 * owner, 4, owner)
    if layer(0.9) is None and head(0.9) is None:
        panel.text(
            4, 4, "all weights\non every rank", ha="center", va="center", fontsize=NORMAL,
            color=INK, bbox={"facecolor": "white", "edgecolor": INK},
        )  # fmt: skip


def _sequence(panel: Axes, token: Owner) -> None:
    width = HEADS / TOKENS
    for index in range(TOKENS):
        _tile(panel, index * width, -1.8, width, 0.9, token(index / TOKENS))
    if token(0.9) is not None:
        for owner in (0, 1):
            _label(panel, 2 + 4 * owner, -1.35, owner)
        caption = "tokens 0–7 | tokens 8–15"
    else:
        caption = "all 16 tokens on every rank"
    panel.text(4, -2.05, caption, ha="center", va="top", fontsize=SMALL, color=INK)


def _tile(panel: Axes, x: float, y: float, width: float, height: float, owner: int | None) -> None:
    tile = Rectangle((x, y), width, height, edgecolor="white")
    if owner is None:
        tile.set(facecolor=PALE, edgecolor="#c4c4c4", hatch="//", linewidth=0.6)
    else:
        tile.set_facecolor(SHADES[2 * owner])
    panel.add_patch(tile)


def _label(panel: Axes, x: float, y: float, owner: int) -> None:
    panel.text(
        x, y, f"rank {owner}", ha="center", va="center", fontsize=SMALL, color=INK,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
    )  # fmt: skip
