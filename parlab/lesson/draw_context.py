"""Context parallelism drawn: who computes which part of causal attention, and when."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyArrowPatch, Rectangle

from parlab.lesson.style import ACCENT, INK, LARGE, MUTED, NORMAL, SHADES, SMALL, bare, canvas

Positions = Sequence[Sequence[int]]
Table = Sequence[Sequence[float]]


def draw_causal(splits: Mapping[str, Positions]) -> None:
    """The causal matrix, each row in the colour of the rank that holds its query; bars: work.

    Args:
        splits: title → the positions that each rank holds; up to four ranks.
    """
    widths, height = [3, 1.6] * len(splits), 3.7 if len(splits) == 1 else 2.5
    _, panels = canvas(height, len(widths), gridspec_kw={"width_ratios": widths})
    most = max(_cells(mine) for positions in splits.values() for mine in positions)
    for index, (title, positions) in enumerate(splits.items()):
        _matrix(panels[2 * index], title, positions)
        _bars(panels[2 * index + 1], positions, most)
    plt.show()


def _cells(queries: Sequence[int]) -> int:
    """Coloured cells in these rows, counted one by one."""
    return sum(key <= query for query in queries for key in range(max(queries) + 1))


def _matrix(panel: Axes, title: str, positions: Positions) -> None:
    length = sum(map(len, positions))
    owner = {query: rank for rank, mine in enumerate(positions) for query in mine}
    white = to_rgb("white")
    colours = [to_rgb(SHADES[owner[query]]) for query in range(length)]
    image = [
        [colours[query] if key <= query else white for key in range(length)]
        for query in range(length)
    ]
    panel.imshow(image, interpolation="nearest", aspect="auto")
    for query in range(length):
        for key in range(query + 1):
            panel.add_patch(
                Rectangle((key - 0.5, query - 0.5), 1, 1, fill=False, edgecolor="white", lw=0.4)
            )
    for first, last, rank in _runs([owner[query] for query in range(length)]):
        panel.text(
            last + 1, (first + last) / 2, f"rank {rank}", va="center", fontsize=SMALL, color=INK
        )
    panel.set_title(title, fontsize=LARGE)
    panel.set_xlabel("key", fontsize=NORMAL)
    panel.set_ylabel("query", fontsize=NORMAL)
    ticks = [0, length // 2 - 1, length - 1]
    panel.set_xticks(ticks)
    panel.set_yticks(ticks)
    panel.set_xlim(-0.5, 1.28 * length - 0.5)  # room for the ranks' names
    panel.set_box_aspect(1 / 1.28)


def _runs(owners: Sequence[int]) -> list[tuple[int, int, int]]:
    """(first, last, rank) of each stretch of queries that one rank holds."""
    found: list[tuple[int, int, int]] = []
    for query, rank in enumerate(owners):
        if found and found[-1][2] == rank:
            found[-1] = (found[-1][0], query, rank)
        else:
            found.append((query, query, rank))
    return found


def _bars(panel: Axes, positions: Positions, most: int) -> None:
    ranks = range(len(positions))
    work = [_cells(mine) for mine in positions]
    panel.barh(ranks, work, color=SHADES[: len(work)], edgecolor=INK)
    for rank, scores in zip(ranks, work, strict=True):
        panel.text(most * 1.08, rank, str(scores), va="center", fontsize=SMALL, color=INK)
    mean = sum(work) / len(work)
    panel.axvline(mean, color=ACCENT, linestyle="--", linewidth=1.2)
    panel.set_xlim(0, most * 1.4)
    panel.set_box_aspect(3 / 1.6 / 1.28)
    panel.set_yticks(list(ranks), [f"rank {rank}" for rank in ranks])
    panel.invert_yaxis()
    panel.set_xlabel("scores, - - mean", fontsize=NORMAL)
    panel.set_title(f"max / mean {max(work) / mean:.2f}", fontsize=NORMAL)


def draw_work_steps(tables: Mapping[str, Table]) -> None:
    """Scores that each rank computes in each step of a ring; below, the slowest of the step.

    Args:
        tables: title → [rank][step].
    """
    _, panels = canvas(3.1, len(tables), sharey=True)
    most = max(value for table in tables.values() for row in table for value in row)
    for panel, (title, table) in zip(panels, tables.items(), strict=True):
        slowest = [max(column) for column in zip(*table, strict=True)]
        for rank, row in enumerate(table):
            for step, value in enumerate(row):
                _shaded(panel, step, rank, value, most)
        for step, value in enumerate(slowest):
            panel.text(
                step, len(table) + 0.02, f"{value:g}", ha="center", va="center", fontsize=SMALL,
                color=ACCENT, weight="bold",
            )  # fmt: skip
        panel.set_xticks(range(len(slowest)))
        panel.set_yticks(
            range(len(table) + 1), [*(f"rank {rank}" for rank in range(len(table))), "slowest"]
        )
        panel.set_xlim(-0.5, len(slowest) - 0.5)
        panel.set_ylim(len(table) + 0.5, -0.5)
        panel.set_xlabel("step", fontsize=NORMAL)
        panel.set_title(f"{title}: sum of slowest = {sum(slowest):g}", fontsize=LARGE)
        panel.tick_params(length=0)
        panel.spines[["left", "bottom"]].set_visible(False)
    plt.show()


def _shaded(panel: Axes, x: float, y: float, value: float, most: float, text: str = "") -> None:
    """A unit cell, darker for more; white and hatched for nothing."""
    share = value / most
    shade = SHADES[min(3, int(share * 3.999))] if value else "white"
    panel.add_patch(
        Rectangle(
            (x - 0.5, y - 0.5), 1, 1, facecolor=shade, edgecolor="white" if value else "#c4c4c4",
            hatch="" if value else "//", linewidth=1.5 if value else 0.6,
        )
    )  # fmt: skip
    panel.text(
        x, y, text or f"{value:g}", ha="center", va="center", fontsize=SMALL,
        color="white" if share > 0.5 else INK,
        bbox=None if value else {"facecolor": "white", "edgecolor": "none", "pad": 1},
    )  # fmt: skip


def draw_shares(scores: Sequence[float], cuts: Sequence[int]) -> None:
    """Softmax weights of one query, its keys in blocks; right, the share of each block.

    Args:
        scores: of the query with each key.
        cuts: how many keys each block has.
    """
    from math import exp

    _, (left, right) = canvas(2.9, 2, gridspec_kw={"width_ratios": [2.6, 1]})
    peak = max(scores)
    weights = [exp(score - peak) for score in scores]
    total = sum(weights)
    weights = [weight / total for weight in weights]
    first = 0
    for block, size in enumerate(cuts):
        keys = list(range(first, first + size))
        mine = [weights[key] for key in keys]
        hatch = ("", "///", "..")[block % 3]
        shade = SHADES[block % 4]
        left.bar(keys, mine, color=shade, edgecolor=INK, hatch=hatch, label=f"block {block}")
        right.bar([block], [sum(mine)], color=shade, edgecolor=INK, hatch=hatch)
        right.text(
            block, sum(mine) + 0.02, f"{sum(mine):.2f}", ha="center", fontsize=SMALL, color=INK
        )
        first += size
    left.set_xticks(range(len(scores)), [f"{score:g}" for score in scores])
    left.set_xlabel("score of each key", fontsize=NORMAL)
    left.set_ylabel("softmax weight", fontsize=NORMAL)
    left.legend(fontsize=SMALL, frameon=False)
    right.axhline(1 / len(cuts), color=ACCENT, linestyle="--", linewidth=1.2)
    right.set_xticks(range(len(cuts)), [f"block {block}" for block in range(len(cuts))])
    right.set_ylim(0, 1.05)
    right.set_title("share of each block", fontsize=NORMAL)
    right.set_xlabel("- - equal shares", fontsize=NORMAL)
    plt.show()


def draw_ring(size: int, steps: int) -> None:
    """Where each rank's K/V block is after each shift round the ring; up to four ranks."""
    from math import cos, pi, sin

    _, panels = canvas(2.75, steps)
    blocks = list(range(size))
    for step, panel in enumerate(panels):
        bare(panel)
        places = [(sin(2 * pi * rank / size), cos(2 * pi * rank / size)) for rank in range(size)]
        for rank, (x, y) in enumerate(places):
            following = places[(rank + 1) % size]
            panel.add_patch(
                FancyArrowPatch(
                    (x, y), following, arrowstyle="-|>", mutation_scale=13, color=MUTED,
                    shrinkA=25, shrinkB=25, connectionstyle="arc3,rad=-0.25", linewidth=1,
                )
            )  # fmt: skip
            block = blocks[rank]
            panel.scatter([x], [y], s=2100, color=SHADES[block], edgecolor=INK, zorder=3)
            panel.text(
                x, y, f"rank {rank}\nKV {block}", ha="center", va="center", fontsize=SMALL,
                zorder=4, color="white" if block > 1 else INK,
            )  # fmt: skip
        panel.set_title(f"step {step}", fontsize=LARGE)
        panel.set_xlim(-1.6, 1.6)
        panel.set_ylim(-1.6, 1.6)
        blocks = [blocks[-1], *blocks[:-1]]
    plt.show()


def draw_contributions(table: Table) -> None:
    """How much the queries of each rank add to the gradient of each K block.

    Args:
        table: [rank of the queries][owner of the block], any measure of size.
    """
    _, (panel,) = canvas(2.9)
    most = max(map(max, table))
    for rank, row in enumerate(table):
        for owner, value in enumerate(row):
            _shaded(panel, owner, rank, value, most, f"{value:.2f}" if value else "0")
            if owner == 0 and rank:
                panel.add_patch(
                    Rectangle(
                        (owner - 0.47, rank - 0.47), 0.94, 0.94, fill=False, edgecolor=ACCENT,
                        linewidth=2.2, zorder=4,
                    )
                )  # fmt: skip
    size = len(table)
    panel.set_xticks(range(size), [f"block {owner}" for owner in range(size)])
    panel.set_yticks(range(size), [f"rank {rank}" for rank in range(size)])
    panel.set_xlim(-0.5, size - 0.5)
    panel.set_ylim(size - 0.5, -0.5)
    panel.set_ylabel("queries of", fontsize=NORMAL)
    panel.set_title("what each rank adds to the gradient of each K block", fontsize=LARGE)
    panel.tick_params(length=0)
    panel.spines[["left", "bottom"]].set_visible(False)
    plt.show()
