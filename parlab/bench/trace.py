"""Events of one step on one rank: what it computed, what it exchanged, when it was blocked.

Every exchange of the engine goes through `start`; outside a recording that costs one comparison.
Times are seconds of `time.perf_counter`, which ranks on one Linux host share. On GPUs the moments
are those of the compute stream (see `stream_clock`): blocked is what the stream waits for a
transfer, so that overlapped communication is not counted, and nothing waits for the device while
the step runs.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple, Protocol

import torch

from parlab.bench.stream_clock import Clock, HostClock, StreamClock


class Label(NamedTuple):
    """Why an exchange happens: its axis, its direction (forward, backward, step) and its cause."""

    axis: str
    direction: str
    cause: str


class Waitable(Protocol):
    """What torch.distributed returns for an operation under way."""

    def wait(self) -> Any: ...


class Pending:
    """Operations under way; `wait` blocks until all are complete on this rank."""

    def __init__(self, works: Sequence[Waitable | None]) -> None:
        self.works = works

    def wait(self) -> None:
        for work in self.works:
            if work is not None:
                work.wait()


class Recorder:
    """Collects the events of one step."""

    def __init__(self, clock: Clock) -> None:
        self.now = clock.now
        self.events: list[dict[str, Any]] = []
        self._clock = clock
        self._sequences: Counter[Any] = Counter()

    def finish(self) -> None:
        """Turns the moments of all events into seconds."""
        for event, seconds in zip(self.events, self._clock.read(self.events), strict=True):
            event.update(seconds)

    def number(self, key: Any) -> int:
        """How many operations with this key came before."""
        self._sequences[key] += 1
        return self._sequences[key] - 1

    @contextmanager
    def chunk(self, name: str, stage: int | None, microbatch: int | None) -> Iterator[None]:
        start = self.now()
        yield
        event = {"kind": "compute", "name": name, "stage": stage, "microbatch": microbatch}
        self.events.append({**event, "start": start, "end": self.now()})

    def start(
        self, label: Label, operation: str, ranks: Sequence[int], kind: str, post: Post
    ) -> Pending:
        event: dict[str, Any] = {
            "kind": kind, "operation": operation, "axis": label.axis, "cause": label.cause,
            "direction": label.direction, "group": list(ranks),
            "sequence": self.number(tuple(ranks)), "start": self.now(),
        }  # fmt: skip
        works = post()
        event["blocked"] = [[event["start"], self.now()]]
        return _RecordedPending(self, event, works)

    def batch(self, operations: Sequence[Any], post: Callable[..., Any]) -> list[Waitable]:
        """Pipeline transfers that a schedule posts together."""
        if not operations:
            return []
        events = [self._transfer(operation) for operation in operations]
        works = list(post(operations))
        posting = [events[0]["start"], self.now()]  # gloo writes to the socket while it posts
        for event in events:
            event["blocked"] = [posting]
        if len(works) != len(events):  # NCCL joins a batch into one work
            return [_Transfers(self, events, works)]
        return [_Transfers(self, [e], [w]) for e, w in zip(events, works, strict=True)]

    def _transfer(self, operation: Any) -> dict[str, Any]:
        name = "send" if operation.op is torch.distributed.isend else "recv"
        sequence = self.number((name, operation.peer))
        event = {"kind": "p2p", "operation": name, "peer": operation.peer, "axis": "pp"}
        return {**event, "sequence": sequence, "start": self.now()}


Post = Callable[[], Sequence[Waitable | None]]


class _RecordedPending(Pending):
    def __init__(
        self, recorder: Recorder, event: dict[str, Any], works: Sequence[Waitable | None]
    ) -> None:
        super().__init__(works)
        self.recorder, self.event = recorder, event

    def wait(self) -> None:
        before = self.recorder.now()
        super().wait()
        end = self.recorder.now()
        blocked = [*self.event["blocked"], [before, end]]
        self.recorder.events.append({**self.event, "end": end, "blocked": blocked})


class _Transfers:
    """Stands for a work in torch's schedules, which only wait for it."""

    def __init__(
        self, recorder: Recorder, events: list[dict[str, Any]], works: list[Waitable]
    ) -> None:
        self.recorder, self.events, self.works = recorder, events, works

    def wait(self) -> None:
        before = self.recorder.now()
        for work in self.works:
            work.wait()
        end = self.recorder.now()
        for event in self.events:
            blocked = [*event["blocked"], [before, end]]
            self.recorder.events.append({**event, "end": end, "blocked": blocked})


_recorder: Recorder | None = None
_directions: dict[int, str] | None = None  # of pipeline sends by address, while traffic is counted
label: Label | None = None  # of the operation being posted, read by the traffic counter


def start(
    why: Label, operation: str, ranks: Sequence[int], post: Post, kind: str = "collective"
) -> Pending:
    """Post an operation of the group `ranks` (global ranks) and return what waits for it."""
    global label
    label = why
    try:
        if _recorder is None:
            return Pending(post())
        return _recorder.start(why, operation, ranks, kind, post)
    finally:
        label = None


def chunk(
    name: str, stage: int | None = None, microbatch: int | None = None
) -> AbstractContextManager[None]:
    """A forward (F), backward (B), weight-gradient (W), loss or optimizer chunk."""
    if _recorder is None:
        return nullcontext()
    return _recorder.chunk(name, stage, microbatch)


@contextmanager
def recording(device: torch.device) -> Iterator[Recorder]:
    """Record every event of this rank inside the block, pipeline transfers included.

    torch's schedules post transfers through one function of their module and offer no hook, so
    that function is replaced while the recording lasts. Where nobody imported them, none run.
    """
    global _recorder
    recorder = _recorder = Recorder(StreamClock(device) if device.type == "cuda" else HostClock())
    schedules: Any = sys.modules.get("torch.distributed.pipelining.schedules")
    post: Any = schedules._batch_p2p if schedules else None
    try:
        if schedules:
            schedules._batch_p2p = lambda operations, desc=None: recorder.batch(operations, post)
        yield recorder
    finally:
        _recorder = None
        if schedules:
            schedules._batch_p2p = post
    recorder.finish()


def heading(operations: list[Any], direction: str) -> list[Any]:
    """Note which way a pipeline's sends go, for the traffic counter."""
    if _directions is not None:
        for operation in operations:
            _directions[operation.tensor.data_ptr()] = direction
    return operations


@contextmanager
def directions(addresses: dict[int, str]) -> Iterator[None]:
    """Let `heading` fill `addresses` inside the block."""
    global _directions
    _directions = addresses
    try:
        yield
    finally:
        _directions = None
