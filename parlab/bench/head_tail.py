"""Who holds what under the head-tail split, as lesson 03 teaches it."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from parlab.bench.rules import lesson_rule


def _split(sequence: int, cp: int) -> dict[str, Any]:
    found: dict[str, Any] = lesson_rule("03_context_parallel", "head_tail")(sequence, cp)
    return found


def head_tail(sequence: int, cp: int, rank: int) -> Tensor:
    """Global positions [sequence / cp] of the tokens of `rank`, ascending.

    Raises:
        ValueError: 2 · cp does not divide the sequence.
    """
    return torch.tensor(_split(sequence, cp)["positions"][rank])


@cache
def chunks(cp: int) -> tuple[list[list[int]], list[int]]:
    """Of 2 · cp chunks those of each rank, and where each stands among the gathered ones."""
    split = _split(2 * cp, cp)
    return split["positions"], split["inverse"]
