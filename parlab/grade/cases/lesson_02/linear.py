"""TODO 1 and 2: a product whose weight is cut by columns, or by rows.

Sizes: ``tp`` ranks; ``front``, the dims of x before its last; ``own``, the columns (or rows) of a
rank; ``whole``, the dim that is not cut; whether there is a bias, and whether x is strided.
"""

import math
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from parlab.grade.cases import Case, on_ranks_case
from parlab.grade.cases.lesson_02.linear_rules import EACH
from parlab.grade.ranks import Ranks, Weight, strided

Sizes = dict[str, Any]

LEAST = {"tp": 2, "front": [1], "own": 2, "whole": 3}
SEEDS = 1000  # seeds begin here, so that the shrinker has no smaller one to try

# Rule → what it looks at; rules without "bias" in their name have cases without one.
_COMMON = {
    "y": ("out",),
    "dims": ("out",),
    "x_gradient": ("grad.x",),
    "weight_gradient": ("grad.weight",),
    "block": ("out", "read.weight"),
    "forward": ("out", "forward"),
    "backward": ("grad.x", "backward"),
    "largest": ("out", "grad.x", "grad.weight", "largest"),
}
COLUMNS = {**_COMMON, "bias": ("out", "read.bias", "grad.bias")}
ROWS = {**_COMMON, "bias": ("out", "forward"), "bias_gradient": ("out", "grad.bias")}


def columns(dice: random.Random) -> Iterator[Case]:
    """Cases of a column-parallel product."""
    return _cases(dice, COLUMNS, by_columns)


def rows(dice: random.Random) -> Iterator[Case]:
    """Cases of a row-parallel product."""
    return _cases(dice, ROWS, by_rows)


def _cases(
    dice: random.Random, looks: dict[str, tuple[str, ...]], ranks: Callable[[Sizes], Ranks]
) -> Iterator[Case]:
    """Rules look at the same runs wherever they can: a run is made once."""
    kinds = ("largest", "dims", "bias")
    runs = {kind: [_sizes(dice, kind, number) for number in range(EACH)] for kind in kinds}
    for rule, parts in looks.items():
        kind = "bias" if rule.startswith("bias") else rule
        for sizes in runs.get(kind, runs["largest"]):
            yield on_ranks_case(rule, sizes, parts, ranks)


def keeps(rule: str, sizes: Sizes) -> bool:
    """Whether these are sizes of a case of this rule."""
    fits = (
        set(sizes) == {"tp", "front", "own", "whole", "bias", "strided", "seed"}
        and sizes["bias"] is rule.startswith("bias")
        and sizes["seed"] >= SEEDS
        and sizes["tp"] >= 2
        and min([1, sizes["own"] - 1, sizes["whole"] - 2, *sizes["front"]]) >= 1
        and sizes["own"] * sizes["tp"] != sizes["whole"]
        and len(sizes["front"]) >= (2 if rule == "dims" else 1)
    )
    return fits and (rule != "largest" or _whole_is_larger(sizes))


def _whole_is_larger(sizes: Sizes) -> bool:
    return bool(sizes["own"] * sizes["tp"] * sizes["whole"] > _limit(sizes))


def _sizes(dice: random.Random, rule: str, number: int) -> Sizes:
    while True:
        dims = 2 + number % 2 if rule == "dims" else dice.choice((1, 2))
        sizes: Sizes = {
            "tp": 2 + number % 3,
            "front": [dice.choice((1, 2, 3)) for _ in range(dims)],
            "own": dice.randrange(2, 6),
            "whole": dice.randrange(5, 12),
            "bias": rule.startswith("bias"),
            "strided": rule == "dims",
            "seed": dice.randrange(SEEDS, 10 * SEEDS),
        }
        if keeps(rule, sizes) and math.prod(sizes["front"]) > 1:
            return sizes


def _limit(sizes: Sizes) -> int:
    """The largest of a rank's x, its block of the weight, and its y."""
    tokens, cut, uncut = math.prod(sizes["front"]), int(sizes["own"]), int(sizes["whole"])
    return int(max(tokens * cut, tokens * uncut, cut * uncut))


def _numbers(sizes: Sizes, by_column: bool) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """The whole x, weight, bias, and a gradient at the whole y."""
    if not keeps("bias" if sizes.get("bias") else "y", sizes):
        raise ValueError("sizes that do not fit together")
    dice = torch.Generator().manual_seed(sizes["seed"])
    cut = sizes["own"] * sizes["tp"]
    n_in, n_out = (sizes["whole"], cut) if by_column else (cut, sizes["whole"])

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=dice, dtype=torch.float64)

    x, weight, bias = normal(*sizes["front"], n_in), normal(n_in, n_out), normal(n_out)
    upstream = normal(*sizes["front"], n_out)
    return x, weight, bias if sizes["bias"] else None, upstream


def _leaf(part: Tensor, sizes: Sizes) -> Tensor:
    part = strided(part) if sizes["strided"] else part.contiguous()
    return part.detach().requires_grad_()


def _stored(whole: Tensor | None) -> Weight | None:
    return None if whole is None else Weight(whole)


def by_columns(sizes: Sizes) -> Ranks:
    """Every rank has x; the gradient at its y is that of its own columns."""
    x, weight, bias, upstream = _numbers(sizes, True)
    given = tuple(
        {"x": _leaf(x, sizes), "weight": Weight(weight), "bias": _stored(bias)}
        for _ in range(sizes["tp"])
    )
    gradients = tuple(part.contiguous() for part in upstream.chunk(sizes["tp"], -1))
    return Ranks(given, gradients, _limit(sizes))


def by_rows(sizes: Sizes) -> Ranks:
    """Each rank has its part of x's last dim, and the gradient at the whole y."""
    x, weight, bias, upstream = _numbers(sizes, False)
    given = tuple(
        {"x": _leaf(part, sizes), "weight": Weight(weight), "bias": _stored(bias)}
        for part in x.chunk(sizes["tp"], -1)
    )
    return Ranks(given, (upstream,) * sizes["tp"], _limit(sizes))
