"""What a rank reads from its machine: peak memory, and the offset of its clock to rank 0's."""

from __future__ import annotations

import contextlib
import socket
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

MB = 1e6
EXCHANGES = 20


def reset_peak(device: torch.device) -> bool:
    """Let the peak count from here; whether the system can."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
        return True
    return False


def peak_memory(device: torch.device) -> tuple[float, str]:
    """(MB of 10⁶ bytes, how it was read): of the device, or resident memory of the process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / MB, "torch.cuda.max_memory_allocated"
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / MB, "VmHWM"
    if sys.platform == "win32":
        return float("nan"), "not known on this system"
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / MB, "ru_maxrss"


def clock_offset() -> float:
    """Seconds to add to this rank's clock to get rank 0's. A collective call.

    Ranks of one host, the same boot of it, share a clock. Others exchange messages with rank 0;
    the quickest exchange gives the offset, to within half of its time (Cristian's algorithm).
    """
    rank = dist.get_rank()
    hosts: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(hosts, _host())
    offset = 0.0
    for other, host in enumerate(hosts):
        if host == hosts[0] or rank not in (0, other):
            continue
        message = torch.zeros(1, dtype=torch.float64)
        best = float("inf")
        for _ in range(EXCHANGES):
            if rank == 0:
                dist.recv(message, src=other)
                message[0] = time.perf_counter()
                dist.send(message, dst=other)
                continue
            before = time.perf_counter()
            dist.send(message, dst=0)
            dist.recv(message, src=0)
            after = time.perf_counter()
            if after - before < best:
                best, offset = after - before, float(message[0]) - (before + after) / 2
    return offset


def _host() -> tuple[str, str]:
    """Name and boot of this machine: containers on several machines may share a name."""
    boot = ""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return socket.gethostname(), boot
