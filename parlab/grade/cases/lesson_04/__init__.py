"""Cases of 04_model_internal_parallel. What is put together here breaks exactly the rules chosen.

Each rule's cases are half with and half without what it is about, so that no constant answer
satisfies it. The rules about one name look at that name alone, so that one mistake costs one rule.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from parlab.grade.cases import Case, Rule, needing
from parlab.grade.cases.lesson_04 import contests, layouts, runs
from parlab.grade.cases.lesson_04.rules import RULES
from parlab.grade.types import Result

# Rule → rules without which it cannot be judged.
_GATES = ("memory", "bubble", "communication")
_NEEDS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    1: {
        "several": tuple(layouts.LAYOUT),
        "without_kv_heads": ("mesh_product", "context_blocks"),
        "fresh": ("mesh_product",),
    },
    2: {"edge": _GATES, "several": ("runtime", *_GATES), "fresh": ("memory",)},
}


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return needing(RULES[todo], _NEEDS.get(todo, {}))


def cases(todo: int, seed: int) -> list[Case]:
    """The cases of TODO 1, 2 or 3."""
    dice = random.Random(f"{seed} · 04 · {todo}")
    return list({1: layouts.cases, 2: runs.cases, 3: contests.cases}[todo](dice))


def keeps(todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
    """Whether smaller arguments are still a case of the rule, as a caller may hand them in."""
    if expected[0] != "value":
        return False
    try:
        return {1: layouts.keeps, 2: runs.keeps, 3: contests.keeps}[todo](
            rule, arguments, expected[1]
        )
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


def smaller(todo: int, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Steps that change several numbers at once."""
    if todo != 3 and isinstance(arguments[0], tuple):  # several calls: each by itself
        for index, given in enumerate(arguments):
            for less in smaller(todo, given):
                yield (*arguments[:index], less, *arguments[index + 1 :])
    elif todo == 1:
        yield from ((config,) for config in layouts.smaller(*arguments))
    elif todo == 2:
        yield from runs.smaller(*arguments)
    else:
        yield from ((candidates,) for candidates in contests.smaller(*arguments))
