"""Step 5.2: what a run needs, what this machine has, as a table."""

from parlab.bench.machine import LEAST_TORCH, Machine, version_of

OK, NOTE, MISSING = "ok", "note", "MISSING"
Row = tuple[str, str, str, str]


def rows(machine: Machine, world_size: int) -> list[Row]:
    """What is checked, what was found, the verdict, and what it means.

    Args:
        world_size: the ranks that the workload asks for.
    """
    probe, gpus = machine.probe, machine.gpus
    errors = probe.get("errors", {})

    def have(key: str, name: str, found: str, lack: str) -> Row:
        verdict = OK if probe.get(key) else MISSING
        return (name, found if verdict == OK else "no", verdict, errors.get(key, "") or lack)

    new = machine.torch is not None and version_of(machine.torch) >= LEAST_TORCH
    least = ".".join(map(str, LEAST_TORCH))
    shown = ", ".join(sorted({gpu["name"] for gpu in gpus}))
    memory = "unknown" if machine.memory_mb is None else f"{machine.memory_mb / 1e3:.1f} GB"
    crowded = world_size > machine.cores
    found: list[Row] = [
        ("torch", machine.torch or "no", OK if new else MISSING, f"{least} or newer"),
        have("torchrun", "torchrun", "yes", "comes with torch"),
        have("mesh", "DeviceMesh API", "yes", "comes with torch"),
        have("pipelining", "pipelining API", "yes", f"comes with torch {least}"),
        have("gloo", "gloo", "yes", "needed on CPU"),
        ("cores", str(machine.cores), NOTE if crowded else OK,
         f"{world_size} ranks share them: times are no evidence of speed" if crowded
         else f"one or more for each of {world_size} ranks"),
        ("memory", memory, OK, f"{world_size} processes, each with torch in it"),
    ]  # fmt: skip
    found += [
        ("CUDA", str(probe.get("cuda") or "no"), OK if probe.get("cuda") else NOTE, "for GPUs"),
        ("visible GPUs", f"{len(gpus)} {shown}".strip(), OK if len(gpus) >= world_size else NOTE,
         "" if len(gpus) >= world_size else f"{world_size} ranks on GPUs need {world_size}"),
        ("NCCL", _version(probe.get("nccl")), OK if probe.get("nccl") else NOTE, "for GPUs"),
    ]  # fmt: skip
    return found


def _version(nccl: object) -> str:
    return ".".join(map(str, nccl)) if isinstance(nccl, list | tuple) else "no"


def table(found: list[Row]) -> str:
    """The rows in columns."""
    lines = [("check", "found", "verdict", ""), *found]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join(
            text.ljust(width) for text, width in zip(line, [*widths, 0], strict=True)
        ).rstrip()
        for line in lines
    )
