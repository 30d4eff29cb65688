"""Cases of 05_multi_gpu_experiments: events of a rank, ranks of a step, runs to be recorded.

Each rule's cases hold only what the rule is about, so that a mistake costs its own rule. Times and
ratios are compared rounding aside, the parts of a step however their intervals are cut.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from parlab.grade.cases import Case, Rule, needing
from parlab.grade.cases.lesson_05 import events, ranks, records
from parlab.grade.cases.lesson_05.rules import RULES
from parlab.grade.types import Result

# Rule → rules without which it cannot be judged.
_APART = ("chunks", "gaps", "exposed", "transfer", "waiting", "step", "no_work")
_NEEDS: Mapping[int, Mapping[str, tuple[str, ...]]] = {1: {"together": _APART}}


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return needing(RULES[todo], _NEEDS.get(todo, {}))


def cases(todo: int, seed: int) -> list[Case]:
    """The cases of TODO 1, 2 or 3."""
    dice = random.Random(f"{seed} · 05 · {todo}")
    return list({1: events.cases, 2: ranks.cases, 3: records.cases}[todo](dice))


def keeps(todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
    """Whether smaller arguments are still a case of the rule, as a caller may hand them in."""
    if expected[0] != "value":
        return False
    try:
        if todo == 1:
            return events.keeps(rule, *arguments)
        if todo == 2:
            return ranks.keeps(rule, *arguments)
        return records.keeps(rule, arguments, expected[1])
    except (KeyError, TypeError, AttributeError, ValueError, IndexError):
        return False


def smaller(todo: int, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Steps that change several numbers at once."""
    if todo == 2:
        yield from ((less,) for less in ranks.smaller(*arguments))
    elif todo == 3:
        yield from records.smaller(*arguments)
