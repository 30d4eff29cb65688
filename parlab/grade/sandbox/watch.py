"""Watches what a sandbox uses: CPU time and memory of all its processes together."""

import contextlib
import os
import resource
from dataclasses import dataclass

_PAGE = resource.getpagesize()
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """What ``/proc`` says of one process.

    Attributes:
        cpu: seconds, with those of its children that have ended and been waited for.
        resident: bytes in memory, shared ones too.
    """

    pid: int
    parent: int
    cpu: float
    resident: int


def processes() -> dict[int, Process]:
    """Every process that this one sees; none where there is no ``/proc``."""
    found = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else ():
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                found[int(name)] = _process(int(name))
    return found


def members(root: int, everyone: dict[int, Process]) -> list[Process]:
    """``root`` and all that descend from it.

    Orphans of a pid namespace become children of its first process, so that none is missed there.
    """
    children: dict[int, list[Process]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process)
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        if pid in everyone:
            found.append(everyone[pid])
        queue += [child.pid for child in children.get(pid, ())]
    return found


@dataclass(frozen=True)
class Baseline:
    """What a forked child begins with, in bytes: resident, and anonymous by proportional share."""

    resident: int
    anonymous: int


def baseline() -> Baseline:
    """This process's own, for the children it forks from now on."""
    pid = os.getpid()
    try:
        anonymous = _proportional(pid)
    except OSError:
        anonymous = 0
    return Baseline(_process(pid).resident, anonymous)


def new_bytes(group: list[Process], born_with: Baseline, limit: int) -> int:
    """The memory that processes hold beyond what they were born with.

    An upper estimate where that is within ``limit``; otherwise counted by proportional shares, so
    that a page which two of them share counts once.
    """
    estimate = max(0, sum(process.resident for process in group) - born_with.resident)
    if estimate <= limit:
        return estimate
    with contextlib.suppress(OSError, ValueError):
        counted = sum(_proportional(process.pid) for process in group) - born_with.anonymous
        return max(0, counted)
    return max(0, sum(process.resident - born_with.resident for process in group))


def _proportional(pid: int) -> int:
    total = 0
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        for line in file:
            if line.startswith(("Pss_Anon:", "Pss_Shmem:", "Swap:")):
                total += int(line.split()[1]) * 1024
    return total


def _process(pid: int) -> Process:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    cpu = sum(int(field) for field in fields[11:15]) / _TICKS
    return Process(pid, int(fields[1]), cpu, int(fields[21]) * _PAGE)
