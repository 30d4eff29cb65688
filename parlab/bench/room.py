"""Whether a machine has room for a mesh: bounds that no run stays below, and no forecast.

What is refused here could not have run; what passes may still run out of memory.
"""

from parlab.bench.machine import Machine
from parlab.bench.mesh import Mesh
from parlab.bench.workload import Model, Workload

MB = 1e6
RANKS_PER_CORE, RANKS_ANYWHERE = 8, 16
PROCESS_MB = 150.0  # what a rank has for itself once torch is imported; 220 and more were measured
BYTES = {"float32": 4, "bfloat16": 2}
FP32, INT64 = 4, 8
COPIES = 4  # of each parameter: itself, its gradient, AdamW's two moments


def too_many_ranks(machine: Machine, mesh: Mesh, nodes: int) -> list[str]:
    """Why this machine's CPU is not asked to run its share of the mesh."""
    here = -(-mesh.world_size // nodes)
    most = max(RANKS_ANYWHERE, RANKS_PER_CORE * machine.cores)
    if here <= most:
        return []
    return [
        f"ranks: {here} processes on {machine.cores} core(s), at most {most} are started "
        f"({RANKS_PER_CORE} a core, or {RANKS_ANYWHERE}): take a smaller mesh"
    ]


def too_little_memory(
    machine: Machine, device: str, workload: Workload, mesh: Mesh, nodes: int
) -> list[str]:
    """Where the mesh needs more memory than this machine, or one of its GPUs, has."""
    here = -(-mesh.world_size // nodes)
    host = here * (PROCESS_MB + batch_mb(workload))
    if device == "cpu":
        last = mesh.cp * mesh.tp / nodes
        host += training_mb(workload, mesh, here, last)
    needs: list[tuple[str, float, float | None]] = [
        (f"{here} process(es) on this machine", host, machine.memory_mb)
    ]
    if device == "cuda":
        one = training_mb(workload, mesh, 1, 1 if mesh.pp == 1 else 0)
        needs.append(
            ("a rank's GPU", one, min((gpu["memory_mb"] for gpu in machine.gpus), default=None))
        )
    count, tokens = parameters(workload.model), workload.tokens_per_step
    return [
        f"memory: {count:.3g} parameters and {tokens:.3g} tokens a step in {workload.run.dtype} "
        f"need {size(need)} or more for {whose}, which has {size(have)}: take a smaller model, "
        "batch, sequence or mesh"
        for whose, need, have in needs
        if have is not None and need > have
    ]


def size(mb: float) -> str:
    """MB in a unit that people read."""
    units = ["MB", "GB", "TB", "PB"]
    while mb >= 1000 and len(units) > 1:
        mb /= 1000
        del units[0]
    return f"{mb:.3g} {units[0]}"


def parameters(model: Model) -> int:
    """How many parameters the model has, a tied head once."""
    width, kv_width = model.num_heads * model.head_dim, model.num_kv_heads * model.head_dim
    layer = model.hidden * (2 * width + 2 * kv_width + 3 * model.ffn + 2)
    layer += 2 * model.head_dim if model.qk_norm else 0
    ends = 1 if model.tied_embeddings else 2
    return model.num_layers * layer + model.hidden * (ends * model.vocabulary + 1)


def training_mb(workload: Workload, mesh: Mesh, ranks: float, last: float) -> float:
    """What average ranks hold at least, ``last`` of them of the last stage.

    It is the larger of two moments: all gradients are there, or one microbatch's activations and
    logits are and no gradient yet.
    """
    model, batch, width = workload.model, workload.batch, BYTES[workload.run.dtype]
    copy = parameters(model) / (mesh.pp * mesh.tp) * width
    tokens = batch.micro_batch * batch.sequence_length / mesh.cp
    heads = (2 * model.num_heads + 2 * model.num_kv_heads) * model.head_dim
    kept = 2 * model.hidden + (heads + 3 * model.ffn) / mesh.tp
    activations = model.num_layers / mesh.pp * tokens * kept * width
    logits = 2 * FP32 * tokens * model.vocabulary / mesh.tp  # they and their gradient
    forward = (COPIES - 1) * copy + activations + _masks(workload, mesh)
    return max(ranks * COPIES * copy, ranks * forward + last * logits) / MB


def batch_mb(workload: Workload) -> float:
    """The token ids and targets of a step, which every rank draws whole."""
    return 2 * INT64 * workload.tokens_per_step / MB


def _masks(workload: Workload, mesh: Mesh) -> float:
    """Bytes of the masks by which a rank's two chunks see the gathered keys."""
    if mesh.cp == 1 or workload.run.cp_method != "allgather":
        return 0.0
    chunk: float = workload.batch.sequence_length / (2 * mesh.cp)
    return (2 * mesh.cp + 1) * chunk**2
