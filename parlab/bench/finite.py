"""Numbers that are none: nan and infinities, which JSON has no words for and a gate no answer."""

import math
from collections.abc import Sequence


class NotFinite(ArithmeticError):
    """A number that should be finite is not; names it, its value and the remedy."""


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
