"""A sandbox as its parent sees it: watched, killed whole, cleaned up after."""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from typing import Any

from parlab.grade import forkserver
from parlab.grade.limits import MB, Limits
from parlab.grade.sandbox import cgroups, watch

MEMORY_SLACK_MB = 256  # above the address space's limit, so that one process sees MemoryError


class Sandbox(forkserver.Child):
    """A child in its namespaces, watched from outside.

    Args:
        pid: of its first process.
        limits: what it may use.
        errors: a pipe on which the child says what went wrong before student code ran.
        born_with: the memory it got from its parent; None where it begins anew.
        group: its control group, if it has one.
        scratch: its folder on this machine's disk, where it has no namespaces.
        clean_up: called at its end.
    """

    def __init__(
        self,
        pid: int,
        limits: Limits,
        errors: int,
        born_with: watch.Baseline | None,
        group: cgroups.Group | None,
        scratch: str | None,
        clean_up: Callable[[], None],
    ) -> None:
        self.pid = pid
        self._limits, self._errors = limits, errors
        self._born_with, self._group = born_with or watch.Baseline(0, 0), group
        self._scratch, self._clean_up = scratch, clean_up
        self._began = time.monotonic()
        self._cpu, self._peak = 0.0, 0.0
        self._reason: str | None = None

    def look(self) -> None:
        """Kills the sandbox where it uses too much time or memory."""
        everyone = watch.processes()
        group = watch.members(self.pid, everyone)
        self._cpu = max(self._cpu, sum(process.cpu for process in group))
        if self._cpu > self._limits.cpu_seconds:
            self._stop("cpu")
        if time.monotonic() - self._began > self._limits.wall_seconds:
            self._stop("wall")
        if self._group is not None:
            if self._group.ran_out():  # one of its processes was killed: so are the others
                self._stop("memory")
            return
        allowed = (self._limits.memory_mb + MEMORY_SLACK_MB) * MB
        held = watch.new_bytes(group, self._born_with, allowed)
        self._peak = max(self._peak, held / MB)
        if held > allowed:
            self._stop("memory")

    def cpu_seconds(self) -> float:
        """Of all its processes, so far."""
        return sum(process.cpu for process in watch.members(self.pid, watch.processes()))

    def kill(self) -> None:
        """The first process of a pid namespace takes all the others with it."""
        if self._scratch is not None:  # no namespace: everything that descends from it
            for process in watch.members(self.pid, watch.processes()):
                _kill(process.pid)
        _kill(self.pid)

    def ended(self, status: int, usage: Any) -> dict[str, Any]:
        """How it ended, what it used, and what went wrong before student code ran."""
        self._clean_up()
        error = os.read(self._errors, 4000).decode(errors="replace")
        os.close(self._errors)
        word: dict[str, Any] = {
            "status": os.waitstatus_to_exitcode(status),
            "reason": self._reason,
            "cpu_seconds": round(max(self._cpu, usage.ru_utime + usage.ru_stime), 3),
            "wall_seconds": round(time.monotonic() - self._began, 3),
            "peak_memory_mb": round(self._peak, 1) or None,
        }
        if error:
            word["error"] = error
        if word["status"] in (-signal.SIGXCPU, -signal.SIGKILL) and not self._reason:
            spent = usage.ru_utime + usage.ru_stime >= self._limits.cpu_seconds
            word["reason"] = "cpu" if spent else None
        if self._group is not None:
            word["peak_memory_mb"] = self._group.peak_mb()
            if self._group.ran_out():
                word["reason"] = "memory"
            self._group.remove()
        if self._scratch is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            shutil.rmtree(self._scratch, ignore_errors=True)
        return word

    def _stop(self, reason: str) -> None:
        self._reason = self._reason or reason
        self.kill()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)
