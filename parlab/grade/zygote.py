"""The warm parent of every kernel and every call: torch is imported once, children are forked.

``python -m parlab.grade.zygote SETTINGS`` shuts itself into the root folder that all sandboxes
share (so that not even this process sees solutions or submissions), imports what answers need,
says so in one line of JSON, and serves clients (see `parlab.grade.forkserver`). Each child enters
namespaces of its own before it touches student code.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import random
import resource
import socket
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from parlab.grade import forkserver, preload
from parlab.grade.inside import driver, kernel
from parlab.grade.limits import Limits
from parlab.grade.sandbox import cgroups, child, enter, linux, root, watch
from parlab.grade.sandbox import filter as call_filter
from parlab.grade.zygote_settings import Settings

PORTS = 5  # shell, iopub, stdin, control and heartbeat
_FIRST_USER = 1_700_000_000  # users of sandboxes, where the grader is root: nobody's
_HIGH = 1000  # more files than the warm parent has open


class Zygote:
    """Forks a sandbox for each request."""

    def __init__(self, settings: Settings, folder: int) -> None:
        self._settings, self._folder = settings, folder
        with_groups = settings.shut_in and not os.environ.get("PARLAB_GRADE_NO_CGROUPS")
        self._groups = cgroups.Groups() if with_groups else None
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if settings.shut_in else -1
        self._count = 0
        self.born_with: watch.Baseline | None = None
        self._first_user = _FIRST_USER + random.SystemRandom().randrange(1 << 12) * (1 << 16)

    @property
    def memory_by(self) -> str:
        """Who bounds the memory of a whole submission: ``cgroup`` or ``watch``."""
        return "cgroup" if self._groups and self._groups.version else "watch"

    @property
    def groups(self) -> str:
        """What the names of this one's control groups begin with."""
        return str(self._first_user)

    def start(self, request: dict[str, Any], fds: list[int]) -> child.Sandbox:
        """Forks the child for a request: ``kernel``, ``call`` or ``probe``."""
        limits = Limits(**request["limits"])
        self._count += 1
        number = self._count
        sockets = self._listen(request["name"]) if request["kind"] == "kernel" else []
        kept = [item.fileno() for item in sockets] or fds
        shut_in = self._settings.shut_in
        group = None
        if self._groups:
            group = self._groups.group(
                f"{self.groups}-{number}", limits.memory_mb + child.MEMORY_SLACK_MB
            )
        errors, report = os.pipe()
        scratch = None if shut_in else tempfile.mkdtemp(prefix="parlab-run-")
        pid = self._fork()
        if pid == 0:
            self._become(request, limits, kept, report, group, number, scratch)
        os.close(report)
        for item in sockets:
            item.close()
        name = request["name"] if sockets else ""
        return child.Sandbox(
            pid, limits, errors, self.born_with, group, scratch, lambda: self._unlink(name)
        )

    def _fork(self) -> int:
        """A child that is the first process of a new pid namespace."""
        if not self._settings.shut_in:
            return os.fork()
        linux.unshare(linux.CLONE_NEWPID)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid != 0:  # the next child gets a new one
                linux.setns(self._own_pids, linux.CLONE_NEWPID)
        return pid

    def _listen(self, name: str) -> list[socket.socket]:
        """A kernel's sockets, waiting already: a client may connect before the kernel is up.

        They are bound here, so that no sandbox sees the folder they are in.
        """
        made = []
        os.fchdir(self._folder)
        try:
            for port in range(1, PORTS + 1):
                item = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                item.bind(f"{name}-{port}")
                item.listen(16)
                item.setblocking(False)
                made.append(item)
        finally:
            os.chdir("/")
        return made

    def _unlink(self, name: str) -> None:
        for port in range(1, PORTS + 1) if name else ():
            with contextlib.suppress(OSError):
                os.unlink(f"{name}-{port}", dir_fd=self._folder)

    def _become(
        self,
        request: dict[str, Any],
        limits: Limits,
        kept: list[int],
        report: int,
        group: cgroups.Group | None,
        number: int,
        scratch: str | None,
    ) -> None:
        """The child's way from here to student code; it does not return."""
        code = 70
        try:
            gc.enable()
            if group:
                group.join()
            kept = _keep(kept, report)
            report = 3
            if scratch is None:
                user = self._first_user + number % (1 << 16)
                identity = enter.Identity(user, user) if os.getuid() == 0 else None
                enter.enter(limits, identity)
            else:
                os.setsid()
                enter.prepare(limits, scratch)
            if request["kind"] == "probe":
                _probe()
                code = 0
            else:
                self._hand_over(request, limits, kept, report)
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(report, f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(code)

    def _hand_over(
        self, request: dict[str, Any], limits: Limits, kept: list[int], report: int
    ) -> None:
        setup = {"fds": kept, "limits": asdict(limits)}
        if request["kind"] == "kernel":
            setup["key"] = request["key"]
        module = kernel if request["kind"] == "kernel" else driver
        if self._settings.fork:
            os.close(report)
            sys.argv = [""]
            module.main(setup)
        for fd in kept:
            os.set_inheritable(fd, True)
        code = (
            f"import sys; sys.path.insert(0, {self._settings.course!r}); import json\n"
            f"from {module.__name__} import main\nmain(json.loads(sys.argv.pop()))"
        )
        arguments = [sys.executable, "-I", "-c", code, json.dumps(setup)]
        os.execve(sys.executable, arguments, dict(os.environ))


def _keep(fds: list[int], report: int) -> list[int]:
    """Closes every file but these, which get the numbers 3 (the report), 4, 5, …"""
    high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH) for fd in (report, *fds)]
    null = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(null, number)
    os.closerange(3, _HIGH)
    for index, fd in enumerate(high):
        os.dup2(fd, 3 + index, inheritable=False)
    os.closerange(_HIGH, 2 * _HIGH)
    return list(range(4, 4 + len(fds)))


def _probe() -> None:
    """Fails where this user cannot read Python's own files."""
    for module in (os, json, forkserver):
        if module.__file__ and module is not forkserver:
            Path(module.__file__).read_bytes()
    importlib.import_module("parlab.lesson")
    for name in ("torch", "numpy"):
        if name in sys.modules and sys.modules[name].__file__:
            Path(str(sys.modules[name].__file__)).read_bytes()
    Path("probe").write_text("scratch", encoding="utf-8")


def _shut_in(settings: Settings) -> None:
    """Into namespaces of its own, as the first process of a new pid namespace."""
    flags = linux.CLONE_NEWNS | linux.CLONE_NEWPID | linux.CLONE_NEWNET | linux.CLONE_NEWIPC
    user, group = os.getuid(), os.getgid()
    if user != 0:
        linux.unshare(linux.CLONE_NEWUSER)
        linux.map_user(user, user, group)
    linux.unshare(flags)
    first = os.fork()
    if first:
        for number in (0, 1):
            os.close(number)
        _, status = os.waitpid(first, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
    linux.die_with_parent()
    os.setsid()


def main() -> None:
    """Serves until standard input ends."""
    settings = Settings(**json.loads(sys.argv[1]))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * _HIGH), hard))
    try:
        if settings.shut_in:
            call_filter.program()
            _shut_in(settings)
        folder = os.open(settings.folder, os.O_RDONLY | os.O_DIRECTORY)
        zygote = Zygote(settings, folder)
        server = forkserver.ForkServer(f"{settings.folder}/zygote", zygote.start)
        if settings.shut_in:
            view = root.View(
                Path(settings.course), Path(settings.fonts) if settings.fonts else None
            )
            place = f"{settings.folder}/root"
            os.mkdir(place)
            root.build(place, view)
            os.environ["MPLCONFIGDIR"] = root.MATPLOTLIB
        if settings.fork:
            preload.warm()
            zygote.born_with = watch.baseline() if os.path.isdir("/proc/self") else None
    except Exception as error:
        _say({"error": f"{type(error).__name__}: {error}"})
        sys.exit(1)
    _say({"ready": True, "memory_by": zygote.memory_by, "groups": zygote.groups})
    server.serve()


def _say(word: dict[str, Any]) -> None:
    print(json.dumps(word), flush=True)


if __name__ == "__main__":
    main()
