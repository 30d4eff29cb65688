"""Stops by Ctrl-C, ``kill`` or a closed terminal: one at a time, and never between two files."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

# A closed terminal is no signal on Windows.
_STOPS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


@contextlib.contextmanager
def stops_interrupt() -> Iterator[None]:
    """Turns the first stop into ``KeyboardInterrupt``; those after it do not stop the tidying up.

    A stop that the caller's process ignores, as ``nohup`` has it, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {stop: signal.getsignal(stop) for stop in _STOPS}
    heeded = [stop for stop in _STOPS if before[stop] is not signal.SIG_IGN]

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        for stop in heeded:
            signal.signal(stop, signal.SIG_IGN)
        raise KeyboardInterrupt

    for stop in heeded:
        signal.signal(stop, interrupt)
    try:
        yield
    finally:
        for stop in heeded:
            signal.signal(stop, before[stop] or signal.SIG_DFL)


@contextlib.contextmanager
def stops_held_back() -> Iterator[None]:
    """Lets a stop that comes inside take effect at the end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {stop: signal.getsignal(stop) for stop in _STOPS}
    for stop in _STOPS:
        if before[stop] is not signal.SIG_IGN:
            signal.signal(stop, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])
