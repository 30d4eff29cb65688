"""Is a mesh's training that of one process? Losses, every gradient, parameters after steps.

Each rank compares its shards with slices of the reference; squared norms add up over tp, so the
error of a parameter is exactly that of its gathered whole, ‖g - g₀‖ / ‖g₀‖.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.bench.finite import NotFinite, check_losses
from parlab.bench.parameters import checkpoint_name
from parlab.bench.training import Trainer
from parlab.lesson.files import write_whole

STEPS = 3
# The baseline's, in its job's folder; the last is written when all is there.
GRADIENTS, PARAMETERS, REFERENCE = "reference-gradients.pt", "reference-values.pt", "reference.pt"
Holder = tuple[str, int, int, int]


class Proof:
    """Follows the first steps of a training: a group's are compared, the baseline's are kept.

    What is compared is compared on the way, so that no copy of the model is held meanwhile.

    Args:
        folder: the baseline's job folder.
        keep: whether this is the baseline.
    """

    def __init__(self, trainer: Trainer, folder: Path, keep: bool) -> None:
        self._trainer, self._folder, self._keep = trainer, folder, keep
        if keep:
            (folder / REFERENCE).unlink(missing_ok=True)
        self._found: dict[str, tuple[float, str]] = {}

    def follows(self, step: int) -> bool:
        """Whether there is something to do after this step, counted from 0."""
        return step in (0, STEPS - 1)

    def after(self, step: int) -> None:
        """Looks at the first gradients or the last parameters. A collective call.

        Raises:
            NotFinite: one of them, or of the baseline's, is not finite.
        """
        shards = self._trainer.shards()
        if step == 0:
            self._look("gradient", {s.name: s.gradient.detach() for s in shards}, GRADIENTS)
        else:
            self._look("value", {s.name: s.value.detach() for s in shards}, PARAMETERS)

    def _look(self, what: str, tensors: dict[str, Tensor], name: str) -> None:
        _check(what, tensors)
        path = self._folder / name
        if self._keep:
            _save(tensors, path)
            return
        reference = torch.load(path, map_location="cpu", mmap=True)
        self._found[what] = _largest(self._trainer, what, tensors, reference)

    def outcome(self, losses: Sequence[float]) -> dict[str, Any] | None:
        """What a rank file calls correctness; None of the baseline.

        Args:
            losses: of the first steps, the same on every rank.
        """
        first = list(losses[:STEPS])
        if self._keep:
            _save(first, self._folder / REFERENCE)
            return None
        reference = torch.load(self._folder / REFERENCE)
        return _outcome(first, reference, self._found["gradient"], self._found["value"])


def _save(content: Any, path: Path) -> None:
    """`torch.save` into a file of ours: of its own it does not say why it cannot be written."""

    def write(place: Path) -> None:
        with place.open("wb") as file:
            torch.save(content, file)

    write_whole(path, write)


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
    losses = total_losses(trainer, result["losses"])
    gradient = _largest(trainer, "gradient", result["gradients"], reference["gradients"])
    value = _largest(trainer, "value", result["parameters"], reference["parameters"])
    return _outcome(losses, reference["losses"], gradient, value)


def _outcome(
    losses: Sequence[float],
    reference: Sequence[float],
    gradient: tuple[float, str],
    value: tuple[float, str],
) -> dict[str, Any]:
    check_losses(reference, "the baseline's")
    pairs = zip(losses, reference, strict=True)
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
