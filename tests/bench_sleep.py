"""Stages that sleep, traced: `torchrun tests/bench_sleep.py FOLDER`.

A chunk takes 20 ms forward and 40 ms backward whatever the cores do, so the bubble is known:
(p - 1) / (v · m + p - 1) of the step (arXiv 2104.04473 section 2.2).
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist

from parlab.bench.axes import build_axes
from parlab.bench.collectives import Axis
from parlab.bench.measure import ratios, split_step
from parlab.bench.mesh import Mesh
from parlab.bench.pipeline import Pipeline
from parlab.bench.split import owners
from parlab.bench.trace import Label, chunk, recording, start

FORWARD_S, BACKWARD_S = 0.020, 0.040


class _Sleep(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        time.sleep(FORWARD_S)
        return x * 1.0

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(BACKWARD_S)
        return gradient, torch.zeros(())


class Stage(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return _Sleep.apply(x, self.weight)


def traced_step(axes, schedule: str, microbatches: int, size: int) -> dict[str, float]:
    """The ratios of the least disturbed of five traced steps, the shortest, after a warm-up."""
    where = owners(schedule, axes.pp.size, 2)
    stages = {i: Stage() for i, owner in enumerate(where) if owner == axes.pp.index}

    def examples(index: int):
        return torch.zeros(1, size, requires_grad=index > 0), torch.zeros(1, size).requires_grad_()

    def loss(output, target):
        return output[0, 0] * target.sum()

    pipeline = Pipeline(stages, examples, where, schedule, microbatches, loss, axes)
    inputs, targets = torch.zeros(microbatches, size), torch.ones(microbatches, 1)
    pipeline.step(inputs, targets)
    steps = [measured(lambda: pipeline.step(inputs, targets)) for _ in range(5)]
    return min(steps, key=lambda step: step["seconds"])


def measured(work) -> dict[str, float]:
    dist.barrier()
    with recording(torch.device("cpu")) as recorder:
        begin = time.perf_counter()
        work()
        end = time.perf_counter()
    trace = {"start": begin, "end": end, "events": recorder.events}
    documents = [None] * dist.get_world_size()
    dist.all_gather_object(
        documents, {"rank": dist.get_rank(), "clock_offset_s": 0.0, "trace": trace}
    )
    step, splits = split_step(documents)
    return {"seconds": step[1] - step[0], **ratios(step, splits)}


def overlapped(axis: Axis) -> dict[str, float]:
    """A sum that is posted before 60 ms of work and waited for after it, then one that blocks."""
    values = torch.ones(1 << 18)

    def work() -> None:
        with chunk("F", 0, 0):
            pending = start(
                Label("pp", "forward", "layers"), "all_reduce", axis.ranks,
                lambda: [dist.all_reduce(values, group=axis.group, async_op=True)],
            )  # fmt: skip
            time.sleep(0.060)
            pending.wait()

    work()
    return measured(work)


def run(folder: Path) -> None:
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
    axes = build_axes(Mesh(pp=dist.get_world_size()), torch.device("cpu"))
    cases = json.loads((folder / "cases.json").read_text())
    results = [
        {"case": case, **(overlapped(axes.pp) if case == "overlap" else traced_step(axes, *case))}
        for case in cases
    ]
    if dist.get_rank() == 0:
        (folder / "results.json").write_text(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    run(Path(sys.argv[1]))
