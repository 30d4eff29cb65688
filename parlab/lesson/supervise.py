"""Runs one command and leaves no process: ``python -m parlab.lesson.supervise LOG COMMAND…``.

It stands between the driver and torchrun, in a session of its own. Its standard input is a pipe
that the driver holds open: when that ends, for whatever reason (the driver stops the run, is
interrupted, or is itself killed), every descendant is killed. torchrun starts each rank in a
session of its own, so killing a process group would miss them. On Linux, orphans become this
process's children (``PR_SET_CHILD_SUBREAPER``), so that none escapes. A byte in the pipe asks for
the ranks' stacks: each gets SIGABRT, at which Python's fault handler writes them to its log.

Standard library only: it must start in a moment.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
POLL_S, KILL_S = 0.1, 3.0


def main(arguments: list[str]) -> int:
    """Runs the command; prints ``{"returncode": …, "stopped": …}`` when nothing is left of it.

    Returns:
        The exit status; 1 where the command was not started, since the log cannot be written.
    """
    log, *command = arguments
    stop = False

    def ask(_number: int, _frame: FrameType | None) -> None:
        nonlocal stop
        stop = True

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, ask)
    _control(PR_SET_CHILD_SUBREAPER, 1)
    try:
        child = _start(command, log)
    except OSError as error:
        print(f"{error.filename} cannot be opened: {error.strerror}", file=sys.stderr)
        return 1
    seen: set[int] = {child.pid}
    while child.poll() is None and not stop:
        ready, _, _ = select.select([sys.stdin], [], [], POLL_S)
        if ready and os.read(sys.stdin.fileno(), 1):
            child.send_signal(signal.SIGSTOP)  # it ends every rank once the first has spoken
            _signal(children(child.pid), signal.SIGABRT)
        else:
            stop = stop or bool(ready)
        if not Path("/proc/self/stat").exists():
            seen |= descendants(os.getpid())  # no subreaper there: remember who was ours
    returncode = child.poll()
    left = kill_all(child, seen)
    with contextlib.suppress(OSError):  # the driver may be gone
        print(json.dumps({"returncode": returncode, "stopped": stop, "left": left}), flush=True)
    return 0


def _start(command: list[str], log: str) -> "subprocess.Popen[bytes]":
    with open(log, "ab") as file:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, preexec_fn=_die_together
        )


def _control(option: int, value: int) -> None:
    """Linux's prctl; elsewhere nothing."""
    if sys.platform.startswith("linux"):
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _die_together() -> None:
    """In the child, before it starts: end when this supervisor is killed; leave no core files."""
    import resource  # not on Windows, where lessons import this module but start nothing

    _control(PR_SET_PDEATHSIG, signal.SIGTERM)
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def kill_all(child: "subprocess.Popen[bytes]", seen: Iterable[int] = ()) -> list[int]:
    """Kills torchrun, so that it starts nothing more, then all that descends from this process.

    Returns:
        The processes that were still there after ``KILL_S`` seconds.
    """
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    deadline = time.monotonic() + KILL_S
    known = set(seen)
    while True:
        known |= descendants(os.getpid())
        alive = {pid for pid in known if _lives(pid)}
        if not (alive or _has_children()) or time.monotonic() > deadline:
            return sorted(alive)
        _signal(alive, signal.SIGKILL)
        time.sleep(0.02)


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)


def _has_children() -> bool:
    """Buries the dead; whether a child is left. As subreaper this process inherits every orphan.

    A process is only left out of account when the system says that there is none: while a parent
    of many threads dies, its children are in nobody's list for a moment.
    """
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    stat = _stat(pid)
    return stat is not None and stat[0] == "Z"


def children(parent: int) -> set[int]:
    """The processes that ``parent`` started and that still run."""
    return {pid for pid, above in _processes() if above == parent}


def descendants(ancestor: int) -> set[int]:
    """Every process below ``ancestor``."""
    parents = dict(_processes())
    found: set[int] = set()
    for pid in parents:
        line, above = [pid], parents.get(pid)
        while above and above != ancestor and above in parents:
            line.append(above)
            above = parents[above]
        if above == ancestor:
            found.update(line)
    return found


def _processes() -> Iterable[tuple[int, int]]:
    """Process and parent of all there are, zombies too: their children may still be theirs."""
    if Path("/proc/self/stat").exists():
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (stat := _stat(int(entry))):
                yield int(entry), int(stat[1])
        return
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        pid, parent = line.split()
        yield int(pid), int(parent)


def _stat(pid: int) -> list[str] | None:
    """State and parent from Linux's ``/proc/PID/stat``; None where there is none."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()[:2]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
