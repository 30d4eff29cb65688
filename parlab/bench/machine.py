"""What this machine has: cores, memory, GPUs, torch. torch is asked in a process of its own."""

import contextlib
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Prints one line of JSON. Whatever is missing becomes an entry of "errors", never a traceback.
_PROBE = """
import json
out = {"errors": {}}
def ask(name, question):
    try:
        out[name] = question()
    except Exception as error:
        out[name] = None
        out["errors"][name] = f"{type(error).__name__}: {error}"
def gpus():
    import torch
    props = [torch.cuda.get_device_properties(n) for n in range(torch.cuda.device_count())]
    return [{"name": p.name, "memory_mb": p.total_memory / 1e6} for p in props]
def mesh():
    from torch.distributed.device_mesh import init_device_mesh
    return True
def pipelining():
    from torch.distributed.pipelining import Schedule1F1B, ScheduleZBVZeroBubble
    return True
def within_rank():
    from torch.distributed.pipelining import schedules
    return issubclass(schedules.ScheduleZBVZeroBubble, schedules._PipelineScheduleRuntime)
import torch, torch.distributed
ask("torch", lambda: torch.__version__)
ask("cuda", lambda: torch.version.cuda)
ask("gpus", gpus)
ask("gloo", torch.distributed.is_gloo_available)
ask("nccl", lambda: torch.distributed.is_nccl_available() and torch.cuda.nccl.version())
ask("bfloat16", lambda: bool(torch.cuda.is_available() and torch.cuda.is_bf16_supported()))
ask("torchrun", lambda: bool(__import__("torch.distributed.run")))
ask("mesh", mesh)
ask("pipelining", pipelining)
ask("within_rank", within_rank)
print(json.dumps(out))
"""
LEAST_TORCH = (2, 8)


@dataclass(frozen=True)
class Machine:
    """A machine as the record's ``hardware`` describes it.

    Attributes:
        cores: how many this process may use.
        memory_mb: of the machine or its container, 10⁶ bytes; None where unknown.
        probe: what torch said; see ``_PROBE``.
    """

    cpu: str | None
    cores: int
    memory_mb: float | None
    probe: dict[str, Any]

    @property
    def gpus(self) -> list[dict[str, Any]]:
        """The visible GPUs: name and memory in MB."""
        return self.probe.get("gpus") or []

    @property
    def torch(self) -> str | None:
        """torch's version, or None where it cannot be imported."""
        return self.probe.get("torch")


def look() -> Machine:
    """This machine, as it is now."""
    return Machine(_cpu(), _cores(), _memory_mb(), _ask_torch())


def refusals(machine: Machine, device: str) -> list[str]:
    """Why no run can start on this machine at all."""
    version = machine.torch
    if version is None:
        reason = machine.probe.get("errors", {}).get("torch", "unknown")
        return [f"torch cannot be imported ({reason}): pip install torch"]
    if version_of(version) < LEAST_TORCH:
        return [
            f"torch {version} is too old: before 2.8 pipelines hang on gloo; "
            "install a newer one, as in `pip install --upgrade torch`"
        ]
    found = [
        f"torch {version} lacks {what}: {machine.probe['errors'].get(key, 'not built in')}"
        for key, what in (("gloo", "gloo"), ("mesh", "DeviceMesh"), ("pipelining", "pipelining"))
        if not machine.probe.get(key)
    ]
    if device == "cuda" and not machine.gpus:
        found.append("no GPU is visible to torch: take --device cpu, or see CUDA_VISIBLE_DEVICES")
    if device == "cuda" and machine.gpus and not machine.probe.get("nccl"):
        found.append("this torch has no NCCL: take --device cpu, or a build with it")
    return found


def cannot_fold(machine: Machine, device: str) -> str | None:
    """Why this torch cannot run a schedule that has neighbouring stages on one rank, if so.

    torch 2.8 sends from such a rank to itself; later ones hand the tensor over.
    """
    if device != "cpu" or machine.probe.get("within_rank"):
        return None
    return (
        f"ZBVZeroBubble: torch {machine.torch} sends from a rank to itself there, which gloo "
        "cannot; take a newer torch (2.13 is known to work) or another schedule"
    )


def hardware(machine: Machine, device: str, nodes: int) -> tuple[dict[str, Any], dict[str, str]]:
    """The record's ``hardware``, and the reasons for what is null in it."""
    gpus = machine.gpus if device == "cuda" else []
    content = {
        "device": device,
        "cpu": machine.cpu,
        "cores": machine.cores,
        "gpu": gpus[0]["name"] if gpus else None,
        "gpus": len(gpus),
        "memory_mb": machine.memory_mb,
        "gpu_memory_mb": gpus[0]["memory_mb"] if gpus else None,
        "interconnect": "loopback" if device == "cpu" and nodes == 1 else None,
        "nodes": nodes,
        "backend": "nccl" if device == "cuda" else "gloo",
        "torch": machine.torch,
        "python": platform.python_version(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
    }
    why = {"gpu": "ran on CPU", "gpu_memory_mb": "ran on CPU"}
    return content, {
        f"hardware.{key}": why.get(key, "this machine does not say")
        for key, value in content.items()
        if value is None
    }


def version_of(text: str) -> tuple[int, int]:
    """Major and minor of a version; (0, 0) where it is none."""
    try:
        major, minor = text.split(".")[:2]
        return int(major), int(minor)
    except ValueError:
        return (0, 0)


def _ask_torch() -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    try:
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))
    except (ValueError, IndexError):
        said = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"errors": {"torch": said}}


def _cores() -> int:
    """Cores that this process may use, a container's quota counted."""
    own = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="utf-8").split()
        return max(1, min(own, int(quota) // int(period)))
    except (OSError, ValueError):
        return own


def _memory_mb() -> float | None:
    sizes = []
    try:
        sizes.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e6)
    except (ValueError, OSError, AttributeError):
        return None
    with contextlib.suppress(OSError, ValueError):
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="utf-8")) / 1e6)
    return round(min(sizes), 1)


def _cpu() -> str | None:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith(("model name", "Model")):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None
