"""The learner's ring attention in real processes, against torch's attention in one process."""

import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.lesson.attention import random_qkv
from parlab.lesson.rank_processes import ProcessCommunicator
from parlab.lesson.ring import CLOSE, NAMES, Ring, Yardstick, yardstick


def prove(
    learner: ModuleType,
    rank: int,
    world: int,
    say: Callable[[str], None],
    tokens: int = 96,
    heads: int = 6,
    kv_heads: int = 2,
    dim: int = 16,
) -> dict[str, Any]:
    """Outputs and gradients in float64 under both splits.

    Args:
        tokens: of the sequence, on all ranks together.

    Returns:
        ``splits``: for each its name, the largest difference of out, dq, dk and dv on any rank,
        the bytes that rank 0 has sent, and seconds; ``tokens``, ``heads``, ``kv_heads``.

    Raises:
        AssertionError: something differs by more than 1e-10, or bytes were counted wrongly.
    """
    q, k, v = random_qkv(2, heads, kv_heads, tokens, dim)
    whole = yardstick(q, k, v)
    halves = learner.head_tail(tokens, world)
    rows = []
    for name, positions, inverse in (
        ("contiguous", torch.arange(tokens).view(world, -1), list(range(tokens))),
        ("head-tail", torch.tensor(halves["positions"]), halves["inverse"]),
    ):
        began = time.perf_counter()
        row = {"split": name, **_errors(learner, rank, (q, k, v), positions, inverse, whole)}
        row["seconds"] = time.perf_counter() - began
        worst = max(row[error] for error in ("out", "dq", "dk", "dv"))
        say(f"{name}: {row['sent']} bytes, |error| ≤ {worst:.1e}, {row['seconds']:.2f} s")
        rows.append(row)
    return {"splits": rows, "tokens": tokens, "heads": heads, "kv_heads": kv_heads}


def _errors(
    learner: ModuleType,
    rank: int,
    qkv: tuple[Tensor, ...],
    positions: Tensor,
    inverse: list[int],
    whole: Yardstick,
) -> dict[str, Any]:
    mine, ring = positions[rank], Ring(ProcessCommunicator())
    own = [x[:, :, mine].requires_grad_() for x in qkv]
    out, sent = learner.ring_attention(ring, *own, positions.clone())
    counted = sum(record.bytes for record in ring.log if record.direction == "forward")
    assert sent == counted, f"rank {rank}: sent = {sent}, but {counted} bytes went out"
    ring.backward(out, whole.upstream[:, :, mine])
    gathered = [torch.empty_like(out) for _ in positions]
    dist.all_gather(gathered, out.detach().contiguous())
    restored = torch.cat(gathered, dim=2)[:, :, inverse]
    found = {"out": float((restored - whole.out).abs().max()), **dict(_gradients(own, mine, whole))}
    for name, error in found.items():
        assert error <= CLOSE, f"rank {rank}: {name} differs from one process by {error:.3g}"
    worst = torch.tensor(list(found.values()), dtype=torch.float64)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    return {**dict(zip(found, worst.tolist(), strict=True)), "sent": sent}


def _gradients(own: list[Tensor], mine: Tensor, whole: Yardstick) -> Iterator[tuple[str, float]]:
    for name, leaf, right in zip(NAMES, own, whole.gradients, strict=True):
        missing = leaf.grad is None
        yield (
            f"d{name}",
            float("inf") if missing else float((leaf.grad - right[:, :, mine]).abs().max()),
        )


def show_proof(report: dict[str, Any]) -> None:
    """The report as a table."""
    print(f"{'split':<12}{'out':>10}{'dq':>10}{'dk':>10}{'dv':>10}{'bytes sent':>13}")
    for row in report["splits"]:
        errors = "".join(f"{row[name]:>10.1e}" for name in ("out", "dq", "dk", "dv"))
        print(f"{row['split']:<12}{errors}{row['sent']:>13}")
