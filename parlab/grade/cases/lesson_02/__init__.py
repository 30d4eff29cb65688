"""Cases of 02_tensor_parallel: sizes and a seed, of which each rank's tensors are made.

Every case runs forward and backward; a rule looks at its own part of what came of it. The rules
about operations, about what was read and about memory look at the values too, so that whoever does
nothing, and so nothing wrong, earns nothing.
"""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case, Rule
from parlab.grade.cases.lesson_02 import blocks, linear
from parlab.grade.cases.lesson_02.rules import RULES
from parlab.grade.types import Result


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return RULES[todo]


def cases(todo: int, seed: int) -> list[Case]:
    """The cases of TODO 1, 2 or 3."""
    dice = random.Random(f"{seed} · 02 · {todo}")
    return list({1: linear.columns, 2: linear.rows, 3: blocks.cases}[todo](dice))


def keeps(todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
    """Whether smaller arguments are still a case of the rule."""
    if expected[0] != "value":
        return False
    (sizes,) = arguments
    return blocks.keeps(rule, sizes) if todo == 3 else linear.keeps(rule, sizes)


def smaller(todo: int, arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """The smallest sizes of all, at once."""
    (sizes,) = arguments
    least = blocks.LEAST if todo == 3 else linear.LEAST
    yield ({**sizes, **least},)
