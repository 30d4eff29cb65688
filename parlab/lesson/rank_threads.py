"""Ranks as threads of this process: real collectives, and a reason within moments if they fail.

A collective completes when every rank has brought the same operation on the same shape. A rank that
returns or fails while others wait, or that brings something else, breaks the run at once.
"""

import contextlib
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from parlab.lesson.cells import present_line
from parlab.lesson.communicator import Communicator, Post, Record, exchange
from parlab.lesson.language import say
from parlab.lesson.largest_tensor import Largest, LargestTensor
from parlab.lesson.rank_failure import RankFailed, listed, raised

# After a rank has failed, those that do not wait get this long to end by themselves.
GRACE_S = 0.5


class PerRank(list[Any]):
    """An argument of which each rank gets its own item."""


class RankRun:
    """What ranks have returned and done.

    Attributes:
        results: by rank.
        inputs: by rank, its own copies of the arguments; their ``grad`` after backward.
        peaks: the largest tensor that each rank made or was given.
    """

    def __init__(self, meeting: "_Meeting", inputs: list[list[Any]], results: list[Any]) -> None:
        self._meeting = meeting
        self.inputs, self.results = inputs, results
        self.peaks = meeting.peaks

    @property
    def log(self) -> list[Record]:
        """What the ranks did, rank after rank, each in its order."""
        return [record for comm in self._meeting.comms for record in comm.log]

    def log_of(self, rank: int, direction: str | None = None) -> list[Record]:
        """What one rank did, in its order; of both directions, or of one."""
        log = self._meeting.comms[rank].log
        return [record for record in log if direction in (None, record.direction)]

    def backward(
        self, outputs: Sequence[Any], gradients: Sequence[Any], seconds: float = 5
    ) -> None:
        """Each rank runs backward from its output, all of them at once.

        Args:
            outputs: by rank, a tensor or a tuple of tensors that needs gradients.
            gradients: by rank, of the outputs' shapes.

        Raises:
            RankFailed: a collective within backward failed.
        """

        def back(comm: Communicator, output: Any, gradient: Any) -> None:
            pairs = zip(_all(output), _all(gradient), strict=True)
            # A sum, since backward(output, gradient) has torch import its compiler for seconds.
            sum((got * _alike(given, got)).sum() for got, given in pairs).backward()

        arguments = list(zip(outputs, gradients, strict=True))
        self._meeting.hold(back, arguments, seconds)


def _all(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple | list) else [value]


def _alike(gradient: Tensor, output: Tensor) -> Tensor:
    if gradient.shape != output.shape:
        raise ValueError(f"gradient {tuple(gradient.shape)} for output {tuple(output.shape)}")
    return gradient


def run_ranks(
    size: int, function: Callable[..., Any], *arguments: Any, seconds: float = 5
) -> RankRun:
    """Runs ``function(comm, *arguments)`` on ``size`` ranks at once.

    Args:
        arguments: every rank gets its own copy; of a `PerRank` its own item.
        seconds: after which the run is given up.

    Raises:
        RankFailed: with the rank, the operation and the learner's line.
    """
    meeting = _Meeting(size)
    given = [
        [own_copy(item[rank] if isinstance(item, PerRank) else item) for item in arguments]
        for rank in range(size)
    ]
    for largest, items in zip(meeting.peaks, given, strict=True):
        largest.see([item for item in items if isinstance(item, Tensor)], "input")
    return RankRun(meeting, given, meeting.hold(function, given, seconds))


def own_copy(value: Any) -> Any:
    """Tensors copied, within lists, tuples and dicts too; anything else as it is."""
    if isinstance(value, Tensor):
        copy = value.detach().clone(memory_format=torch.preserve_format)
        return copy.requires_grad_(value.requires_grad)
    if type(value) in (list, tuple):
        return type(value)(map(own_copy, value))
    if type(value) is dict:
        return {key: own_copy(item) for key, item in value.items()}
    return value


class _Stopped(BaseException):
    """Ends a rank whose run has broken off; no ``except Exception`` of a learner takes it."""


_STOPPED = object()


class _Comm(Communicator):
    def __init__(self, rank: int, meeting: "_Meeting") -> None:
        super().__init__(rank, meeting.size)
        self._meeting = meeting

    def _meet(self, post: Post) -> tuple[Tensor, ...]:
        with torch.no_grad():
            return tuple(tensor.clone() for tensor in self._meeting.bring(self.rank, post))


class _Meeting:
    """Where the ranks of one run meet; every attribute is read and written under ``turn``."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.turn = threading.Condition()
        self.comms = [_Comm(rank, self) for rank in range(size)]
        self.peaks = [Largest() for _ in range(size)]
        self.posts: dict[int, Post] = {}
        self.brought: list[tuple[Tensor, ...]] = []
        self.round = 0
        self.ended: set[int] = set()
        self.gone: set[int] = set()  # those that ended by themselves
        self.broken = ""  # the kind of failure, once there is one
        self.errors: dict[int, BaseException] = {}
        self.failure: RankFailed | None = None  # in words, once all have come to rest
        self.learner: Callable[..., Any] | None = None  # whose lines errors point to

    def hold(
        self, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], seconds: float
    ) -> list[Any]:
        """Runs the function on every rank and waits for all of them."""
        if self.failure:
            raise self.failure
        self.ended.clear()
        self.gone.clear()
        self.learner = self.learner or function
        results: list[Any] = [None] * self.size
        threads = [
            threading.Thread(
                target=self._rank, args=(rank, function, arguments[rank], results), daemon=True
            )
            for rank in range(self.size)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wait(threads, seconds)
        except BaseException:
            with self.turn:
                self._break("late")
                self.failure = RankFailed("late", say("rank_stopped"))
            self._stop(threads)
            raise
        if self.broken:
            with self.turn:
                self.failure = self.failure or self._failure()
            raise self.failure
        return results

    def _rank(
        self, rank: int, function: Callable[..., Any], arguments: Sequence[Any], results: list[Any]
    ) -> None:
        with contextlib.suppress(_Stopped):  # which may come at any line
            try:
                with LargestTensor(self.peaks[rank]):
                    results[rank] = function(self.comms[rank], *arguments)
            except _Stopped:
                results[rank] = _STOPPED
            except BaseException as error:
                self.errors[rank] = error
            with self.turn:
                self.ended.add(rank)
                if results[rank] is not _STOPPED or rank in self.errors:
                    self.gone.add(rank)
                    if self.posts or rank in self.errors:
                        self._break("raised" if rank in self.errors else "left")
                self.turn.notify_all()

    def _wait(self, threads: Sequence[threading.Thread], seconds: float) -> None:
        deadline = time.monotonic() + seconds
        with self.turn:
            while len(self.ended) < self.size:
                left = deadline - time.monotonic()
                if left <= 0:
                    if not self.broken:
                        self._break("late")
                        self.failure = self._late(threads, seconds)
                    break
                before = self.broken
                self.turn.wait(left)
                if self.broken and not before:
                    deadline = min(deadline, time.monotonic() + GRACE_S)
        self._stop(threads)

    def bring(self, rank: int, post: Post) -> tuple[Tensor, ...]:
        """Waits until every rank has brought the same, and returns what this one gets."""
        with self.turn:
            self.posts[rank] = post
            if not all(post.agrees(other) for other in self.posts.values()):
                self._break("differ")
            elif self.gone:
                self._break("left")
            self._go_on()
            if len(self.posts) == self.size:
                with torch.no_grad():
                    self.brought = exchange([self.posts[each] for each in range(self.size)])
                self.posts = {}
                self.round += 1
                self.turn.notify_all()
            else:
                round_before = self.round
                while self.round == round_before:
                    self._go_on()  # not after this round: it was complete before anything broke
                    self.turn.wait()
            return self.brought[rank]

    def _go_on(self) -> None:
        if self.broken:
            raise _Stopped

    def _break(self, kind: str) -> None:
        self.broken = self.broken or kind
        self.turn.notify_all()

    def _failure(self) -> RankFailed:
        """Worded when the others have posted or ended too, so that chance has no say in it."""
        if self.errors:
            return raised(self.learner, *min(self.errors.items()))
        posts = sorted(self.posts.items())
        other = next((post for post in posts if not post[1].agrees(posts[0][1])), None)
        if other:
            one, two = (say("rank_does", rank=r, operation=p) for r, p in (posts[0], other))
            text = say("rank_differ", number=self.round + 1, one=one, other=two)
            return RankFailed("differ", text)
        text = say(
            "rank_left",
            gone=listed(self.gone),
            waiting=listed(self.posts),
            number=self.round + 1,
            operation=posts[0][1],
        )
        return RankFailed("left", text)

    def _late(self, threads: Sequence[threading.Thread], seconds: float) -> RankFailed:
        frames = sys._current_frames()
        parts, stuck = [], None
        for rank in sorted(set(range(self.size)) - self.ended):
            if rank in self.posts:
                parts.append(say("rank_waits", rank=rank, operation=self.posts[rank]))
                continue
            stuck = rank if stuck is None else stuck
            frame = frames.get(threads[rank].ident or 0)
            line = present_line(self.learner, frame) if frame else None
            where = say("where_line", line=line[0], text=line[1]) if line else "?"
            parts.append(say("rank_stuck", rank=rank, where=where))
        text = say("rank_late", seconds=f"{seconds:g}", parts=say("and").join(parts))
        return RankFailed("late", text, stuck)

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        """Asks threads that still run to end: at their next line, if they run Python."""
        for rank, thread in enumerate(threads):
            busy = rank not in self.ended and rank not in self.posts
            if self.broken and busy and thread.ident:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                )
