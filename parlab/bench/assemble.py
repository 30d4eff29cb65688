"""A record from its parts: begun before a run starts, finished when it has ended."""

import hashlib
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from parlab.bench import decide
from parlab.bench.agreement import correctness, yardstick
from parlab.bench.answers import BadAnswer
from parlab.bench.artifacts import cleaner
from parlab.bench.blame import tail
from parlab.bench.driver import Job, Outcome, command, environment
from parlab.bench.flops import mfu, per_token
from parlab.bench.machine import Machine, hardware
from parlab.bench.measure import LESSON, ratios, split_step, spread, step_seconds, traffic
from parlab.bench.rules import lesson_rule
from parlab.bench.workload import Model, Workload
from parlab.lesson.loader import Loaded
from parlab.lesson.soundness import faults

METRICS = (
    "throughput", "step_ms", "peak_memory_mb", "bubble_ratio", "communication_ratio",
    "other_ratio", "skew_ratio", "parts_ms", "traced_step_ms", "communication", "loss",
    "correctness", "scaling_efficiency", "model_flops_per_token", "mfu", "parameters",
    "startup_s",
)  # fmt: skip
UNDECIDED, UNDECIDED_WHY = "undecided", "decision.gate_failures"
Record = dict[str, Any]


@dataclass(frozen=True)
class Context:
    """What all groups of one run share."""

    workload: Workload
    machine: Machine
    functions: Loaded
    device: str
    root: Path


def begin(context: Context, job: Job, run_id: str, started: str) -> Record:
    """The record that stands while the group runs, and stays if nobody lives to finish it."""
    content, reasons = hardware(context.machine, context.device, job.nodes.count)
    if context.workload.model.revision is None:
        reasons["workload.model.revision"] = "random weights: nothing was loaded"
    if context.workload.tokenizer.revision is None:
        reasons["workload.tokenizer.revision"] = "bytes need no tokenizer file"
    commit, changed = _commit(Path(__file__).resolve().parent)
    if commit is None:
        reasons["artifact.commit"] = "the code is not in a git repository"
    record: Record = {
        "schema_version": 1,
        "name": job.name,
        "run_id": run_id,
        "started": started,
        "workload": describe(context.workload, job.mesh.world_size),
        "hardware": content,
        "mesh": {
            "pp": job.mesh.pp, "cp": job.mesh.cp, "tp": job.mesh.tp,
            "order": list(job.mesh.order),
            "coordinates": [{"rank": n, **at} for n, at in enumerate(job.mesh.coordinates())],
        },
        "metrics": dict.fromkeys(METRICS),
        "artifact": {
            "command": command(job), "environment": environment(job), "commit": commit,
            "uncommitted_changes": changed, "timeline": None, "log": None,
        },
        "failure": {
            "kind": "unfinished", "rank": None, "log_tail": [],
            "message": "the run began and has not reported back: it is still at work, or it was "
            "killed together with the program that started it",
        },
        "reasons": reasons,
    }  # fmt: skip
    return _closed(record, context.functions, job.nodes.count, cleaner(context.root))


def finish(
    record: Record,
    outcome: Outcome,
    functions: Loaded,
    baseline: Record | None,
    clean: Callable[[str], str],
) -> Record:
    """The same record with what was measured, or with how the run failed.

    Args:
        baseline: the one-rank run's record, if there is one.
        clean: takes machine paths out of a text.
    """
    failure = outcome.failure and {
        **outcome.failure,
        "message": clean(outcome.failure["message"]),
        "log_tail": [clean(line) for line in outcome.failure["log_tail"]],
    }
    kept = {k: v for k, v in record["reasons"].items() if k != UNDECIDED_WHY}
    reasons = {k: v for k, v in kept.items() if not k.startswith("metrics.")}
    metrics: dict[str, Any] = {**dict.fromkeys(METRICS), "startup_s": outcome.startup_s}
    done: Record = {**record, "metrics": metrics, "failure": failure, "reasons": reasons}
    if failure:
        return _closed(done, functions, record["hardware"]["nodes"], clean)
    tokens = record["workload"]["global_batch"] * record["workload"]["sequence_length"]
    metrics |= measured(outcome.documents, tokens)
    metrics["correctness"], why = correctness(done, outcome.documents, baseline)
    reasons["metrics.correctness"] = why
    measure, reasons["metrics.scaling_efficiency"] = yardstick(done, baseline)
    metrics["model_flops_per_token"] = _flops(record)
    metrics["mfu"], reasons["metrics.mfu"] = mfu(
        metrics["throughput"]["median"],
        metrics["model_flops_per_token"],
        record["hardware"]["gpu"],
        record["workload"]["dtype"],
        record["workload"]["world_size"],
    )
    done["reasons"] = {key: why for key, why in reasons.items() if why}
    hosts = {document["host"] for document in outcome.documents}
    return _closed(done, functions, len(hosts), clean, measure)


def finish_soundly(
    record: Record,
    outcome: Outcome,
    functions: Loaded,
    baseline: Record | None,
    clean: Callable[[str], str],
) -> tuple[Record, Outcome]:
    """`finish`; a run whose numbers make no record has failed with that.

    Returns:
        The record, and the outcome as the record tells it.
    """
    try:
        done = finish(record, outcome, functions, baseline, clean)
        problems = faults(done)
    except ArithmeticError as error:  # as a step of no length makes
        problems = [f"{type(error).__name__}: {error}"]
    if not problems:
        return done, outcome
    message = f"the ranks' numbers make no record: {'; '.join(problems[:5])}"
    failure = {"kind": "output", "rank": None, "message": message, "log_tail": tail(outcome.log)}
    failed = replace(outcome, documents=[], failure=outcome.failure or failure)
    return finish(record, failed, functions, baseline, clean), failed


def _flops(record: Record) -> int:
    work = record["workload"]
    return per_token(Model(**work["model"]), work["sequence_length"])


def _closed(
    record: Record,
    functions: Loaded,
    hosts: int,
    clean: Callable[[str], str],
    yardstick: Record | None = None,
) -> Record:
    """The record as lesson 05 completes it: evidence level, reasons, efficiency, decision.

    Gates that give no answer cost the decision, and nothing that was measured.

    Args:
        hosts: how many machines the ranks ran on; two agents on one share its cores.
        yardstick: the baseline where it may be compared with.
    """
    machine = record["hardware"]
    seen = {**machine, "nodes": hosts} if machine["device"] == "cpu" else machine
    unanswered: list[str] = []

    def judge(metrics: Record, limits: Record) -> Record:
        try:
            return dict(functions[decide.GATES](metrics, limits))
        except BadAnswer as error:
            unanswered.append(str(error))
            return {"gate_failures": [UNDECIDED]}

    complete = lesson_rule(LESSON, "complete_record")
    closed = complete({**record, "hardware": seen}, yardstick, judge)
    if unanswered:
        closed["reasons"][UNDECIDED_WHY] = clean(unanswered[0])
    why = "the run failed" if record["failure"] else "not written"
    for key in ("timeline", "log"):
        if record["artifact"][key] is None:
            closed["reasons"].setdefault(f"artifact.{key}", why)
    decision = {**closed["decision"], "functions": decide.origin(functions)}
    return {**closed, "hardware": machine, "decision": decision}


def describe(workload: Workload, world_size: int) -> dict[str, Any]:
    """The record's ``workload``; every table of the TOML is in it."""
    model, run, batch = workload.model, workload.run, workload.batch
    text = Path(workload.data.text)
    digest = hashlib.sha256(text.read_bytes()).hexdigest()
    return {
        "name": workload.name,
        "fingerprint": workload.fingerprint(),
        "model": workload.as_dict()["model"],
        "tokenizer": workload.as_dict()["tokenizer"],
        "data": {"text": text.name, "sha256": digest},
        "layers": model.num_layers,
        "heads": model.num_heads,
        "kv_heads": model.num_kv_heads,
        "hidden": model.hidden,
        "vocabulary": model.vocabulary,
        "global_batch": batch.global_batch,
        "micro_batch": batch.micro_batch,
        "microbatches": workload.microbatches,
        "sequence_length": batch.sequence_length,
        "dtype": run.dtype,
        "schedule": run.schedule,
        "chunks_per_rank": run.chunks_per_rank,
        "split": run.split,
        "cp_method": run.cp_method,
        "world_size": world_size,
        "topology": run.topology,
        "warmup": run.warmup,
        "repeats": run.repeats,
        "seed": run.seed,
        "learning_rate": run.learning_rate,
        "limits": workload.as_dict()["limits"],
    }


def measured(documents: Sequence[Mapping[str, Any]], tokens: int) -> dict[str, Any]:
    """Metrics of a run that ended well.

    Args:
        documents: what the ranks wrote, in rank order.
        tokens: trained on in one step.
    """
    lengths = step_seconds(documents)
    step, splits = split_step(documents)
    share = ratios(step, splits)
    peaks = [document["peak_memory_mb"] for document in documents]
    return {
        "throughput": spread([tokens / length for length in lengths]),
        "step_ms": spread([length * 1e3 for length in lengths]),
        "peak_memory_mb": {
            "max": max(peaks), "ranks": peaks, "source": documents[0]["memory_source"]
        },
        **{key: share[key] for key in
           ("bubble_ratio", "communication_ratio", "other_ratio", "skew_ratio")},
        "parts_ms": [
            {"rank": split.rank, "skew": split.skew * 1e3,
             **{part: seconds * 1e3 for part, seconds in split.seconds().items()}}
            for split in splits
        ],
        "traced_step_ms": (step[1] - step[0]) * 1e3,
        "communication": traffic(documents),
        "loss": documents[-1]["loss"],
        "parameters": {
            "count": documents[0]["parameters"]["count"],
            "local": [document["parameters"]["local_count"] for document in documents],
        },
    }  # fmt: skip


def _commit(folder: Path) -> tuple[str | None, bool | None]:
    """The code's commit, and whether the code has changes that are not in it."""

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", "-C", str(folder), *arguments], capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    return (commit, bool(git("status", "--porcelain", "."))) if commit else (None, None)
