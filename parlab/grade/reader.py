"""The warm parent of readers: processes that run nbval on one notebook each and can be lost.

What a kernel says is read here and nowhere else, under a memory limit. ``python -m
parlab.grade.reader SETTINGS`` imports pytest and nbval once, then forks a reader for each request
``{"folder": …, "limits": …, "skip": […]}``. The reader runs ``notebook.ipynb`` in the folder and
leaves ``outcome.json`` there, of bounded size.
"""

# mypy: untyped-calls-exclude=nbformat

import contextlib
import gc
import importlib
import io
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbval import plugin as nbval

from parlab.grade import forkserver, nbval_plugin, provisioner
from parlab.grade.limits import MB

_MEMORY_MB = 768  # a reader's own, on top of what it is born with
_LOG_MB = 4
_PLUGINS = (  # of pytest, that a reader has no use for
    "cacheprovider", "doctest", "junitxml", "pastebin", "unittest", "stepwise", "faulthandler",
    "setuponly", "setupplan", "threadexception", "unraisableexception", "logging", "debugging",
    "recwarn", "monkeypatch", "tmpdir", "freeze_support", "warnings", "subtests",
    "terminalprogress",
)  # fmt: skip


class Reader(forkserver.Child):
    """A reader as its parent sees it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def look(self) -> None:
        """Its own limits bind it."""

    def cpu_seconds(self) -> float:
        """Nobody asks."""
        return 0.0

    def kill(self) -> None:
        """Its kernel dies with its connection."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def ended(self, status: int, usage: Any) -> dict[str, Any]:
        """How it ended; the outcome is in the folder."""
        return {
            "status": os.waitstatus_to_exitcode(status),
            "peak_memory_mb": round(usage.ru_maxrss / 1024, 1),
            "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 3),
        }


def start(request: dict[str, Any], fds: list[int]) -> Reader:
    """Forks a reader."""
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _read(request)
        finally:
            os._exit(code)
    return Reader(pid)


def _read(request: dict[str, Any]) -> int:
    os.setsid()
    os.chdir(request["folder"])
    log = os.open("pytest.log", os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.closerange(3, 4096)
    resource.setrlimit(resource.RLIMIT_FSIZE, (_LOG_MB * MB, _LOG_MB * MB))
    with open("/proc/self/statm" if os.path.exists("/proc/self/statm") else os.devnull) as file:
        pages = int((file.read().split() or ["0"])[0])
    if pages:
        space = pages * resource.getpagesize() + _MEMORY_MB * MB
        resource.setrlimit(resource.RLIMIT_AS, (space, space))
    limits = request["limits"]
    os.environ["PARLAB_GRADE_LIMITS"] = json.dumps(limits)
    sound = nbval_plugin.Sound(limits, frozenset(request["skip"]))
    arguments = _arguments(request["folder"], request["kernel"], limits["cell_seconds"])
    code = pytest.main(arguments, plugins=[nbval, sound])
    sys.stdout.flush()
    sound.write(Path("outcome.json"), int(code))
    return 0


def _arguments(folder: str, kernel: str, seconds: float) -> list[str]:
    """nbval, lax, on one notebook in an empty folder, with nothing that could come from outside."""
    return [
        "-c", os.devnull, "--noconftest", "--rootdir", folder, "--confcutdir", folder,
        "--color=no", "--tb=short", "-qq", "--assert=plain", "--capture=no", "-o", "addopts=",
        *(word for name in _PLUGINS for word in ("-p", f"no:{name}")),
        "--nbval-lax", f"--nbval-kernel-name={kernel}", f"--nbval-cell-timeout={seconds}",
        f"{folder}/notebook.ipynb",
    ]  # fmt: skip


def _warm_up() -> None:
    """Has pytest and nbval collect a notebook, so that readers find all modules imported."""
    with tempfile.TemporaryDirectory() as folder:
        notebook = new_notebook(cells=[new_code_cell("")])
        Path(folder, "notebook.ipynb").write_text(nbformat.writes(notebook), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            pytest.main([*_arguments(folder, "none", 1), "--collect-only"], plugins=[nbval])
    for name in ("jupyter_client.blocking", "jupyter_client.provisioning", "zmq.utils.monitor"):
        importlib.import_module(name)


def main() -> None:
    """Serves until standard input ends."""
    settings = json.loads(sys.argv[1])
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    provisioner.register(settings["provisioner"])
    _warm_up()
    server = forkserver.ForkServer(settings["path"], start)
    gc.collect()
    gc.freeze()
    gc.disable()
    print(json.dumps({"ready": True}), flush=True)
    server.serve()


if __name__ == "__main__":
    main()
