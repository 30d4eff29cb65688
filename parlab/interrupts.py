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
_at_work = False


@contextlib.contextmanager
def stops_interrupt(to_the_end: bool = False) -> Iterator[None]:
    """Turns the first stop into ``KeyboardInterrupt``; those after it do not stop the tidying up.

    Args:
        to_the_end: of the process, which has nothing left to do but end: later stops change
            neither its last words nor its exit status.

    A stop that the caller's process ignores, as ``nohup`` has it, stays ignored. Inside another
    one it adds nothing: what comes after the first stop is ignored to the end of the outermost.
    """
    global _at_work
    came = False
    if _at_work or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {stop: signal.getsignal(stop) for stop in _STOPS}
    heeded = [stop for stop in _STOPS if before[stop] is not signal.SIG_IGN]

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        nonlocal came
        came = True
        for stop in heeded:
            signal.signal(stop, signal.SIG_IGN)
        raise KeyboardInterrupt

    for stop in heeded:
        signal.signal(stop, interrupt)
    _at_work = True
    try:
        yield
    finally:
        _at_work = False
        for stop in () if came and to_the_end else heeded:
            signal.signal(stop, before[stop] or signal.SIG_DFL)


@contextlib.contextmanager
def stops_held_back() -> Iterator[list[int]]:
    """Lets a stop that comes inside take effect at the end; the list has those that came so far."""
    came: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield came
        return
    before = {stop: signal.getsignal(stop) for stop in _STOPS}
    for stop in _STOPS:
        if before[stop] is not signal.SIG_IGN:
            signal.signal(stop, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)
        if came:
            signal.raise_signal(came[0])
