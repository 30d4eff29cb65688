"""What a rank does in a job, phase by phase: build, warm up, measure, trace, prove correct."""

from __future__ import annotations

import datetime
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.bench import checkpoint, correctness, host
from parlab.bench.axes import build_axes
from parlab.bench.data import Batches, read_text, tokenize
from parlab.bench.finite import check_losses
from parlab.bench.mesh import Mesh
from parlab.bench.model import Decoder, ModelConfig
from parlab.bench.parameters import random_weights
from parlab.bench.trace import recording
from parlab.bench.traffic import counting
from parlab.bench.training import Plan, Read, Trainer

PATIENCE_S = 120.0  # beyond the driver's timeout, so that the driver is the one who blames


class JobLike(Protocol):
    """What `rank.Job` offers."""

    folder: Path
    content: dict[str, Any]
    workload: dict[str, Any]

    def progress(self, phase: str, step: int = 0, of: int = 0) -> None: ...


def run(job: JobLike) -> dict[str, Any]:
    """All phases; returns the content of rank-<rank>.json."""
    device = _device(str(job.content.get("device", "cpu")))
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    patience = float(job.content.get("timeout_s", 0) or job.workload["run"]["timeout_s"])
    dist.init_process_group(
        backend, timeout=datetime.timedelta(seconds=patience + PATIENCE_S),
        device_id=device if device.type == "cuda" else None,
    )  # fmt: skip
    session = Session(job, device)
    document = session.document()
    dist.barrier()
    dist.destroy_process_group()
    return document


def _device(kind: str) -> torch.device:
    if kind != "cuda":
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(device)
    return device


class Session:
    """One rank between the start and the end of its process group."""

    def __init__(self, job: JobLike, device: torch.device) -> None:
        self.job, self.device = job, device
        job.progress("build")
        tables = job.workload
        self.config = ModelConfig.from_dict(tables["model"])
        self.plan = plan(tables)
        self.axes = build_axes(Mesh(**job.content["mesh"]), device)
        self.read = weights(tables["model"])
        self.batches = batches(tables)
        self.trainer = Trainer(self.config, self.plan, self.axes, self.read)
        self.shares: list[Tensor] = []
        self.proof = self._proof()
        self.peak, self.memory_source, self.peak_is_ours = 0.0, "", True
        self.offset = host.clock_offset()

    def document(self) -> dict[str, Any]:
        run = self.job.workload["run"]
        host.reset_peak(self.device)
        self._steps("warmup", run["warmup"])
        steps = self._steps("measure", run["repeats"])
        self._note_peak()
        trace, traffic = self._trace()
        losses = self._losses()
        return {
            "rank": dist.get_rank(), "coordinate": self.axes.coordinate,
            "host": socket.gethostname(), "pid": os.getpid(), "clock_offset_s": self.offset,
            "steps": steps, "trace": trace, "traffic": traffic,
            "peak_memory_mb": self.peak, "memory_source": self.memory_source, "loss": losses,
            "parameters": {"count": self._count(), "local_count": self._local_count()},
            "correctness": self.proof.outcome(losses) if self.proof else None,
        }  # fmt: skip

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()

    def _step(self) -> dict[str, float]:
        ids, targets = self.batches(len(self.shares))
        dist.barrier()  # not timed: every step starts with all ranks ready
        start = self._now()
        share = self.trainer.step(ids, targets)
        end = self._now()
        self._ended(share)
        return {"start": start, "end": end}

    def _ended(self, share: Tensor) -> None:
        """After a step: what is compared with the baseline must not count as its memory."""
        self.shares.append(share)
        step = len(self.shares) - 1
        if self.proof and self.proof.follows(step):
            self._note_peak()
            self._losses()
            self.proof.after(step)
            self.peak_is_ours = host.reset_peak(self.device)

    def _losses(self) -> list[float]:
        """Of all steps so far, known to every rank. A collective call.

        Raises:
            NotFinite: training has diverged.
        """
        shares = [float(share) for share in self.shares]
        losses = correctness.total_losses(self.trainer, shares)
        check_losses(losses)
        return losses

    def _note_peak(self) -> None:
        if self.peak_is_ours:
            memory, self.memory_source = host.peak_memory(self.device)
            self.peak = max(self.peak, memory)

    def _steps(self, phase: str, count: int) -> list[dict[str, float]]:
        times = []
        for number in range(1, count + 1):
            self.job.progress(phase, number, count)
            times.append(self._step())
        return times

    def _trace(self) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """One step recorded, another counted: counting slows what it sees down."""
        self.job.progress("trace", 1, 2)
        with recording(self.device) as recorder:
            times = self._step()
        self.job.progress("trace", 2, 2)
        ids, targets = self.batches(len(self.shares))
        with counting(self.axes) as counter:
            share = self.trainer.step(ids, targets)
        self._ended(share)
        events = sorted(recorder.events, key=lambda event: event["start"])
        return {**times, "events": events}, counter.rows()

    def _proof(self) -> correctness.Proof | None:
        """The baseline keeps what its first steps come to, a group compares; None without one."""
        reference = self.job.content["reference"]
        if reference is None:
            alone = self.axes.mesh.world_size == 1
            return correctness.Proof(self.trainer, self.job.folder, keep=True) if alone else None
        folder = Path(reference)
        if not (folder / correctness.REFERENCE).is_file():
            return None
        return correctness.Proof(self.trainer, folder, keep=False)

    def _count(self) -> int:
        """Parameters of the whole model, a tied head once."""
        with torch.device("meta"):
            whole = Decoder(self.config, torch.arange(1))
        return sum(parameter.numel() for parameter in whole.parameters())

    def _local_count(self) -> int:
        return sum(parameter.numel() for parameter in self.trainer.parameters())


def plan(tables: dict[str, Any]) -> Plan:
    """The training plan in a workload's [batch] and [run] tables."""
    batch, run = tables["batch"], tables["run"]
    return Plan(
        global_batch=batch["global_batch"], micro_batch=batch["micro_batch"],
        sequence_length=batch["sequence_length"], schedule=run["schedule"],
        chunks_per_rank=run["chunks_per_rank"], split=run["split"], cp_method=run["cp_method"],
        dtype={"float32": torch.float32, "bfloat16": torch.bfloat16}[run["dtype"]],
        learning_rate=run["learning_rate"],
    )  # fmt: skip


def weights(model: dict[str, Any]) -> Read:
    """Random by seed, or from the hub: rank 0 of each host downloads, the others then find it."""
    if model["weights"] == "random":
        return random_weights(model["init_seed"])
    folder = _first_on_host(lambda: checkpoint.locate(model["id"], model["revision"]))
    return checkpoint.reader(folder)


def batches(tables: dict[str, Any]) -> Batches:
    """The batches of a workload's [data], [tokenizer] and [batch] tables."""
    tokenizer, vocabulary = tables["tokenizer"], tables["model"]["vocabulary"]
    text = read_text(tables["data"]["text"])
    tokens = _first_on_host(
        lambda: tokenize(text, tokenizer["id"], tokenizer["revision"], vocabulary)
    )
    batch = tables["batch"]
    return Batches(tokens, batch["global_batch"], batch["sequence_length"], tables["run"]["seed"])


def _first_on_host(work: Callable[[], Any]) -> Any:
    """Run `work` on the first rank of each host, then on the others, which find its cache."""
    first = os.environ.get("LOCAL_RANK", "0") == "0"
    result = work() if first else None
    dist.barrier()
    return result if first else work()
