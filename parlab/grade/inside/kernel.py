"""A Jupyter kernel on sockets that wait already: no file, no history, no debugger, no heartbeat."""

# mypy: disable-error-code="misc,no-untyped-call"

import contextlib
import os
import sys
from typing import Any

import zmq
from ipykernel.kernelapp import IPKernelApp
from traitlets.config import Config

_NOMINAL = "/scratch/kernel"  # never made: the sockets are open before the kernel is
_CHANNELS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


class SandboxKernelApp(IPKernelApp):
    """ipykernel's application on listening sockets that the sandbox was given."""

    waiting: dict[int, int] = {}  # port -> file descriptor

    def init_connection_file(self) -> None:
        """There is none: the grader has made the sockets."""

    def write_connection_file(self, **_: Any) -> None:
        """There is none."""

    def cleanup_connection_file(self) -> None:
        """There is none."""

    def init_poller(self) -> None:
        """The sandbox ends with its grader anyhow."""

    def init_heartbeat(self) -> None:
        """The grader hears of the sandbox's end at once."""

    def init_crash_handler(self) -> None:
        """Nobody reads the standard error of a sandbox."""

    def log_connection_info(self) -> None:
        """Notes the ports, which the kernel asks for, and says nothing."""
        self._ports = {name.removesuffix("_port"): getattr(self, name) for name in _CHANNELS}

    def _try_bind_socket(self, s: Any, port: int) -> int:
        s.setsockopt(zmq.USE_FD, self.waiting[port])
        s.bind(f"ipc://{_NOMINAL}-{port}")
        return port


def main(setup: dict[str, Any]) -> None:
    """Runs a kernel until it is killed or asked to stop.

    Args:
        setup: ``fds`` of the five listening sockets (shell, iopub, stdin, control, heartbeat) and
            the session's ``key``.
    """
    config = Config()
    config.HistoryManager.enabled = False
    config.HistoryAccessor.enabled = False
    config.InteractiveShell.xmode = "Plain"  # whose lines need no parsing of the source
    config.Session.key = setup["key"].encode()
    config.IPKernelApp.capture_fd_output = False
    config.IPKernelApp.log_level = 50
    config.IPKernelApp.transport = "ipc"
    config.IPKernelApp.ip = _NOMINAL
    app: Any = SandboxKernelApp.instance(config=config)
    app.waiting = dict(enumerate(setup["fds"], 1))
    for port, name in enumerate(_CHANNELS, 1):
        setattr(app, name, port)
    app.initialize([])
    _forget_debugger(app)
    sys.path[:] = ["", *(path for path in sys.path if path)]
    app.start()
    os._exit(0)


def _forget_debugger(app: Any) -> None:
    """ipykernel would try for ever to connect its debugger to the nominal address."""
    with contextlib.suppress(AttributeError, zmq.ZMQError):
        app.debug_shell_socket.disconnect(f"ipc://{_NOMINAL}-1")
