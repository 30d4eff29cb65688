"""TODO 3: rings. Sizes: ``cp`` ranks of ``tokens`` each, the split, heads, and a seed.

All rules look at the same runs, each at its own part: so a run is made once.
"""

import random
from collections.abc import Iterator
from typing import Any

import torch

from parlab.grade.cases import Case, on_ranks_case
from parlab.grade.ranks import Ranks
from parlab.lesson.attention import random_qkv

Sizes = dict[str, Any]

SEEDS = 1000  # seeds begin here, so that the shrinker has no smaller one to try
LEAST = {"cp": 2, "tokens": 2, "batch": 1, "kv": 1, "group": 2, "dim": 1}
SPLITS = ("contiguous", "head_tail", "dealt", "shuffled")
_OWN = {"contiguous": ("contiguous",), "head_tail": ("head_tail",), "any": ("dealt", "shuffled")}

# Rule → what it looks at; a rule that is called like a split looks at runs with that one.
PARTS = {
    "contiguous": ("out",),
    "head_tail": ("out",),
    "any": ("out",),
    "dq": ("grad.q",),
    "dkv": ("grad.k", "grad.v"),
    "shifts": ("out", "shifts"),
    "load": ("out", "load", "copied"),
    "largest": ("out", "largest", "held"),
    "skips": ("out", "scores"),
    "sent": ("returned",),
}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    runs = [_sizes(dice, SPLITS[number % 4], number) for number in range(7)]
    for rule, parts in PARTS.items():
        for sizes in runs:
            if sizes["split"] in _OWN.get(rule, SPLITS):
                yield on_ranks_case(rule, sizes, parts, on_ranks)
    yield on_ranks_case("any", _sizes(dice, "dealt", 1), PARTS["any"], on_ranks)


def keeps(rule: str, sizes: Sizes) -> bool:
    """Whether these are sizes of a case of this rule."""
    if set(sizes) != {*LEAST, "split", "seed"} or sizes["seed"] < SEEDS:
        return False
    if any(sizes[name] < least for name, least in LEAST.items()):
        return False
    even = sizes["split"] != "head_tail" or sizes["tokens"] % 2 == 0
    return even and sizes["split"] in _OWN.get(rule, SPLITS) and sizes["tokens"] >= sizes["dim"]


def smaller(sizes: Sizes) -> Iterator[tuple[Sizes]]:
    """The smallest sizes of all, at once."""
    yield ({**sizes, **LEAST},)


def _sizes(dice: random.Random, split: str, number: int) -> Sizes:
    tokens = dice.choice((4, 6)) if split == "head_tail" else dice.choice((4, 5))
    return {
        "cp": 2 + (number + number // 4) % 3,
        "split": split,
        "tokens": tokens,
        "batch": 1 + number % 2,
        "kv": dice.choice((1, 2)),
        "group": dice.choice((2, 3)),
        "dim": dice.choice((2, 3)),
        "seed": dice.randrange(SEEDS, 10 * SEEDS),
    }


def _positions(sizes: Sizes) -> torch.Tensor:
    """[cp, tokens]: what each rank holds, ascending."""
    cp, tokens = sizes["cp"], sizes["tokens"]
    order = torch.arange(cp * tokens)
    if sizes["split"] == "contiguous":
        return order.view(cp, tokens)
    if sizes["split"] == "dealt":
        return order.view(tokens, cp).t().contiguous()
    if sizes["split"] == "head_tail":
        front, back = order.view(2, cp, tokens // 2)
        return torch.cat((front, back.flip(0)), dim=1)
    shuffled = torch.randperm(len(order), generator=torch.Generator().manual_seed(sizes["seed"]))
    return shuffled.view(cp, tokens).sort(dim=1).values


def _limit(sizes: Sizes) -> int:
    """1.5 times a step's scores or queries, or a block's K and V: no tensor need be larger."""
    queries = sizes["batch"] * sizes["kv"] * sizes["group"] * sizes["tokens"]
    block = 2 * sizes["batch"] * sizes["kv"] * sizes["tokens"] * sizes["dim"]
    return int(max(1.5 * queries * max(sizes["tokens"], sizes["dim"]), block))


def on_ranks(sizes: Sizes) -> Ranks:
    """Each rank has its tokens of q, k and v, everybody's positions, and the gradient at its out.

    Raises:
        ValueError: sizes that do not fit together.
    """
    if not keeps("dq", sizes):
        raise ValueError("sizes that do not fit together")
    heads, length = sizes["kv"] * sizes["group"], sizes["cp"] * sizes["tokens"]
    shape = (sizes["batch"], heads, sizes["kv"], length, sizes["dim"])
    q, k, v = random_qkv(*shape, seed=sizes["seed"])
    upstream, _, _ = random_qkv(*shape, seed=sizes["seed"] + 10**6)
    positions = _positions(sizes)
    given = tuple(
        {
            **{
                name: x[:, :, mine].contiguous().requires_grad_()
                for name, x in (("q", q), ("k", k), ("v", v))
            },
            "positions": positions,
        }
        for mine in positions
    )
    gradients = tuple(upstream[:, :, mine].contiguous() for mine in positions)
    return Ranks(given, gradients, _limit(sizes))
