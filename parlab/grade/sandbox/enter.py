"""A forked process leaves everything behind: files, processes, network, user, rights."""

import os
import resource
import signal
from dataclasses import dataclass

from parlab.grade.limits import MB, Limits
from parlab.grade.sandbox import filter as call_filter
from parlab.grade.sandbox import linux
from parlab.grade.sandbox.root import SCRATCH, STUDENT

_THREADS_MB = 192  # address space, not memory, that a kernel's own threads reserve
_SPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWUTS
    | linux.CLONE_NEWCGROUP
)
_ENVIRONMENT = {
    "USER": "student",
    "LOGNAME": "student",
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONNOUSERSITE": "1",
    "PYTHONHASHSEED": "0",
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "OMP_NUM_THREADS": "1",
    "MALLOC_ARENA_MAX": "2",
}


@dataclass(frozen=True)
class Identity:
    """The outer user and group that a sandbox runs as; None keeps those of the grader."""

    user: int
    group: int


def enter(limits: Limits, identity: Identity | None) -> None:
    """Shuts this process in; it must be the first process of a new pid namespace.

    Afterwards it sees the root folder of `parlab.grade.sandbox.root` read-only, a scratch folder,
    itself and what it starts, and no network. It holds no right over anything else.

    Raises:
        OSError: a step is not allowed here.
    """
    os.setsid()
    linux.unshare(linux.CLONE_NEWNS)
    owner = identity or Identity(os.getuid(), os.getgid())
    quiet = linux.MS_NOSUID | linux.MS_NODEV
    rights = f"mode=700,uid={owner.user},gid={owner.group}"
    linux.mount("proc", "/proc", "proc", quiet | linux.MS_NOEXEC)
    linux.mount("tmpfs", SCRATCH, "tmpfs", quiet, _size(limits, 3) + rights)
    linux.mount("tmpfs", "/dev/shm", "tmpfs", quiet | linux.MS_NOEXEC, _size(limits, 1) + rights)
    if identity:
        os.setgroups([])
        os.setresgid(owner.group, owner.group, owner.group)
        os.setresuid(owner.user, owner.user, owner.user)
        linux.set_dumpable()
    linux.unshare(_SPACES)
    # Only now: what is set when a user namespace begins also bounds the user outside of it.
    count = limits.processes
    resource.setrlimit(resource.RLIMIT_NPROC, (count, count))
    linux.map_user(STUDENT, owner.user, owner.group)
    linux.drop_privileges()
    linux.install_filter(call_filter.program())
    prepare(limits, SCRATCH)


def prepare(limits: Limits, scratch: str) -> None:
    """Limits, environment and working folder: all that is left where nothing can be shut in."""
    home, work = f"{scratch}/home", f"{scratch}/work"
    os.umask(0o077)
    for folder in (home, work, f"{home}/.matplotlib"):
        os.mkdir(folder)
    os.chdir(work)
    os.environ.clear()
    os.environ.update(_ENVIRONMENT, HOME=home, TMPDIR=scratch)
    os.environ.update(IPYTHONDIR=f"{home}/.ipython", MPLCONFIGDIR=f"{home}/.matplotlib")
    cpu = max(1, int(limits.cpu_seconds + 1))
    space = _address_space() + (limits.memory_mb + _THREADS_MB) * MB
    for what, soft, hard in (
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_AS, space, space),
        (resource.RLIMIT_FSIZE, limits.file_mb * MB, limits.file_mb * MB),
        (resource.RLIMIT_NOFILE, 256, 256),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_MEMLOCK, 0, 0),
        (resource.RLIMIT_MSGQUEUE if hasattr(resource, "RLIMIT_MSGQUEUE") else None, 0, 0),
        (resource.RLIMIT_STACK, 8 * MB, 64 * MB),
    ):
        if what is not None:
            resource.setrlimit(what, (soft, hard))
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)


def _size(limits: Limits, quarters: int) -> str:
    return f"size={limits.scratch_mb * MB * quarters // 4},nr_inodes=4096,"


def _address_space() -> int:
    """The bytes of address space that this process has taken."""
    if not os.path.exists("/proc/self/statm"):
        return 1 << 40
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()
