"""Cases of 03_context_parallel: splits, pairs of partial results, and rings of ranks."""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from parlab.grade.cases import Case, Rule, needing
from parlab.grade.cases.lesson_03 import merges, rings, splits
from parlab.grade.cases.lesson_03.rules import RULES
from parlab.grade.types import Result

_MODULES: dict[int, Any] = {1: splits, 2: merges, 3: rings}

# Rule → rules without which it cannot be judged.
_OUT = ("contiguous", "head_tail", "any")
_NEEDS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    2: {
        **dict.fromkeys(("large", "apart", "types", "gradient"), ("weighted",)),
        "blind_gradient": ("one_blind", "both_blind"),
    },
    3: dict.fromkeys(("dq", "dkv", "shifts", "load", "largest", "skips"), _OUT),
}


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return needing(RULES[todo], _NEEDS.get(todo, {}))


def cases(todo: int, seed: int) -> list[Case]:
    """The cases of TODO 1, 2 or 3."""
    return list(_MODULES[todo].cases(random.Random(f"{seed} · 03 · {todo}")))


def keeps(todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
    """Whether smaller arguments are still a case of the rule."""
    return expected[0] == "value" and bool(_MODULES[todo].keeps(rule, *arguments))


def smaller(todo: int, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Steps that change several values at once."""
    yield from _MODULES[todo].smaller(*arguments)
