"""Linux calls that Python has only from 3.12 on, or not at all."""

import ctypes
import os
import platform
from pathlib import Path

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x00020000, 0x04000000, 0x08000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
CLONE_NEWCGROUP = 0x02000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_CAPABILITY_VERSION_3 = 0x20080522
_AT_RECURSIVE, _MOUNT_SETATTR = 0x8000, 442
# The numbers of pivot_root and capset differ from machine to machine.
_CALLS = {"x86_64": (155, 126), "aarch64": (41, 91)}

_libc = ctypes.CDLL(None, use_errno=True)


def supported() -> bool:
    """Whether this is a Linux machine whose call numbers are known here."""
    return platform.system() == "Linux" and platform.machine() in _CALLS


def unshare(flags: int) -> None:
    """New namespaces for this process (for its children, where pids are concerned)."""
    _check(_libc.unshare(flags), "unshare")


def setns(fd: int, kind: int) -> None:
    """Back into the namespace that ``fd`` refers to."""
    _check(_libc.setns(fd, kind), "setns")


def mount(source: str, target: str, kind: str, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    arguments = [text.encode() for text in (source, target, kind)]
    done = _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode() or None)
    _check(done, f"mount {kind or source} on {target}")


def bind(source: str, target: str, writable: bool = False, devices: bool = False) -> None:
    """Shows a file or a folder, with all that is mounted below it, a second time.

    Read-only, without set-user-id programs, and without devices unless told otherwise.
    """
    mount(source, target, "", MS_BIND | MS_REC)
    flags = MS_NOSUID | (0 if devices else MS_NODEV) | (0 if writable else MS_RDONLY)
    attributes = (ctypes.c_uint64 * 4)(flags, 0, 0, 0)
    arguments = (-100, target.encode(), _AT_RECURSIVE, ctypes.byref(attributes), 32)
    if _libc.syscall(_MOUNT_SETATTR, *arguments) != 0:  # Linux before 5.12
        mount("", target, "", MS_BIND | MS_REMOUNT | flags | _locked_flags(target))


def _locked_flags(target: str) -> int:
    """The flags that a remount inside a user namespace may not drop."""
    found = os.statvfs(target).f_flag
    return found & (MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC)


def pivot(root: str) -> None:
    """Makes ``root`` the root folder and detaches the old one."""
    os.chdir(root)
    number = _CALLS[platform.machine()][0]
    _check(_libc.syscall(number, b".", b"."), "pivot_root")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount the old root")
    os.chdir("/")


def set_dumpable() -> None:
    """Lets this process write its own ``/proc/self`` again after a change of user."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl dumpable")


def die_with_parent() -> None:
    """SIGKILL for this process when the thread that forked it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl pdeathsig")


def drop_privileges() -> None:
    """No capability is left to this process, nor to be had by what it starts."""
    for capability in range(64):
        if _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            break
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    nothing = (ctypes.c_uint32 * 6)()
    number = _CALLS[platform.machine()][1]
    _check(_libc.syscall(number, ctypes.byref(header), ctypes.byref(nothing)), "capset")
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl no_new_privs")


def map_user(inside: int, outside_user: int, outside_group: int) -> None:
    """One user and one group of this process's new user namespace."""
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{inside} {outside_user} 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{inside} {outside_group} 1", encoding="ascii")


def install_filter(program: bytes) -> None:
    """A seccomp filter (see `parlab.grade.sandbox.filter`) for this process and its children."""

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]

    prog = Program(len(program) // 8, program)
    done = _libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(prog), 0, 0)
    _check(done, "prctl seccomp")


def _check(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
