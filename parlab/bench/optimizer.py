"""AdamW (arXiv 1711.05101) by torch's own functional form, with the defaults of torch.optim.AdamW.

The class `torch.optim.AdamW` imports torch's compiler on first use, two seconds of each rank's
start; the function that it calls does not.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw


class AdamW:
    """Moments and step counts for the parameters, which share one learning rate."""

    def __init__(self, parameters: Iterable[nn.Parameter], learning_rate: float) -> None:
        self.parameters = list(parameters)
        self.learning_rate = learning_rate
        self.means = [torch.zeros_like(p) for p in self.parameters]
        self.squares = [torch.zeros_like(p) for p in self.parameters]
        self.counts: list[Tensor] = [
            torch.zeros((), dtype=torch.float32, device=p.device) for p in self.parameters
        ]

    def zero_grad(self) -> None:
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Update every parameter that has a gradient."""
        held = [i for i, p in enumerate(self.parameters) if p.grad is not None]
        with torch.no_grad():
            adamw(
                [self.parameters[i] for i in held],
                [self.parameters[i].grad for i in held],
                [self.means[i] for i in held],
                [self.squares[i] for i in held],
                [],
                [self.counts[i] for i in held],
                fused=True, amsgrad=False, beta1=0.9, beta2=0.999, lr=self.learning_rate,
                weight_decay=1e-2, eps=1e-8, maximize=False,
            )  # fmt: skip
