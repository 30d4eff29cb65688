"""Cases of 01_pipeline_parallel. A rule's cases are put together so that it alone decides them.

A mistake should cost its own rule: splits are chosen by what breaks the tie, simulated times are
compared by entry. Cases that a brute force or an endless loop does not finish come last.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from parlab.grade.cases import Case, Rule, needing
from parlab.grade.cases.lesson_01 import orders, simulations, splits
from parlab.grade.cases.lesson_01.rules import RULES
from parlab.grade.types import Result

# Rule → rules without which it cannot be judged.
_SPLIT = ("slowest", "squares", "first")
_ORDER = ("warm_up", "each_once", "alternate")
_NEEDS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    1: {"squares": _SPLIT[:1], "first": _SPLIT[:2], "whole": _SPLIT, "large": _SPLIT},
    2: {"few": _ORDER, "single": _ORDER},
    3: {
        "makespan": ("waits",),
        "rank_bubbles": ("waits", "makespan"),
        "bubble": ("waits", "makespan"),
    },
}


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return needing(RULES[todo], _NEEDS.get(todo, {}))


def cases(todo: int, seed: int) -> list[Case]:
    """The cases of TODO 1, 2 or 3."""
    dice = random.Random(f"{seed} · 01 · {todo}")
    return list({1: splits.cases, 2: orders.cases, 3: simulations.cases}[todo](dice))


def keeps(todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
    """Whether smaller arguments are still a case of the rule, as a caller may hand them in."""
    if expected[0] != "value":
        return False
    try:
        if todo == 1:
            return splits.keeps(rule, arguments)
        if todo == 2:
            return orders.keeps(rule, arguments)
        return simulations.keeps(rule, arguments, expected[1])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False


def smaller(todo: int, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Steps that change several numbers at once."""
    if todo == 1:
        yield from splits.smaller(*arguments)
    elif todo == 3:
        yield from simulations.smaller(*arguments)
