"""Numbers that are none: nan and infinities, which JSON has no words for and a gate no answer."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class NotFinite(ArithmeticError):
    """A number that should be finite is not; names it, its value and the remedy."""


def not_finite(content: Any, path: str = "$") -> Iterator[str]:
    """A line for each number in what is to become JSON that is not finite."""
    if isinstance(content, float) and not math.isfinite(content):
        yield f"{path} is {content}"
    elif isinstance(content, Mapping):
        for key, value in content.items():
            yield from not_finite(value, f"{path}.{key}")
    elif isinstance(content, Sequence) and not isinstance(content, str):
        for number, value in enumerate(content):
            yield from not_finite(value, f"{path}[{number}]")


def check_losses(losses: Sequence[float], whose: str = "the") -> None:
    """Lets finite losses pass, one a step.

    Raises:
        NotFinite: a loss is nan or infinite.
    """
    for step, loss in enumerate(losses, 1):
        if not math.isfinite(loss):
            raise NotFinite(
                f"{whose} loss of step {step} of {len(losses)} is {loss}: training has diverged; "
                "lower learning_rate in the workload's [run], or see what the model divides by"
            )
