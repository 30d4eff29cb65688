"""Lesson 01's proof: the learner's order in real processes, beside its simulation and torch's own.

Stages sleep for the time that they cost, so the result depends on the order and on real messages
between processes, not on how fast the machine computes.
"""

import time
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from parlab.lesson.draw_timeline import Timeline, draw_timelines
from parlab.lesson.pipeline_charts import Op, Orders, Spans, word_of

# Embedding, twelve layers and a dear LM head: by cost, each of 4 stages sleeps 20 ms forward.
COSTS, UNIT_S = [0, *[2] * 12, 8], 0.0025
REPEATS = 2
LABELS = {"even": "layers split evenly", "cost": "layers split by cost"}


def prove(
    learner: ModuleType,
    rank: int,
    world: int,
    say: Callable[[str], None],
    words: dict[str, str],
    microbatches: int = 8,
) -> dict[str, Any] | None:
    """Runs on every rank, a stage a rank; see `parlab.lesson.proof.run_proof`.

    Args:
        words: what to say: ``order`` (``{count}``), ``differs`` (``{rank}``,
            ``{yours}``, ``{torch}``), ``timed`` (``{name}``, ``{measured}``, ``{simulated}``,
            ``{step}``), and the names of the two runs: ``even``, ``cost``.

    Raises:
        AssertionError: torch runs the chunks of a rank in another order.
    """
    count = 0
    for number in (world, microbatches):
        mine = learner.one_f_one_b(rank, world, number)
        theirs = torch_order(rank, world, number)
        assert mine == theirs, words["differs"].format(
            rank=rank, yours=" ".join(map(word_of, mine)), torch=" ".join(map(word_of, theirs))
        )
        count += len(mine)
    say(words["order"].format(count=count))
    transfer = measured_transfer(rank, world)
    orders = [learner.one_f_one_b(stage, world, microbatches) for stage in range(world)]
    even = [len(COSTS) // world + (stage < len(COSTS) % world) for stage in range(world)]
    runs = []
    for name, sizes in (("even", even), ("cost", learner.split_layers(COSTS, world))):
        forward = stage_seconds(sizes)
        times = {"F": forward, "B": [2 * seconds for seconds in forward]}
        run = timed(orders, times, rank, world)
        simulated = learner.simulate(orders, times, transfer)
        run |= {"label": LABELS[name], "name": words[name], "simulated": simulated["bubble"]}
        runs.append(run)
        numbers = {key: f"{run[key]:.3f}" for key in ("measured", "simulated")}
        say(words["timed"].format(name=run["name"], step=f"{run['step_ms']:.0f}", **numbers))
    return {"transfer_ms": transfer * 1e3, "runs": runs}


def stage_seconds(sizes: Sequence[int]) -> list[float]:
    """Forward seconds of each stage that holds so many of the layers in `COSTS`."""
    edges = [sum(sizes[:stage]) for stage in range(len(sizes) + 1)]
    return [UNIT_S * sum(COSTS[a:b]) for a, b in zip(edges, edges[1:], strict=False)]


def torch_order(rank: int, world: int, microbatches: int) -> list[Op]:
    """The chunks that torch's own ``Schedule1F1B`` runs on this rank, in the order it runs them."""
    import torch
    from torch.distributed import pipelining

    ran: list[Op] = []

    class Watched(pipelining.PipelineStage):  # type: ignore[misc]
        def forward_one_chunk(self, number: int, *args: Any, **kwargs: Any) -> Any:
            ran.append(("F", self.stage_index, number))
            return super().forward_one_chunk(number, *args, **kwargs)

        def backward_one_chunk(self, number: int, *args: Any, **kwargs: Any) -> Any:
            ran.append(("B", self.stage_index, number))
            return super().backward_one_chunk(number, *args, **kwargs)

    batch = torch.zeros(microbatches, 4)
    example = torch.zeros(1, 4, requires_grad=rank > 0), torch.zeros(1, 4, requires_grad=True)
    model, device = torch.nn.Linear(4, 4), torch.device("cpu")
    stage = Watched(model, rank, world, device, example[0], example[1])
    schedule = pipelining.Schedule1F1B(stage, microbatches, loss_fn=lambda out, target: out.sum())
    inputs = [batch] if rank == 0 else []
    targets = {"target": batch} if rank == world - 1 else {}
    schedule.step(*inputs, **targets)
    return ran


def measured_transfer(rank: int, world: int, trips: int = 30) -> float:
    """Seconds from one rank to the next: half a round trip between ranks 0 and 1, the median."""
    import torch
    import torch.distributed as dist

    seconds = torch.zeros(1, dtype=torch.float64)
    if world > 1 and rank < 2:
        ball, halves = torch.zeros(8), []
        for _ in range(trips):
            begin = time.perf_counter()
            for sender in (0, 1):
                if rank == sender:
                    dist.send(ball, 1 - rank)
                else:
                    dist.recv(ball, 1 - rank)
            halves.append((time.perf_counter() - begin) / 2)
        seconds[0] = sorted(halves)[trips // 2]
    dist.broadcast(seconds, 0)
    return float(seconds)


def timed(orders: Orders, times: dict[str, list[float]], rank: int, world: int) -> dict[str, Any]:
    """The least disturbed of some runs of the orders: spans in ms, step and bubble ratio."""
    import torch.distributed as dist

    runs: list[tuple[float, Spans]] = []
    for _ in range(REPEATS):
        rows: list[Any] = [None] * world
        dist.all_gather_object(rows, run_order(orders[rank], times, rank, world))
        begin = min(start for row in rows for start, _ in row)
        spans = [[((a - begin) * 1e3, (b - begin) * 1e3) for a, b in row] for row in rows]
        runs.append((max(stop for row in spans for _, stop in row), spans))
    step, spans = min(runs)
    busy = sum(stop - start for row in spans for start, stop in row)
    measured = 1 - busy / (world * step)
    return {"orders": orders, "spans": spans, "step_ms": step, "measured": measured}


def run_order(
    order: Sequence[Op], times: dict[str, list[float]], rank: int, world: int
) -> list[tuple[float, float]]:
    """This rank's chunks for real: wait for what comes in, sleep, send on; begin and end of each.

    The ranks begin together: they agree on a time on the machine's clock.
    """
    import torch
    import torch.distributed as dist

    waiting: list[Any] = []
    begin = torch.tensor([time.perf_counter()], dtype=torch.float64)
    dist.all_reduce(begin, dist.ReduceOp.MAX)
    sleep_until(float(begin) + 0.02)
    spans = []
    for kind, stage, number in order:
        ahead = 1 if kind == "F" else -1
        source, target = stage - ahead, stage + ahead
        tag = 2 * number + (kind == "B")
        if 0 <= source < world:
            dist.recv(torch.empty(8), source, tag=tag)
        start = time.perf_counter()
        sleep_until(start + times[kind][stage])
        spans.append((start, time.perf_counter()))
        if 0 <= target < world:
            waiting.append(dist.isend(torch.zeros(8), target, tag=tag))
    for sent in waiting:
        sent.wait()
    return spans


def sleep_until(moment: float) -> None:
    """Sleeps, and spends the last half millisecond awake: a sleep alone ends too late."""
    left = moment - time.perf_counter() - 0.0005
    if left > 0:
        time.sleep(left)
    while time.perf_counter() < moment:
        pass


def show(report: dict[str, Any]) -> None:
    """The measured timelines, each with its bubble beside the simulated one."""
    timelines = []
    for run in report["runs"]:
        orders = [[(op[0], op[1], op[2]) for op in order] for order in run["orders"]]
        spans = [[(start, stop) for start, stop in row] for row in run["spans"]]
        bubbles = f"{run['measured']:.3f} measured, {run['simulated']:.3f} simulated"
        timelines.append(Timeline(f"{run['label']}: bubble {bubbles}", orders, spans))
    draw_timelines(*timelines, unit="ms, measured")


def summary(report: dict[str, Any]) -> tuple[float, float]:
    """Milliseconds of a transfer, and the most that measured and simulated bubbles differ."""
    apart = [abs(run["measured"] - run["simulated"]) for run in report["runs"]]
    return report["transfer_ms"], max(apart)
