"""Cases of 02_tensor_parallel: sizes and a seed, of which each rank's tensors are made.

Every case runs forward and backward; a rule looks at its own part of what came of it. The rules
about operations, about what was read and about memory look at the values too, so that whoever does
nothing, and so nothing wrong, earns nothing.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

from parlab.grade.cases import Case, Rule, needing
from parlab.grade.cases.lesson_02 import blocks, linear
from parlab.grade.cases.lesson_02.block_rules import BLOCK
from parlab.grade.cases.lesson_02.linear_rules import LINEAR
from parlab.grade.types import Result

# Rule → rules without which it cannot be judged.
_PRODUCT = {
    "dims": ("y",),
    "bias": ("y",),
    "x_gradient": ("y",),
    "weight_gradient": ("y",),
    "block": ("y",),
    "forward": ("y",),
    "backward": ("y", "x_gradient"),
    "largest": ("y", "x_gradient", "weight_gradient"),
}
_NEEDS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    1: _PRODUCT,
    2: {
        **_PRODUCT,
        "bias_gradient": ("y", "bias"),
        "largest": ("y", "x_gradient"),
    },
    3: {
        **dict.fromkeys(("x_gradient", "weight_gradients", "norm_gradients"), ("y",)),
        **dict.fromkeys(("blocks", "forward"), ("y",)),
        **dict.fromkeys(("backward", "largest"), ("y", "x_gradient")),
    },
}


def rules(todo: int) -> tuple[Rule, ...]:
    """The rules of TODO 1, 2 or 3."""
    return needing({**LINEAR, 3: BLOCK}[todo], _NEEDS.get(todo, {}))


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
