"""How fast the engine is, against the yardsticks: `python benchmarks/speed.py [NAME ...]`.

    loop  one rank of the engine against a bare loop over the same modules
    tp2   tensor parallelism on 2 ranks against plain DTensor
    tp4   the same on 4 ranks
    pp2   2 stages, even and by cost, against one rank

Variants alternate in one launch, one thread a rank, after 3 warm-ups. A figure is the median of
paired ratios of step times; the yardstick also runs against itself, and where that median is off
by more than 5 % the run is void: something else was using the machine.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

from parlab.bench.axes import build_axes, one_process
from parlab.bench.kernels import causal_attention, rotate
from parlab.bench.mesh import Mesh
from parlab.bench.model import MLP, Attention, Decoder, FusedLinear, ModelConfig, Operations
from parlab.bench.parameters import random_weights
from parlab.bench.training import Plan, Trainer

MODEL = ModelConfig(8, 256, 8, 4, 32, 688, 4096)
PLAN = Plan(global_batch=8, micro_batch=1, sequence_length=256, learning_rate=1e-3)
RANKS = {"loop": 1, "tp2": 2, "tp4": 4, "pp2": 2}
WANTED = {"loop": 1 / 1.05, "tp2": 1.5, "tp4": 1.7, "pp2 even": 1.4, "pp2 cost": 1.5}
WARM_UPS, SAME = 3, 0.05
Step = Callable[[], Any]


class SeparateAttention(Attention):
    """The engine's attention with one module a projection, as `parallelize_module` wants it."""

    def separate(self, hidden: int) -> SeparateAttention:
        for name, rows in self.qkv.parts.items():
            self.add_module(name, nn.Linear(hidden, rows, bias=False))
        del self.qkv
        return self

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        b, s, _ = x.shape
        heads = (
            p(x).view(b, s, -1, self.head_dim) for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        q, k, v = heads
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        out = causal_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        return self.o_proj(out.transpose(1, 2).reshape(b, s, -1))


class SeparateMLP(MLP):
    """The engine's MLP with gate and up apart."""

    def separate(self, hidden: int) -> SeparateMLP:
        for name, rows in self.gate_up.parts.items():
            self.add_module(name, nn.Linear(hidden, rows, bias=False))
        del self.gate_up
        return self

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class CalledEmbedding(Operations):
    """Looks up through the embedding module, whose hooks make DTensors."""

    def __init__(self, decoder: Decoder) -> None:
        self.decoder = [decoder]  # a list, so that the decoder does not hold itself

    def embed(self, ids: Tensor, weight: Tensor) -> Tensor:
        return self.decoder[0].model.embed_tokens(ids)


def plain_dtensor(ranks: int) -> nn.Module:
    """The decoder under DTensor: what torch's own tutorial does, with replicated logits."""
    decoder = Decoder(MODEL, torch.arange(PLAN.sequence_length))
    decoder.operations = CalledEmbedding(decoder)
    plan: dict[str, Any] = {
        "model.embed_tokens": RowwiseParallel(input_layouts=Replicate()),
        "lm_head": ColwiseParallel(output_layouts=Replicate()),
    }
    for index, layer in decoder.model.layers.items():
        layer.self_attn.__class__, layer.mlp.__class__ = SeparateAttention, SeparateMLP
        layer.self_attn.separate(MODEL.hidden)
        layer.mlp.separate(MODEL.hidden)
        path = f"model.layers.{index}"
        for name in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"):
            plan[f"{path}.{name}"] = ColwiseParallel()
        for name in ("mlp.gate_proj", "mlp.up_proj"):
            plan[f"{path}.{name}"] = ColwiseParallel()
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            plan[f"{path}.{name}"] = RowwiseParallel()
    assert not any(isinstance(module, FusedLinear) for module in decoder.modules())
    return parallelize_module(decoder, init_device_mesh("cpu", (ranks,)), plan)


def bare_loop(decoder: nn.Module) -> Step:
    """Forward, backward, AdamW over the microbatches, and nothing else."""
    sharded = [p for p in decoder.parameters() if isinstance(p, DTensor)]
    whole = [p for p in decoder.parameters() if not isinstance(p, DTensor)]
    groups = [{"params": group} for group in (sharded, whole) if group]
    optimizer = torch.optim.AdamW(groups, lr=PLAN.learning_rate, fused=True)
    ids, targets = batch()
    tokens = ids.numel()

    def step() -> None:
        optimizer.zero_grad()
        pairs = zip(ids.chunk(PLAN.microbatches), targets.chunk(PLAN.microbatches), strict=True)
        for inputs, wanted in pairs:
            logits = decoder(inputs).flatten(0, 1)
            (F.cross_entropy(logits, wanted.flatten(), reduction="sum") / tokens).backward()
        optimizer.step()

    return step


def batch() -> tuple[Tensor, Tensor]:
    shape = (PLAN.global_batch, PLAN.sequence_length + 1)
    tokens = torch.randint(0, MODEL.vocabulary, shape, generator=torch.Generator().manual_seed(1))
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()


def engine(mesh: Mesh, split: str = "even") -> Step:
    """A step of the engine on a mesh of the whole world; a mesh of one runs on rank 0 alone."""
    device = torch.device("cpu")
    axes = one_process(device) if mesh.world_size == 1 else build_axes(mesh, device)
    plan = Plan(8, 1, PLAN.sequence_length, split=split, learning_rate=PLAN.learning_rate)
    trainer = Trainer(MODEL, plan, axes, random_weights(1))
    ids, targets = batch()
    if mesh.world_size == 1 and dist.get_rank() > 0:
        return lambda: None
    return lambda: trainer.step(ids, targets)


def variants(name: str) -> dict[str, Step]:
    """The yardstick first."""
    ranks = RANKS[name]
    if name == "loop":
        decoder = Decoder(MODEL, torch.arange(PLAN.sequence_length))
        for parameter in decoder.parameters():
            nn.init.normal_(parameter, std=0.05)
        return {"bare loop": bare_loop(decoder), "loop": engine(Mesh())}
    if name == "pp2":
        return {
            "one rank": engine(Mesh()),
            "pp2 even": engine(Mesh(pp=2)),
            "pp2 cost": engine(Mesh(pp=2), "cost"),
        }
    return {"DTensor": bare_loop(plain_dtensor(ranks)), name: engine(Mesh(tp=ranks))}


def timed(step: Step) -> float:
    """Seconds until the last rank has finished, from a common start."""
    dist.barrier()
    begin = time.perf_counter()
    step()
    dist.barrier()
    return time.perf_counter() - begin


def compare(name: str, pairs: int) -> dict[str, list[float]]:
    """Step times by variant, with the yardstick a second time; the order turns round by round."""
    steps = variants(name)
    order = [*steps.items(), ("again", next(iter(steps.values())))]
    times: dict[str, list[float]] = {label: [] for label, _ in order}
    for number in range(WARM_UPS + pairs):
        turn = number % len(order)
        for label, step in order[turn:] + order[:turn]:
            seconds = timed(step)
            if number >= WARM_UPS:
                times[label].append(seconds)
    return times


def rank(name: str, pairs: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=120))
    times = compare(name, pairs)
    if dist.get_rank() == 0:
        print(json.dumps(times))
    dist.barrier()
    dist.destroy_process_group()


def launch(name: str, pairs: int) -> dict[str, list[float]]:
    root = Path(__file__).resolve().parent.parent
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        f"--nproc-per-node={RANKS[name]}",
        __file__,
        name,
        f"--pairs={pairs}",
        "--rank",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=1800, check=True
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def report(times: dict[str, list[float]]) -> bool:
    """Print one line a figure; whether each holds."""
    (base, reference), *others = times.items()
    again = statistics.median(a / b for a, b in zip(times["again"], reference, strict=True))
    tokens = PLAN.global_batch * PLAN.sequence_length
    print(f"{base}: {tokens / statistics.median(reference):.0f} tokens/s, A/A {again:.3f}")
    if abs(again - 1) > SAME:
        print(f"  void: the yardstick against itself is off by more than {SAME:.0%}")
        return False
    held = True
    for label, own in others:
        if label == "again":
            continue
        ratio = statistics.median(b / a for a, b in zip(own, reference, strict=True))
        rate = tokens / statistics.median(own)
        held &= ratio >= WANTED[label]
        print(f"  {label}: {rate:.0f} tokens/s, {ratio:.2f} times, wanted {WANTED[label]:.2f}")
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*RANKS, []], help="which; all if none")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--rank", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.names or list(RANKS)
    if arguments.rank:
        rank(names[0], arguments.pairs)
        return 0
    return 0 if all([report(launch(name, arguments.pairs)) for name in names]) else 1


if __name__ == "__main__":
    sys.exit(main())
