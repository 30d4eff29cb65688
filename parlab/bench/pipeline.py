"""Stages of torch.distributed.pipelining, its schedules, and hooks around every chunk.

A schedule sums the microbatches' losses (`scale_grads=False`); the division by the number of
tokens of the whole batch happens in the loss, so that it is the same on every mesh.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributed import pipelining

from parlab.bench.axes import Axes
from parlab.bench.loop import Loss, TracedLoss
from parlab.bench.model import Decoder
from parlab.bench.trace import chunk, heading

SCHEDULES: dict[str, Any] = {
    "GPipe": pipelining.ScheduleGPipe,
    "1F1B": pipelining.Schedule1F1B,
    "Interleaved1F1B": pipelining.ScheduleInterleaved1F1B,
    "InterleavedZeroBubble": pipelining.ScheduleInterleavedZeroBubble,
    "ZBVZeroBubble": pipelining.ScheduleZBVZeroBubble,
}


class TracedStage(pipelining.PipelineStage):  # type: ignore[misc]
    """A stage that tells the trace when a chunk computes and which way a tensor is sent."""

    def forward_one_chunk(self, fwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        with chunk("F", self.stage_index, fwd_chunk_id):
            return super().forward_one_chunk(fwd_chunk_id, *args, **kwargs)

    def backward_one_chunk(self, bwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        with chunk("B", self.stage_index, bwd_chunk_id):
            return super().backward_one_chunk(bwd_chunk_id, *args, **kwargs)

    def backward_weight_one_chunk(self, bwd_chunk_id: int, *args: Any, **kwargs: Any) -> Any:
        with chunk("W", self.stage_index, bwd_chunk_id):
            return super().backward_weight_one_chunk(bwd_chunk_id, *args, **kwargs)

    def get_fwd_send_ops(self, fwd_chunk_id: int) -> Any:
        return heading(super().get_fwd_send_ops(fwd_chunk_id), "forward")

    def get_bwd_send_ops(self, bwd_chunk_id: int) -> Any:
        return heading(super().get_bwd_send_ops(bwd_chunk_id), "backward")


class Pipeline:
    """This rank's stages under one schedule; `step` runs all microbatches, both ways."""

    def __init__(
        self,
        stages: dict[int, torch.nn.Module],
        examples: Callable[[int], tuple[Tensor, Tensor]],
        owners: Sequence[int],
        schedule: str,
        microbatches: int,
        loss: Loss,
        axes: Axes,
    ) -> None:
        """stages: stage index -> module; examples: stage index -> a microbatch's input and
        output (any values); owners: the pipeline rank of every stage."""
        count = len(owners)
        self.first, self.last = 0 in stages, count - 1 in stages
        built = [
            TracedStage(module, index, count, axes.device, *examples(index), group=axes.pp.group)
            for index, module in stages.items()
        ]
        traced = TracedLoss(loss, count - 1, microbatches)
        single = schedule in ("GPipe", "1F1B")
        self.schedule = SCHEDULES[schedule](
            built[0] if single else built, microbatches, loss_fn=traced, scale_grads=False
        )
        parameters = inspect.signature(self.schedule.step).parameters
        self.options = {"return_outputs": False} if "return_outputs" in parameters else {}

    def step(self, ids: Tensor, targets: Tensor) -> list[Tensor]:
        """ids and targets [global batch, s/cp]; the microbatches' losses on the last rank."""
        losses: list[Tensor] = []
        inputs = (ids,) if self.first else ()
        if self.last:
            self.options["target"] = targets
        self.schedule.step(*inputs, losses=losses, **self.options)
        return losses


def examples(
    decoders: dict[int, Decoder], micro_batch: int, tokens: int, dtype: torch.dtype
) -> Callable[[int], tuple[Tensor, Tensor]]:
    """Inputs and outputs of a microbatch by stage: no run is needed to find their shapes."""

    def example(index: int) -> tuple[Tensor, Tensor]:
        decoder = decoders[index]
        config, device = decoder.config, decoder.cos.device
        hidden = torch.empty(
            micro_batch, tokens, config.hidden, dtype=dtype, device=device, requires_grad=True
        )
        ids = torch.zeros(micro_batch, tokens, dtype=torch.long, device=device)
        rows = config.vocabulary // decoder.operations.tp
        logits = torch.empty(
            micro_batch, tokens, rows, dtype=dtype, device=device, requires_grad=True
        )
        part = decoder.part
        return (ids if part.embedding else hidden), (logits if part.head else hidden)

    return example
