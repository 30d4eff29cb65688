"""One clock for all ranks: a GPU's compute stream, and hosts whose clocks differ."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from bench_job import torchrun

from parlab.bench import trace
from parlab.bench.measure import ratios, split_step
from parlab.bench.stream_clock import StreamClock

PROGRAM = Path(__file__).with_name("bench_clock.py")


class Stream:
    """A GPU's compute stream, as far as moments go: it is somewhere, in ms."""

    def __init__(self) -> None:
        self.at = 7000.0

    def moment(self) -> Moment:
        return Moment(self)


class Moment:
    def __init__(self, stream: Stream) -> None:
        self.stream, self.at = stream, None

    def record(self) -> None:
        self.at = self.stream.at

    def elapsed_time(self, later: Moment) -> float:
        return later.at - self.at


class Work:
    """An NCCL operation that is over when the stream is at `until`."""

    def __init__(self, stream: Stream, until: float) -> None:
        self.stream, self.until = stream, until

    def wait(self) -> None:
        self.stream.at = max(self.stream.at, self.until)


@pytest.fixture
def stream(monkeypatch):
    stream = Stream()
    monkeypatch.setattr(
        trace, "StreamClock", lambda device: StreamClock(device, stream.moment, lambda _: None)
    )
    return stream


def exchange(stream: Stream, compute_ms: float, transfer_ms: float) -> None:
    why = trace.Label("tp", "forward", "layers")
    work = Work(stream, stream.at + transfer_ms)
    pending = trace.start(why, "all_reduce", [0], lambda: [work])
    stream.at += compute_ms
    pending.wait()


def test_on_a_gpu_only_what_the_stream_waits_for_is_exposed(stream):
    """10 ms alone, 60 ms of compute over 60 ms of transfer, 5 ms over 25: 20 ms are exposed."""
    with trace.recording(torch.device("cuda")) as recorder, trace.chunk("F", 0, 0):
        stream.at += 10
        exchange(stream, 60, 60)
        exchange(stream, 5, 25)
    (work,) = [event for event in recorder.events if event["kind"] == "compute"]
    assert work["end"] - work["start"] == pytest.approx(0.095)
    document = {
        "rank": 0, "clock_offset_s": 0.0,
        "trace": {"start": work["start"], "end": work["end"] + 0.005, "events": recorder.events},
    }  # fmt: skip
    step, splits = split_step([document])
    found = ratios(step, splits)
    assert found["communication_ratio"] == pytest.approx(0.020 / 0.100)
    assert found["compute_ratio"] == pytest.approx(0.075 / 0.100)
    assert found["bubble_ratio"] == pytest.approx(0.005 / 0.100)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_another_hosts_clock_is_brought_to_rank_zeros(tmp_path):
    done = torchrun(3, str(PROGRAM), str(tmp_path / "offsets.json"))
    assert done.returncode == 0, done.stderr[-3000:]
    first, ahead, same = json.loads((tmp_path / "offsets.json").read_text())
    assert first == same == 0.0
    assert ahead == pytest.approx(-1000.0, abs=0.05)
