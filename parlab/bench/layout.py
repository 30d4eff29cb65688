"""What must be refused before a process starts: a mesh that the workload does not fit."""

from collections.abc import Callable, Mapping
from typing import Any

from parlab.bench.mesh import AXES, Mesh, parse_mesh
from parlab.bench.workload import Workload

__all__ = ["AXES", "Mesh", "parse_mesh", "problems"]

Rule = Callable[[dict[str, Any]], Mapping[str, Any]]


def problems(
    workload: Workload, mesh: Mesh, world_size: int, rule: Rule, gpus: int | None = None
) -> list[str]:
    """Everything that is wrong with training ``workload`` on ``mesh``, with the numbers.

    Args:
        world_size: how many ranks will run.
        rule: lesson 04's ``validate_mesh_layout``, which knows the mesh product and what must
            divide layers, heads, KV heads and the sequence.
        gpus: how many GPUs the ranks of one machine may use; None on CPU.
    """
    config = {
        "world_size": world_size, "pp": mesh.pp, "tp": mesh.tp, "cp": mesh.cp,
        "num_layers": workload.model.num_layers, "num_heads": workload.model.num_heads,
        "num_kv_heads": workload.model.num_kv_heads,
        "sequence_length": workload.batch.sequence_length,
    }  # fmt: skip
    names = rule(config)["errors"]
    found = [_worded(name, config) for name in names]
    found += _divisions(workload, mesh, names)
    found += _schedule(workload, mesh)
    if gpus is not None and world_size > gpus:
        found.append(
            f"{world_size} ranks but {gpus} GPU(s): NCCL needs one GPU a rank; take a smaller mesh "
            "or --device cpu"
        )
    return found


def _worded(name: str, config: Mapping[str, Any]) -> str:
    """A broken rule of lesson 04 with its numbers; a name of the learner's own stays as it is."""
    pp, tp, cp = config["pp"], config["tp"], config["cp"]
    sentence = {
        "mesh_product": f"pp × cp × tp = {pp} × {cp} × {tp} = {pp * cp * tp}, "
        f"but the world has {config['world_size']} ranks: make them equal",
        "pipeline_layers": _remainder("num_layers", config["num_layers"], "pp", pp),
        "attention_heads": _remainder("num_heads", config["num_heads"], "tp", tp),
        "kv_heads": _remainder("num_kv_heads", config["num_kv_heads"], "tp", tp),
        "context_blocks": _remainder(
            "sequence_length", config["sequence_length"], f"2 · cp = 2 · {cp}", 2 * cp
        ),
    }.get(name, "broken")
    return f"{name}: {sentence}"


def _remainder(what: str, size: int, by: str, parts: int) -> str:
    left = size % parts
    smaller, larger = size - left, size - left + parts
    remedy = f"{smaller} or {larger}" if smaller else f"{larger}"
    divisor = by.partition(" = ")[0]
    found = f"{what} = {size} over {by} = {parts} leaves {left}"
    return f"{found}: take {remedy}, or another {divisor}"


def _divisions(workload: Workload, mesh: Mesh, broken: list[str]) -> list[str]:
    """What the engine needs beyond the lesson's rules; one that follows from those is left out."""
    model, batch, chunks = workload.model, workload.batch, workload.run.chunks_per_rank
    rows: list[tuple[str, str, int, str, int]] = [
        ("vocabulary_shards", "vocabulary", model.vocabulary, "tp", mesh.tp),
        ("ffn_shards", "ffn", model.ffn, "tp", mesh.tp),
        ("microbatches", "global_batch", batch.global_batch, "micro_batch", batch.micro_batch),
    ]
    if mesh.pp > 1 and chunks > 1 and "pipeline_layers" not in broken:
        by = f"pp · chunks_per_rank = {mesh.pp} · {chunks}"
        rows.append(("pipeline_chunks", "num_layers", model.num_layers, by, mesh.pp * chunks))
    if mesh.cp > 1 and "context_blocks" not in broken:
        by = f"2 · cp = 2 · {mesh.cp}"
        rows.append(("head_tail_blocks", "sequence_length", batch.sequence_length, by, 2 * mesh.cp))
    return [
        f"{name}: {_remainder(what, size, by, parts)}"
        for name, what, size, by, parts in rows
        if size % parts
    ]


def _schedule(workload: Workload, mesh: Mesh) -> list[str]:
    """Microbatches that the schedule cannot do with; without a pipeline any number will do."""
    run, count = workload.run, workload.microbatches
    if mesh.pp == 1:
        return []
    if run.schedule == "1F1B" and count < mesh.pp:
        return [
            f"schedule_microbatches: 1F1B over pp = {mesh.pp} stages needs {mesh.pp} microbatches "
            f"or more, but global_batch / micro_batch = {workload.batch.global_batch} / "
            f"{workload.batch.micro_batch} = {count}"
        ]
    if run.chunks_per_rank > 1 and count % mesh.pp:
        return [
            f"schedule_microbatches: {run.schedule} over pp = {mesh.pp} stages needs a multiple of "
            f"{mesh.pp} microbatches, but global_batch / micro_batch = "
            f"{workload.batch.global_batch} / {workload.batch.micro_batch} = {count}"
        ]
    return []
