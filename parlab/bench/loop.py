"""A schedule of one stage: no pipelining, and none of its imports, which take seconds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from parlab.bench.trace import chunk

Loss = Callable[[Tensor, Tensor], Tensor]


class TracedLoss:
    """Counts the microbatches of a step as the last stage's losses are computed."""

    def __init__(self, loss: Loss, stage: int, microbatches: int) -> None:
        self.loss, self.stage, self.microbatches, self.calls = loss, stage, microbatches, 0

    def __call__(self, output: Tensor, target: Tensor) -> Tensor:
        microbatch, self.calls = self.calls, (self.calls + 1) % self.microbatches
        with chunk("loss", self.stage, microbatch):
            return self.loss(output, target)


class Loop:
    """The same for one stage: forward and backward of each microbatch in turn."""

    def __init__(self, decoder: torch.nn.Module, microbatches: int, loss: Loss) -> None:
        self.decoder, self.microbatches = decoder, microbatches
        self.loss = TracedLoss(loss, 0, microbatches)

    def step(self, ids: Tensor, targets: Tensor) -> list[Tensor]:
        losses = []
        batches = zip(ids.chunk(self.microbatches), targets.chunk(self.microbatches), strict=True)
        for index, (inputs, wanted) in enumerate(batches):
            with chunk("F", 0, index):
                output = self.decoder(inputs)
            loss = self.loss(output, wanted)
            with chunk("B", 0, index):
                loss.backward()
            losses.append(loss.detach())
        return losses
