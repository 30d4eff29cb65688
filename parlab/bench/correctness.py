"""Is a mesh's training that of one process? Losses, every gradient, parameters after steps.

Each rank compares its shards with slices of the reference; squared norms add up over tp, so the
error of a parameter is exactly that of its gathered whole, ‖g - g₀‖ / ‖g₀‖.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.bench.parameters import checkpoint_name
from parlab.bench.training import Trainer

STEPS = 3
Holder = tuple[str, int, int, int]


def train(trainer: Trainer, batches: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Any]:
    """Train on the batches: losses (this rank's shares), first gradients, last parameters."""
    losses, gradients = [], {}
    for step, (ids, targets) in enumerate(batches):
        losses.append(float(trainer.step(ids, targets)))
        if step == 0:
            gradients = {s.name: s.gradient.clone() for s in trainer.shards()}
    values = {s.name: s.value.clone() for s in trainer.shards()}
    return {"losses": losses, "gradients": gradients, "parameters": values}


def total_losses(trainer: Trainer, shares: Sequence[float]) -> list[float]:
    """The losses, known to every rank, from each rank's shares."""
    if trainer.axes.mesh.world_size == 1:
        return list(shares)
    total = torch.tensor(shares, dtype=torch.float64) / trainer.axes.tp.size
    dist.all_reduce(total)
    return [float(loss) for loss in total]


def compare(trainer: Trainer, result: dict[str, Any], reference: dict[str, Any]) -> dict[str, Any]:
    """What a rank file calls correctness, the same on every rank. A collective call.

    The gradients are those of the first step; parameters are compared after the last.
    """
    losses = total_losses(trainer, result["losses"])
    pairs = zip(losses, reference["losses"], strict=True)
    gradient = _largest(trainer, result["gradients"], reference["gradients"])
    value = _largest(trainer, result["parameters"], reference["parameters"])
    return {
        "loss_difference": max(abs(ours - theirs) for ours, theirs in pairs),
        "largest_gradient_error": gradient[0],
        "parameter": gradient[1],
        "largest_parameter_error": value[0],
        "parameters_after_steps": len(losses),
        "reason": None,
    }


def _largest(
    trainer: Trainer, ours: dict[str, Tensor], reference: dict[str, Tensor]
) -> tuple[float, str]:
    """The largest relative error over all parameters of all ranks, and whose it is."""
    squares = _squares(trainer, ours, reference)
    everyone: list[Any] = [squares]
    if trainer.axes.mesh.world_size > 1:
        everyone = [None] * trainer.axes.mesh.world_size
        dist.all_gather_object(everyone, squares)
    sums: dict[Holder, list[float]] = {}
    for per_rank in everyone:
        for holder, (error, norm) in per_rank.items():
            total = sums.setdefault(holder, [0.0, 0.0])
            total[0] += error
            total[1] += norm
    return max((_ratio(*total), holder[0]) for holder, total in sums.items())


def _squares(
    trainer: Trainer, ours: dict[str, Tensor], reference: dict[str, Tensor]
) -> dict[Holder, tuple[float, float]]:
    """‖ours - reference‖² and ‖reference‖² by holder of a whole parameter: all of tp where it is
    cut, each rank of tp where it is replicated; every pp and cp rank for itself."""
    axes, result = trainer.axes, {}
    for shard in trainer.shards():
        full = reference[checkpoint_name(shard, trainer.config)]
        expected = shard.cut(full, axes.tp.index, axes.tp.size).double()
        error = ours[shard.name].detach().cpu().double() - expected
        copy = -1 if shard.dim is not None else axes.tp.index
        holder = (shard.name, axes.pp.index, axes.cp.index, copy)
        result[holder] = (float(error.square().sum()), float(expected.square().sum()))
    return result


def _ratio(error: float, norm: float) -> float:
    """NaN counts as infinitely wrong, since max() would pass over it."""
    if error == 0:
        return 0.0
    ratio = float("inf") if norm == 0 else (error / norm) ** 0.5
    return ratio if ratio == ratio else float("inf")
