"""TODO 2: two partial results of attention, put together so that one thing is hard about them."""

import random
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from parlab.grade.cases import Case

EACH = 4  # cases of one rule
NEVER = float("-inf")
FAR = 200.0  # scores so far apart, or so large, that exp leaves float64 or is nothing beside 1

_LOOKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "weighted": ("pair", {}, "call"),
    "large": ("pair", {}, "call"),
    "apart": ("pair", {}, "call"),
    "one_blind": ("pair", {}, "call"),
    "both_blind": ("pair", {}, "call"),
    "types": ("pair", {}, "call"),
    "gradient": ("merged", {"look": "gradients"}, "backward"),
    "blind_gradient": ("merged", {"look": "gradients"}, "backward"),
}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    for rule, (compare, options, call) in _LOOKS.items():
        for number in range(EACH):
            given, upstream = _parts(dice, rule, number)
            arguments: tuple[Any, ...] = given
            if call == "backward":
                leaves = tuple(part.requires_grad_() for part in given)
                arguments = (leaves, upstream)
            yield Case(rule, arguments, compare, options, call)


def _parts(
    dice: random.Random, rule: str, number: int
) -> tuple[tuple[Tensor, ...], tuple[Tensor, Tensor]]:
    """out, lse, new, new_lse; and a gradient for each result, zero where nothing is seen."""
    seed = torch.Generator().manual_seed(dice.randrange(2**31))
    batch, heads, tokens, dim = (dice.randrange(1, 3), dice.randrange(2, 4), 3 + number, 2)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=seed, dtype=torch.float64)

    lse, new_lse = normal(batch, heads, tokens), normal(batch, heads, tokens)
    if rule == "large":  # both sides far from 0, and near each other
        far = torch.tensor([-3000.0, -900.0, 900.0, 3000.0])[number] * (1 + normal(1).abs())
        lse, new_lse = lse + far, new_lse + far
    if rule == "apart":
        sign = torch.tensor([1.0, -1.0]).repeat(tokens)[number % 2 :][:tokens]
        lse = lse + sign * 900 * (2 + normal(1).abs())
    if rule in ("one_blind", "both_blind", "blind_gradient"):
        lse[..., 0], new_lse[..., 1] = NEVER, NEVER
        lse[..., 2:] = new_lse[..., 2:] if rule == "blind_gradient" else NEVER
    if rule in ("both_blind", "blind_gradient"):
        lse[..., -1], new_lse[..., -1] = NEVER, NEVER
    out, new = normal(batch, heads, tokens, dim), normal(batch, heads, tokens, dim)
    out, new = (
        x.masked_fill((weight == NEVER)[..., None], 0.0)
        for x, weight in ((out, lse), (new, new_lse))
    )
    blind = (lse == NEVER) & (new_lse == NEVER)
    upstream = (normal(*out.shape), normal(*lse.shape).masked_fill(blind, 0.0))
    dtype = torch.float32 if rule == "types" else torch.float64
    return tuple(x.to(dtype) for x in (out, lse, new, new_lse)), upstream


def keeps(rule: str, *arguments: Any) -> bool:
    """Whether what is hard about the rule's cases is still there."""
    given = arguments
    if _LOOKS[rule][2] == "backward":
        given, upstream = arguments
        if [part.shape for part in upstream] != [part.shape for part in given[:2]]:
            return False
    if len(given) != 4 or not all(isinstance(part, Tensor) for part in given):
        return False
    out, lse, _, new_lse = (part.detach() for part in given)
    if not out.numel() or out.shape[:-1] != lse.shape:
        return False
    seen = lse.isfinite() | new_lse.isfinite()
    hard = {
        "large": (lse.abs() > FAR) & lse.isfinite(),
        "apart": (lse - new_lse).abs() > FAR,
        "one_blind": seen & (lse.isinf() | new_lse.isinf()),
        "both_blind": ~seen,
        "blind_gradient": ~seen,
    }
    return bool(hard.get(rule, seen).any())


def smaller(*arguments: Any) -> Iterator[tuple[Any, ...]]:
    """One query of one head of one sequence."""
    whole = isinstance(arguments[0], tuple)
    parts = (*arguments[0], *arguments[1]) if whole else arguments
    tokens = parts[1].shape[-1]
    for token in range(tokens):
        least = tuple(part.detach()[:1, :1, token : token + 1].clone() for part in parts)
        if whole:
            yield tuple(part.requires_grad_() for part in least[:4]), least[4:]
        else:
            yield least
