"""Is a mesh's training that of one process? Losses, every gradient, parameters after steps.

Each rank compares its shards with slices of the reference; squared norms add up over tp, so the
error of a parameter is exactly that of its gathered whole, ‖g - g₀‖ / ‖g₀‖.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.bench.finite import NotFinite, check_losses
from parlab.bench.parameters import checkpoint_name
from parlab.bench.training import Trainer

STEPS = 3
Holder = tuple[str, int, int, int]


def train(trainer: Trainer, batches: Sequence[tuple[Tensor, Tensor]]) -> dict[str, Any]:
    """Train on the batches: losses (this rank's shares), first gradients, last parameters.

    Raises:
        NotFinite: one of them is not finite.
    """
    losses, gradients = [], {}
    for step, (ids, targets) in enumerate(batches):
        losses.append(float(trainer.step(ids, targets)))
        if step == 0:
            gradients = {s.name: s.gradient.clone() for s in trainer.shards()}
    values = {s.name: s.value.clone() for s in trainer.shards()}
    check_losses(losses)
    _check("gradient", gradients)
    _check("value", values)
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

    Raises:
        NotFinite: the reference is not finite, or is zero where a group's gradient is not.
    """
    check_losses(reference["losses"], "the baseline's")
    losses = total_losses(trainer, result["losses"])
    pairs = zip(losses, reference["losses"], strict=True)
    gradient = _largest(trainer, "gradient", result["gradients"], reference["gradients"])
    value = _largest(trainer, "value", result["parameters"], reference["parameters"])
    return {
        "loss_difference": max(abs(ours - theirs) for ours, theirs in pairs),
        "largest_gradient_error": gradient[0],
        "parameter": gradient[1],
        "largest_parameter_error": value[0],
        "parameters_after_steps": len(losses),
        "reason": None,
    }


def _check(what: str, tensors: dict[str, Tensor], remedy: str = "") -> None:
    for name, tensor in tensors.items():
        if bool(tensor.isfinite().all()):
            continue
        bad = tensor[~tensor.isfinite()]
        raise NotFinite(
            f"the {what} of {name} is {float(bad[0])} in {bad.numel()} of {tensor.numel()} entries"
            + remedy
        )


def _largest(
    trainer: Trainer, what: str, ours: dict[str, Tensor], reference: dict[str, Tensor]
) -> tuple[float, str]:
    """The largest relative error over all parameters of all ranks, and whose it is."""
    squares = _squares(trainer, what, ours, reference)
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
    ratios = {holder: _ratio(*total) for holder, total in sums.items()}
    for holder, ratio in ratios.items():
        if not math.isfinite(ratio):
            raise NotFinite(
                f"the {what} of {holder[0]} has the size {sums[holder][0] ** 0.5:.1e} where the "
                "baseline's is 0: this mesh trains something else"
            )
    return max((ratio, holder[0]) for holder, ratio in ratios.items())


def _squares(
    trainer: Trainer, what: str, ours: dict[str, Tensor], reference: dict[str, Tensor]
) -> dict[Holder, tuple[float, float]]:
    """‖ours - reference‖² and ‖reference‖² by holder of a whole parameter: all of tp where it is
    cut, each rank of tp where it is replicated; every pp and cp rank for itself."""
    axes, result = trainer.axes, {}
    for shard in trainer.shards():
        name = checkpoint_name(shard, trainer.config)
        expected = shard.cut(reference[name], axes.tp.index, axes.tp.size).double()
        _check(f"baseline's {what}", {name: expected}, ": run the baseline again")
        error = ours[shard.name].detach().cpu().double() - expected
        copy = -1 if shard.dim is not None else axes.tp.index
        holder = (shard.name, axes.pp.index, axes.cp.index, copy)
        result[holder] = (float(error.square().sum()), float(expected.square().sum()))
    return result


def _ratio(error: float, norm: float) -> float:
    """The relative error from two sums of squares; infinite where only the second is zero."""
    if error == 0:
        return 0.0
    return math.inf if norm == 0 else float((error / norm) ** 0.5)
