"""TODO 3: a whole block. Sizes are those of a rank, so that they divide whatever tp is."""

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from parlab.grade.cases import Case, on_ranks_case
from parlab.grade.cases.lesson_02.linear import SEEDS
from parlab.grade.cases.lesson_02.linear_rules import EACH
from parlab.grade.ranks import Ranks, Weight
from parlab.lesson import tensor_cases

Sizes = dict[str, Any]

LEAST = {"tp": 2, "batch": 1, "tokens": 2, "hidden": 4, "kv": 1, "group": 2, "dim": 3, "ffn": 2}
_MATRICES = ("wq", "wk", "wv", "wo", "w_gate", "w_up", "w_down")
_NORMS = tensor_cases.NORMS
_KEYS = {*LEAST, "dtype", "seed"}

_READ = tuple(f"read.{name}" for name in (*_MATRICES, *_NORMS))
PARTS = {
    "y": ("out",),
    "grouped": ("out",),
    "x_gradient": ("grad.x",),
    "weight_gradients": tuple(f"grad.{name}" for name in _MATRICES),
    "norm_gradients": tuple(f"grad.{name}" for name in _NORMS),
    "blocks": ("out", *_READ),
    "forward": ("out", "forward"),
    "backward": ("grad.x", "backward"),
    "largest": ("out", "grad.x", "largest"),
    "sent": ("returned",),
}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases; rules look at the same runs wherever they can: a run is made once."""
    runs = {
        kind: [_sizes(dice, kind, number) for number in range(EACH)]
        for kind in ("largest", "y", "grouped", "sent")
    }
    for rule, parts in PARTS.items():
        for sizes in runs.get(rule, runs["y"]):
            yield on_ranks_case(rule, sizes, parts, on_ranks)


def keeps(rule: str, sizes: Sizes) -> bool:
    """Whether these are sizes of a case of this rule."""
    if set(sizes) != _KEYS or sizes["seed"] < SEEDS or sizes["tp"] < 2:
        return False
    if any(sizes[name] < 1 for name in LEAST) or sizes["dtype"] not in ("float64", "float32"):
        return False
    heads = sizes["tp"] * sizes["kv"] * sizes["group"]
    payload = sizes["batch"] * sizes["tokens"] * sizes["hidden"]
    apart = heads * sizes["dim"] != sizes["hidden"] and sizes["tokens"] > 1
    divides = payload % sizes["tp"] == 0  # else right formulas round in different places
    fits = apart and divides and sizes["hidden"] > 2 and sizes["ffn"] > 1
    if rule == "grouped":
        fits = fits and sizes["group"] > 1
    if rule == "sent":
        fits = fits and payload // sizes["tp"] > 1
    if rule == "largest":
        fits = fits and sizes["hidden"] * sizes["ffn"] * sizes["tp"] > _limit(sizes)
    return bool(fits)


def _sizes(dice: random.Random, rule: str, number: int) -> Sizes:
    while True:
        sizes = {
            "tp": 3 + number % 2 if rule == "largest" else 2 + number % 3,
            "batch": 1 + (number + 1) % 2,
            "tokens": dice.randrange(2, 5),
            "hidden": dice.randrange(6, 25),
            "kv": dice.choice((1, 2)),
            "group": 2 + number % 2 if rule == "grouped" else dice.choice((1, 2, 3)),
            "dim": dice.randrange(2, 5),
            "ffn": dice.randrange(4, 8),
            "dtype": "float32" if rule == "sent" and number == 1 else "float64",
            "seed": dice.randrange(SEEDS, 10 * SEEDS),
        }
        if keeps(rule, sizes):
            return sizes


def _limit(sizes: Sizes) -> int:
    """Numbers in the largest tensor that a rank may need, weights side by side included."""
    tokens = sizes["batch"] * sizes["tokens"]
    heads = sizes["kv"] * sizes["group"]
    wide = max((heads + 2 * sizes["kv"]) * sizes["dim"], 2 * sizes["ffn"])
    scores = tokens * heads * sizes["tokens"]
    return int(max(tokens * sizes["hidden"], (tokens + sizes["hidden"]) * wide, scores))


def on_ranks(sizes: Sizes) -> Ranks:
    """Every rank has x, the names of all weights, and the gradient at y.

    Raises:
        ValueError: sizes that do not fit together.
    """
    if not keeps("y", sizes):
        raise ValueError("sizes that do not fit together")
    tp, kv_heads = sizes["tp"], sizes["tp"] * sizes["kv"]
    heads = kv_heads * sizes["group"]
    whole = {
        "tp": tp, "heads": heads, "kv_heads": kv_heads, "head_dim": sizes["dim"],
        "ffn": tp * sizes["ffn"],
        **{name: sizes[name] for name in ("batch", "tokens", "hidden", "dtype")},
    }  # fmt: skip
    weights = tensor_cases.block_weights(whole, sizes["seed"])
    x, upstream = tensor_cases.block_input(whole, sizes["seed"] + 1)
    given = tuple(
        {
            "x": _leaf(x),
            "weights": {name: Weight(weight) for name, weight in weights.items()},
            "num_heads": heads,
            "num_kv_heads": kv_heads,
        }
        for _ in range(tp)
    )
    return Ranks(given, (upstream,) * tp, _limit(sizes))


def _leaf(x: Tensor) -> Tensor:
    return torch.clone(x).requires_grad_()
