"""Trusted functions on ranks in the grader's own process: the same wire, threads at its ends."""

import queue
import threading
from collections.abc import Callable
from typing import Any

from parlab.grade.inside import rank as one_rank
from parlab.grade.ranks import Ranks
from parlab.grade.types import Result
from parlab.grade.wire import Wire

SECONDS = 60  # of a trusted function, on a machine however loaded


def run_here(function: Callable[..., Any], ranks: Ranks, seconds: float = SECONDS) -> Result:
    """``function`` on ranks that are threads: see `Wire.run`.

    Raises:
        TimeoutError: no word of a rank for so long; its thread is left behind.
    """
    return Wire([_Thread(function, seconds) for _ in range(ranks.size)], ranks).run()


class _Thread:
    """Both ends of the line to a rank."""

    def __init__(self, function: Callable[..., Any], seconds: float) -> None:
        self._seconds = seconds
        self._there: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._back: queue.SimpleQueue[Any] = queue.SimpleQueue()
        ends = _End(self._there, self._back)
        self._thread = threading.Thread(target=_serve, args=(ends, function), daemon=True)
        self._thread.start()

    def send(self, message: Any) -> None:
        self._there.put(message)

    def receive(self) -> list[Any]:
        try:
            word: list[Any] = self._back.get(timeout=self._seconds)
        except queue.Empty:
            raise TimeoutError(f"no word of a rank for {self._seconds} s") from None
        return word


class _End:
    def __init__(self, come: "queue.SimpleQueue[Any]", go: "queue.SimpleQueue[Any]") -> None:
        self._come, self._go = come, go

    def send(self, message: Any) -> None:
        self._go.put(message)

    def receive(self) -> Any:
        return self._come.get()


def _serve(ends: _End, function: Callable[..., Any]) -> None:
    ends.send(one_rank.run(ends, function, ends.receive(), _described))


def _described(error: BaseException) -> list[Any]:
    return ["raised", type(error).__name__, str(error)[:2000], None]
