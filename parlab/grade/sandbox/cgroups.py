"""A memory limit for a whole sandbox, where this user may make control groups."""

import contextlib
import os
import time
from pathlib import Path

from parlab.grade.limits import MB

_FILES = {  # limit, peak and "how often was something killed" of either version
    1: ("memory.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"),
    2: ("memory.max", "memory.peak", "memory.events"),
}


class Group:
    """The control group of one sandbox."""

    def __init__(self, parent: int, name: str, version: int) -> None:
        self._parent, self._name = parent, name
        self._limit, self._peak, self._events = _FILES[version]

    def create(self, memory_mb: int) -> None:
        """Makes the group; from the first byte above ``memory_mb`` its largest process dies."""
        os.mkdir(self._name, dir_fd=self._parent)
        self._write(self._limit, str(memory_mb * MB))
        with contextlib.suppress(OSError):  # no swap beyond it: absent without swap accounting
            self._write("memory.memsw.limit_in_bytes", str(memory_mb * MB))
        with contextlib.suppress(OSError):
            self._write("memory.swap.max", "0")

    def join(self) -> None:
        """Puts this process into the group, with all that it will start."""
        self._write("cgroup.procs", "0")

    def peak_mb(self) -> float | None:
        """The most memory that the group has held, in MiB; None where the kernel does not say."""
        try:
            return int(self._read(self._peak)) / MB
        except (OSError, ValueError):
            return None

    def ran_out(self) -> bool:
        """Whether a process of the group was killed for memory."""
        try:
            lines = [line.split() for line in self._read(self._events).splitlines()]
        except OSError:
            return False
        return any(line[0] == "oom_kill" and int(line[1]) > 0 for line in lines)

    def remove(self, patience: float = 2.0) -> None:
        """Removes the group; its last process may take a moment to leave.

        Args:
            patience: seconds to try for.
        """
        end = time.monotonic() + patience
        while True:
            try:
                os.rmdir(self._name, dir_fd=self._parent)
                return
            except FileNotFoundError:
                return
            except OSError:
                if time.monotonic() > end:
                    return
                time.sleep(0.002)

    def _write(self, file: str, text: str) -> None:
        fd = os.open(f"{self._name}/{file}", os.O_WRONLY, dir_fd=self._parent)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)

    def _read(self, file: str) -> str:
        fd = os.open(f"{self._name}/{file}", os.O_RDONLY, dir_fd=self._parent)
        try:
            return os.read(fd, 4096).decode()
        finally:
            os.close(fd)


class Groups:
    """Makes groups below the one that this process is in, or none where that is not allowed."""

    def __init__(self) -> None:
        self.version = 0
        self._parent = -1
        for version, folder in _own_folders():
            with contextlib.suppress(OSError):
                parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                probe = Group(parent, f"parlab-{os.getpid()}-probe", version)
                try:
                    probe.create(64)
                except OSError:
                    os.close(parent)
                    continue
                finally:
                    probe.remove(0)
                self._parent, self.version = parent, version
                return

    def group(self, name: str, memory_mb: int) -> Group | None:
        """A new group, or None where there can be none."""
        if not self.version:
            return None
        group = Group(self._parent, f"parlab-{name}", self.version)
        try:
            group.create(memory_mb)
        except OSError:
            group.remove(0)
            return None
        return group


def _own_folders() -> list[tuple[int, str]]:
    """The version and the folder of each memory hierarchy that this process is in."""
    found = []
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, names, path = line.split(":", 2)
        path = path.rstrip("/")
        if "memory" in names.split(","):
            found.append((1, f"/sys/fs/cgroup/memory{path}"))
        elif not names:
            found.append((2, f"/sys/fs/cgroup{path}"))
    return found
