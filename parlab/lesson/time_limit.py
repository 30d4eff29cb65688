"""Ends a call that does not end by itself."""

import ctypes
import threading
from types import TracebackType

AGAIN_S, TIMES = 0.02, 500


class OutOfTime(BaseException):
    """Raised in the middle of a call whose time is up."""


class TimeLimit:
    """In its ``with`` block `OutOfTime` is raised after so many seconds, in the block's thread.

    It comes again until the block is left, since a bare ``except`` may have caught it. What waits
    outside of Python's own code, in a long sum or a sleep, ends when it gets back to Python.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._thread = ctypes.c_ulong(0)
        self._over = threading.Event()
        self._lock = threading.Lock()

    def __enter__(self) -> "TimeLimit":
        self._thread = ctypes.c_ulong(threading.get_ident())
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        stack: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """From here on nothing is raised; may be called twice."""
        while True:
            try:
                with self._lock:
                    self._over.set()
                    self._raise(None)  # one that is on its way
                return
            except OutOfTime:
                continue

    def _watch(self) -> None:
        wait = self.seconds
        for _ in range(TIMES):
            if self._over.wait(wait):
                return
            with self._lock:
                if not self._over.is_set():
                    self._raise(ctypes.py_object(OutOfTime))
            wait = AGAIN_S

    def _raise(self, what: object) -> None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, what)
