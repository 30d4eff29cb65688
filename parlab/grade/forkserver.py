"""A warm process that forks a child for each client and says how the child ended.

A client connects to its Unix socket and sends one line of JSON, with file descriptors if need be.
The child lives as long as the connection: who hangs up, or dies, has it killed. On the connection
the server answers ``{"started": pid}`` and, when everything that the child began is dead,
``{"ended": …}``. A client may send ``{"signal": number}``, or ``{"ask": "cpu"}``, which is
answered ``{"cpu": seconds}``.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

_TICK = 0.05  # seconds between two looks at what children use
_REQUEST_BYTES = 65536


class Child(ABC):
    """A forked process as its server sees it."""

    pid: int

    @abstractmethod
    def look(self) -> None:
        """Called every `_TICK` seconds: kills the child if it uses too much."""

    @abstractmethod
    def cpu_seconds(self) -> float:
        """What it and all that it began have used so far."""

    @abstractmethod
    def kill(self) -> None:
        """SIGKILL to the child and to all that it began."""

    @abstractmethod
    def ended(self, status: int, usage: Any) -> dict[str, Any]:
        """Cleans up after the child; what the client is told."""


class ForkServer:
    """Serves clients until its standard input ends.

    Args:
        path: of the socket to listen on; must not exist.
        start: forks the child for a request. In the child it does not return.
    """

    def __init__(self, path: str, start: Callable[[dict[str, Any], list[int]], Child]) -> None:
        self._start = start
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(path)
        self._listener.listen(128)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(sys.stdin, selectors.EVENT_READ)
        self._children: dict[socket.socket, Child] = {}
        self._pidfds: dict[socket.socket, int] = {}

    def serve(self) -> None:
        """Runs until the process that holds the other end of standard input is gone."""
        next_look = time.monotonic() + _TICK
        while True:
            timeout = max(0.0, next_look - time.monotonic()) if self._children else None
            for key, _ in self._selector.select(timeout):
                if key.fileobj is sys.stdin:
                    if not os.read(0, 4096):
                        self._stop()
                        return
                elif key.fileobj is self._listener:
                    self._accept()
                elif isinstance(key.fileobj, socket.socket):
                    self._hear(key.fileobj)
            self._reap()
            if time.monotonic() >= next_look:
                for child in self._children.values():
                    child.look()
                next_look = time.monotonic() + _TICK

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        connection.settimeout(5)  # the client sends its request as soon as it has connected
        try:
            text, fds, _, _ = socket.recv_fds(connection, _REQUEST_BYTES, 8)
            request = json.loads(text)
        except (OSError, ValueError):
            connection.close()
            return
        try:
            child = self._start(request, fds)
        except Exception as error:
            _send(connection, {"ended": {"error": f"{type(error).__name__}: {error}"}})
            connection.close()
            return
        finally:
            for fd in fds:
                os.close(fd)
        self._children[connection] = child
        self._selector.register(connection, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):
            self._pidfds[connection] = os.pidfd_open(child.pid)
            self._selector.register(self._pidfds[connection], selectors.EVENT_READ)
        _send(connection, {"started": child.pid})

    def _hear(self, connection: socket.socket) -> None:
        child = self._children.get(connection)
        if child is None:
            return
        try:
            text = connection.recv(4096)
        except OSError:
            text = b""
        if not text:
            child.kill()
            self._selector.unregister(connection)
            return
        for line in text.splitlines():
            with contextlib.suppress(ValueError, KeyError, ProcessLookupError):
                word = json.loads(line)
                if "ask" in word:
                    _send(connection, {"cpu": child.cpu_seconds()})
                    continue
                number = int(word["signal"])
                child.kill() if number == signal.SIGKILL else os.kill(child.pid, number)

    def _reap(self) -> None:
        for connection, child in list(self._children.items()):
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                self._finish(connection, status, usage)

    def _finish(self, connection: socket.socket, status: int, usage: Any) -> None:
        child = self._children.pop(connection)
        pidfd = self._pidfds.pop(connection, None)
        if pidfd is not None:
            self._selector.unregister(pidfd)
            os.close(pidfd)
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(connection)
        _send(connection, {"ended": child.ended(status, usage)})
        connection.close()

    def _stop(self) -> None:
        for child in self._children.values():
            child.kill()
        for connection, child in list(self._children.items()):
            _, status, usage = os.wait4(child.pid, 0)
            self._finish(connection, status, usage)


class Connection:
    """A client's end: one child of a `ForkServer`.

    Args:
        path: the server's socket.
        request: for the server's ``start``.
        fds: file descriptors for the child; the caller closes its own.

    Attributes:
        ended: what the server said at the end; None while the child lives.
    """

    def __init__(self, path: str, request: dict[str, Any], fds: tuple[int, ...] = ()) -> None:
        self.ended: dict[str, Any] | None = None
        self._cpu: float | None = None
        self._buffer = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.connect(path)
            socket.send_fds(self._socket, [json.dumps(request).encode()], list(fds))
        except OSError:
            self._socket.close()
            raise
        self.pid: int | None = None
        end = time.monotonic() + 60
        while self.pid is None and self.ended is None and self._listen(end):
            pass

    def fileno(self) -> int:
        """Readable once the child has ended."""
        return self._socket.fileno()

    def poll(self) -> bool:
        """Whether the child has ended."""
        return self.wait(0)

    def wait(self, seconds: float) -> bool:
        """Waits until the child has ended, at most so long; whether it has."""
        end = time.monotonic() + seconds
        while self.ended is None and self._listen(end):
            pass
        return self.ended is not None

    def _listen(self, end: float) -> bool:
        """Takes what the server says next; False where it says nothing until ``end``."""
        self._socket.settimeout(max(0.0, end - time.monotonic()))
        try:
            data = self._socket.recv(65536)
        except (TimeoutError, BlockingIOError):
            return False
        except OSError:
            data = b""
        if not data:
            self.ended = {"error": "the warm process is gone"}
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        for line in lines:
            word = json.loads(line)
            self.pid = word.get("started", self.pid)
            self.ended = word.get("ended", self.ended)
            self._cpu = word.get("cpu", self._cpu)
        return True

    def cpu_seconds(self) -> float:
        """CPU time of the child and of all that it began, as the server sees it; 0 at its end."""
        self._cpu = None
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps({"ask": "cpu"}).encode() + b"\n")
        end = time.monotonic() + 60
        while self._cpu is None and self.ended is None and self._listen(end):
            pass
        return self._cpu or 0.0

    def signal(self, number: int) -> None:
        """Sends a signal to the child, if it lives."""
        with contextlib.suppress(OSError):
            self._socket.sendall(json.dumps({"signal": number}).encode() + b"\n")

    def kill(self, patience: float = 10.0) -> dict[str, Any]:
        """Kills the child with all that it began; how it ended.

        Args:
            patience: seconds to wait for the server's word.
        """
        if self.ended is None:
            self.signal(signal.SIGKILL)
            self.wait(patience)
        self._socket.close()
        return self.ended or {"error": "no word from the warm process"}


def _send(connection: socket.socket, word: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        connection.settimeout(5)
        connection.sendall(json.dumps(word).encode() + b"\n")
