"""When something happened: on the host, or on a GPU's compute stream."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

import torch

Moment = Any  # a float, or a CUDA event until it is read
Event = Mapping[str, Any]  # with start, end, and perhaps blocked


class Clock(Protocol):
    """Gives moments while a step runs, and their seconds once it is over."""

    def now(self) -> Moment: ...

    def read(self, events: Iterable[Event]) -> Iterator[dict[str, Any]]: ...


class HostClock:
    """The CPU computes and communicates in step with the program: its clock tells all."""

    now = staticmethod(time.perf_counter)

    def read(self, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
        """Nothing is left to be read."""
        return ({} for _ in events)


class StreamClock:
    """A GPU works behind the program: a moment is when its compute stream gets there.

    ``wait`` of an NCCL operation makes the stream wait, not the program; the stream's time from
    before to after it is the exposed part, and nothing where the operation had finished behind
    compute. Seconds are counted from a common start on the host's clock, which ranks share.

    Args:
        device: whose current stream computes.
        make: a CUDA event; another in tests.
        settle: waits for all work of the device.
    """

    def __init__(
        self,
        device: torch.device,
        make: Callable[[], Any] = lambda: torch.cuda.Event(enable_timing=True),
        settle: Callable[[torch.device], None] = torch.cuda.synchronize,
    ) -> None:
        self._device, self._make, self._settle = device, make, settle
        self._settle(device)
        self._zero = self.now()
        self._settle(device)
        self._host = time.perf_counter()

    def now(self) -> Moment:
        moment = self._make()
        moment.record()
        return moment

    def read(self, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
        """Start, end and blocked of each event in seconds of the host's ``perf_counter``."""
        self._settle(self._device)
        for event in events:
            seconds: dict[str, Any] = {key: self._seconds(event[key]) for key in ("start", "end")}
            if "blocked" in event:
                seconds["blocked"] = [[self._seconds(m) for m in pair] for pair in event["blocked"]]
            yield seconds

    def _seconds(self, moment: Moment) -> float:
        milliseconds: float = self._zero.elapsed_time(moment)
        return self._host + milliseconds / 1e3
