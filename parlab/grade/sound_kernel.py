"""nbval's kernel, except that it notices what nbval does not.

Death is noticed at once, the reply's status is kept, waiting has no fixed pauses, and whatever
arrives is counted before it is read: a message too large, too many of them, or one that the kernel
cannot have sent, ends the run.
"""

# mypy: disable-error-code="no-untyped-call"

import time
from collections import Counter, deque
from queue import Empty
from typing import Any

import zmq
from jupyter_client.manager import KernelManager
from nbval.kernel import NbvalKernelspecManager, RunningKernel

from parlab.grade.limits import MB

_READY_SECONDS = 60
_PATIENCE = 5.0  # seconds between a reply and the end of its output
_QUEUE = 500  # messages that wait to be read, each of at most `message_mb`


class RunEnded(Exception):
    """Nothing more can be learnt from this kernel.

    Attributes:
        status: the submission's status, such as ``kernel_died``.
    """

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


class SoundKernel(RunningKernel):  # type: ignore[misc]
    """A sandboxed kernel behind nbval's interface.

    Attributes:
        limits: what it may use, as a dict of `parlab.grade.limits.Limits`.
        replies: message id → the content of its execute_reply.
        problems: what only a patched kernel does: (note key, text).
    """

    limits: dict[str, Any] = {}

    def __init__(self, kernel_name: str, cwd: str | None = None, startup_timeout: float = 60):
        self.replies: dict[str, dict[str, Any]] = {}
        self.problems: list[tuple[str, str]] = []
        self.bytes_read = 0
        self._idles: Counter[str] = Counter()
        self._waiting: dict[str, deque[dict[str, Any]]] = {"shell": deque(), "iopub": deque()}
        manager = NbvalKernelspecManager()
        self.km = KernelManager(kernel_name=kernel_name, kernel_spec_manager=manager)
        self.km.start_kernel(cwd=cwd)
        provisioner: Any = self.km.provisioner
        self.connection = provisioner.connection
        self.kc = self.km.client()
        self._context = self.kc.context
        self._open()
        self._await_ready()

    def _open(self) -> None:
        """Connects shell and iopub; a message above the limit breaks the connection."""
        session, self._session = self.kc.session, self.kc.session
        session.digest_history_size = 4096
        self._sockets: dict[str, Any] = {}
        largest = self.limits["message_mb"] * MB
        for channel, kind in (("shell", zmq.DEALER), ("iopub", zmq.SUB)):
            made = self._context.socket(kind)
            made.linger = 0
            made.maxmsgsize = largest
            made.rcvhwm = _QUEUE
            if channel == "iopub":
                made.subscribe(b"")
                self._broken = made.get_monitor_socket(zmq.EVENT_DISCONNECTED)
            made.connect(self.km._make_url(channel))
            self._sockets[channel] = made
        self._poller = zmq.Poller()
        for item in (*self._sockets.values(), self._broken, self.connection.fileno()):
            self._poller.register(item, zmq.POLLIN)

    def _await_ready(self) -> None:
        """Returns once the kernel answers on both channels."""
        end = time.monotonic() + _READY_SECONDS
        pause = 0.5
        while time.monotonic() < end:
            asked = self._send("kernel_info_request", {})
            stop = time.monotonic() + pause
            while time.monotonic() < stop:
                self._pump(min(stop, end))
                if any(m["parent_header"].get("msg_id") == asked for m in self._waiting["iopub"]):
                    return self._forget()
                answered = any(
                    m["parent_header"].get("msg_id") == asked for m in self._waiting["shell"]
                )
                if answered and pause > 0.1:  # iopub's subscription came late: ask again
                    stop, pause = time.monotonic() + 0.02, 0.1
        raise RunEnded("grader_error", f"the kernel did not answer in {_READY_SECONDS} s")

    def _forget(self) -> None:
        for queue in self._waiting.values():
            queue.clear()

    def execute_cell_input(self, cell_input: str, allow_stdin: bool | None = None) -> str:
        """Sends a cell; returns the request's id."""
        content = {
            "code": cell_input,
            "silent": False,
            "store_history": False,
            "user_expressions": {},
            "allow_stdin": False,
            "stop_on_error": False,
        }
        return self._send("execute_request", content)

    def await_reply(self, msg_id: str, timeout: float | None = None) -> None:
        """Waits for the reply, keeping what is printed meanwhile.

        Raises:
            RunEnded: the time is up, the kernel is gone or it sends too much.
        """
        end = time.monotonic() + (timeout or self.limits["cell_seconds"])
        while True:
            try:
                message = self._next("shell", end)
            except Empty:
                raise RunEnded("timeout", f"a cell ran for more than {timeout:g} s") from None
            if message["parent_header"].get("msg_id") == msg_id:
                self.replies[msg_id] = message["content"]
                return

    def get_message(self, stream: str, timeout: float | None = None) -> dict[str, Any]:
        """The next message of a channel.

        Raises:
            RunEnded: none came in time, or as in `await_reply`.
        """
        try:
            return self._next(stream, time.monotonic() + _PATIENCE)
        except Empty:
            raise RunEnded("tampered", "a reply came, but the end of its output did not") from None

    def is_alive(self) -> bool:
        """Whether the sandbox is there."""
        return hasattr(self, "km") and not self.connection.poll()

    def interrupt(self) -> None:
        """Nothing: a cell that took too long ends the run."""

    def stop(self) -> None:
        """Ends the sandbox, with all that is in it."""
        if hasattr(self, "km"):
            self.ended = self.connection.kill()
            self._broken.close(0)
            for item in self._sockets.values():
                item.close(0)
            del self.km

    def _send(self, kind: str, content: dict[str, Any]) -> str:
        message = self._session.msg(kind, content)
        self._session.send(self._sockets["shell"], message)
        return str(message["header"]["msg_id"])

    def _next(self, channel: str, end: float) -> dict[str, Any]:
        while not self._waiting[channel]:
            if time.monotonic() >= end:
                raise Empty
            self._pump(end)
        return self._waiting[channel].popleft()

    def _pump(self, end: float) -> None:
        """Reads what there is, waiting for something at most until ``end``."""
        ready = dict(self._poller.poll(int(max(0.0, end - time.monotonic()) * 1000) + 1))
        for channel, item in self._sockets.items():
            if item in ready:
                self._read(channel, item)
        if self.connection.fileno() in ready and self.connection.poll():
            self._say_how_it_ended()
        if self._broken in ready:
            self._broken.recv_multipart()
            if not self.connection.wait(0.2):
                raise RunEnded("output_limit", "a message above the limit")
            self._say_how_it_ended()

    def _read(self, channel: str, item: Any) -> None:
        for _ in range(200):
            try:
                frames = item.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.bytes_read += sum(map(len, frames))
            if self.bytes_read > self.limits["output_mb"] * MB:
                raise RunEnded("output_limit", f"more than {self.limits['output_mb']} MB")
            message = self._parse(frames)
            if message is None:
                self.problems.append(("forged_message", f"no message of a kernel on {channel}"))
                raise RunEnded("tampered", "a message that no kernel sends")
            if channel == "iopub":
                self._count_idle(message)
            self._waiting[channel].append(message)

    def _parse(self, frames: list[bytes]) -> dict[str, Any] | None:
        try:
            _, parts = self._session.feed_identities(frames)
            message: dict[str, Any] = self._session.deserialize(parts)
            header = message["parent_header"]
            if not isinstance(header, dict) or not isinstance(message["content"], dict):
                return None
            return message if isinstance(message["msg_type"], str) else None
        except Exception:
            return None

    def _count_idle(self, message: dict[str, Any]) -> None:
        """A kernel says once that it is idle again; a second time was somebody else."""
        if message["msg_type"] != "status":
            return
        if message["content"].get("execution_state") == "idle":
            request = str(message["parent_header"].get("msg_id"))
            self._idles[request] += 1
            if self._idles[request] > 1:
                self.problems.append(("forged_message", "idle twice for one request"))

    def _say_how_it_ended(self) -> None:
        word = self.connection.ended or {}
        reasons = {"cpu": "timeout", "wall": "timeout", "memory": "memory"}
        status = reasons.get(word.get("reason") or "", "kernel_died")
        raise RunEnded("grader_error" if word.get("error") else status, str(word))
