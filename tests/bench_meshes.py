"""Meshes against one process, many in one launch: `torchrun tests/bench_meshes.py FOLDER`.

FOLDER/cases.json lists the cases; FOLDER/reference-<model>.pt holds what one process got; each
case's comparison goes to FOLDER/results.json. As a module it has the cases and the models.
"""

from __future__ import annotations

import datetime
import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.distributed as dist

from parlab.bench.axes import build_axes, one_process
from parlab.bench.correctness import compare, train
from parlab.bench.mesh import Mesh
from parlab.bench.model import ModelConfig
from parlab.bench.parameters import EMBEDDING, HEAD, random_weights
from parlab.bench.tensor_parallel import distributed_state
from parlab.bench.traffic import counting
from parlab.bench.training import Plan, Trainer

SCHEDULES = ("GPipe", "1F1B", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble")
KINDS = ("plain", "tied")
PLAN = Plan(global_batch=8, micro_batch=1, sequence_length=32, learning_rate=1e-4)


def config(model: str) -> ModelConfig:
    """ "plain-8": 8 layers, untied, no QK norm. 8 KV heads for tp = 8."""
    kind, layers = model.split("-")[:2]
    tied = kind == "tied"
    return ModelConfig(int(layers), 32, 16, 8, 8, 40, 64, qk_norm=tied, tied_embeddings=tied)


def dtype(model: str) -> torch.dtype:
    """bfloat16 where the model's name ends in it."""
    return torch.bfloat16 if model.endswith("-bfloat16") else torch.float32


@dataclass(frozen=True)
class Case:
    pp: int
    cp: int
    tp: int
    schedule: str
    cp_method: str
    model: str
    split: str = "even"

    @property
    def mesh(self) -> Mesh:
        return Mesh(self.pp, self.cp, self.tp)

    @property
    def plan(self) -> Plan:
        loops = self.schedule.startswith("Interleaved")
        return replace(
            PLAN,
            schedule=self.schedule,
            cp_method=self.cp_method,
            split=self.split,
            chunks_per_rank=2 if loops else 1,
            dtype=dtype(self.model),
            micro_batch=1 if self.pp == 8 else 2,  # 1F1B needs as many microbatches as stages
        )


def meshes(world: int) -> list[tuple[int, int, int]]:
    sizes = [1, 2, 4, 8]
    return [m for m in itertools.product(sizes, repeat=3) if m[0] * m[1] * m[2] == world]


def model_names(cases: list[Case]) -> list[str]:
    return sorted({case.model for case in cases})


def all_cases(world: int) -> list[Case]:
    """Every mesh of this product × schedule (where pp > 1) × CP method (where cp > 1) × model.

    Eight ranks train the tied model with QK norms alone, which has every reduction that there is.
    """
    return [
        Case(pp, cp, tp, schedule, method, f"{kind}-{16 if pp == 8 else 8}")
        for pp, cp, tp in meshes(world)
        for schedule in (SCHEDULES if pp > 1 else SCHEDULES[1:2])
        for method in (("allgather", "ring") if cp > 1 else ("allgather",))
        for kind in (KINDS if world < 8 else KINDS[1:])
    ]


def batches(steps: int = 3) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    shape = (PLAN.global_batch, PLAN.sequence_length + 1)
    tokens = [torch.randint(0, 64, shape, generator=generator) for _ in range(steps)]
    return [(t[:, :-1].contiguous(), t[:, 1:].contiguous()) for t in tokens]


def reference(model: str) -> dict:
    plan = replace(PLAN, dtype=dtype(model))
    trainer = Trainer(config(model), plan, one_process(torch.device("cpu")), random_weights(1))
    return train(trainer, batches())


def _traffic(trainer: Trainer) -> list:
    """Each rank's rows of one steady step."""
    with counting(trainer.axes) as counter:
        trainer.step(*batches(1)[0])
    rows = [None] * trainer.axes.mesh.world_size
    dist.all_gather_object(rows, counter.rows())
    return rows


def _gathered_equals(trainer: Trainer, read) -> bool:
    """Whether the DTensors of the parameters gather to what was loaded (one layer and the ends)."""
    if trainer.axes.tp.size == 1 or trainer.plan.dtype != torch.float32:
        return True
    equal = True
    for decoder in trainer.decoders.values():
        state = distributed_state(decoder, trainer.axes.device_mesh["tp"])
        for name, tensor in state.items():
            if ".layers." not in name or ".layers.0." in name:
                whole = tensor.full_tensor()
                stored = name if name != HEAD or not trainer.config.tied_embeddings else EMBEDDING
                equal &= torch.equal(whole, read(stored, tuple(whole.shape)))
    return equal


def run(folder: Path) -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    cases = [Case(**case) for case in json.loads((folder / "cases.json").read_text())]
    references = {m: torch.load(folder / f"reference-{m}.pt") for m in model_names(cases)}
    axes, results = {}, []
    for case in cases:
        if case.mesh not in axes:
            axes[case.mesh] = build_axes(case.mesh, torch.device("cpu"))
        started = time.perf_counter()
        trainer = Trainer(config(case.model), case.plan, axes[case.mesh], random_weights(1))
        gathered = _gathered_equals(trainer, random_weights(1))
        outcome = compare(trainer, train(trainer, batches()), references[case.model])
        outcome["traffic"] = _traffic(trainer)
        outcome["gathered"] = gathered
        results.append({**asdict(case), **outcome, "seconds": time.perf_counter() - started})
        if dist.get_rank() == 0:
            (folder / "results.json").write_text(json.dumps(results, indent=1))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(Path(sys.argv[1]))
