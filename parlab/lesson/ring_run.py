"""Runs a ring attention on ranks that are threads, forward and backward, and looks at what it did.

The sequence is cut by ``positions`` [cp, s / cp]: row r holds the global positions of rank r.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from parlab.lesson.attention import random_qkv, watched
from parlab.lesson.communicator import Record
from parlab.lesson.language import say
from parlab.lesson.largest_tensor import Largest
from parlab.lesson.rank_failure import RankFailed
from parlab.lesson.rank_threads import PerRank, run_ranks
from parlab.lesson.ring import CLOSE, NAMES, Ring, Yardstick, yardstick
from parlab.lesson.ring_looks import KeyCopies, Look, Places, held


@dataclass
class RingRun:
    """What happened on every rank.

    Attributes:
        positions: [cp, s / cp].
        whole: what one process gets.
        block: bytes of one rank's K and V.
        results: what the function returned.
        gradients: of each rank's q, k and v; None where none arrived.
        log: the operations, of all ranks.
        peaks: the largest tensor of each rank, forward.
        looks: every `partial_attention` of each rank.
        copies: by rank, what repeated K up to the query heads and what that made, if anything.
        broken: why the ranks could not finish together; empty where they could.
        stuck: what backward raised, or why there is none; empty where it went through.
    """

    positions: Tensor
    whole: Yardstick
    block: int
    results: list[Any] = field(default_factory=list)
    gradients: list[tuple[Tensor | None, ...]] = field(default_factory=list)
    log: list[Record] = field(default_factory=list)
    peaks: list[Largest] = field(default_factory=list)
    looks: list[list[Look]] = field(default_factory=list)
    copies: list[tuple[str, list[int]] | None] = field(default_factory=list)
    broken: str = ""
    stuck: str = ""

    @property
    def size(self) -> int:
        """cp."""
        return int(self.positions.shape[0])

    @property
    def complete(self) -> bool:
        """Whether every rank has returned what was asked for: only then is there more to ask."""
        return bool(self.results) and not self.no_pairs()

    def no_pairs(self) -> str:
        """The first rank whose result is no tuple of the output's shape and a plain int."""
        for rank, result in enumerate(self.results):
            shape = [*self.whole.out.shape]
            shape[2] = self.positions.shape[1]
            if type(result) is not tuple or len(result) != 2:
                return f"rank {rank}: {type(result).__name__}"
            out, sent = result
            if not isinstance(out, Tensor) or list(out.shape) != shape:
                found = list(out.shape) if isinstance(out, Tensor) else type(out).__name__
                return f"rank {rank}: out {found}, not {shape}"
            if out.dtype != self.whole.out.dtype:
                return f"rank {rank}: out {out.dtype}"
            if type(sent) is not int:
                return f"rank {rank}: sent is {type(sent).__name__}"
        return ""

    def other_operations(self) -> str:
        """What is no shift, of the first rank that has done such."""
        for record in self.log:
            if record.direction == "forward" and record.operation != "shift":
                return f"rank {record.rank}: {record.operation} {list(record.shape)}"
        return ""

    def fat_shift(self) -> str:
        """The first shift that carries more than one block's K and V."""
        for record in self.log:
            if record.direction == "forward" and record.bytes > self.block:
                return f"rank {record.rank}: shift {record.shape}, {record.bytes} bytes"
        return ""

    def handed(self) -> list[int]:
        """Bytes that each rank handed to forward shifts."""
        sums = [0] * self.size
        for record in self.log:
            if record.direction == "forward":
                sums[record.rank] += record.bytes
        return sums

    def uneven(self) -> str:
        """The first rank that did not hand over cp - 1 blocks in all."""
        for rank, handed in enumerate(self.handed() if self.complete else ()):
            if handed != (self.size - 1) * self.block:
                shifts = sum(x.rank == rank and x.direction == "forward" for x in self.log)
                return f"rank {rank}: shift × {shifts}, {handed} bytes"
        return ""

    def miscounted(self) -> str:
        """The first rank whose count of bytes is not what it handed over."""
        for rank, handed in enumerate(self.handed() if self.complete else ()):
            if self.results[rank][1] != handed:
                return f"rank {rank}: sent = {self.results[rank][1]}"
        return ""

    def largest(self) -> Largest:
        """The largest tensor of any rank."""
        return max(self.peaks, key=lambda peak: peak.elements)

    @property
    def room(self) -> int:
        """Numbers that no tensor need exceed: 1.5 times a step's scores or queries, or K and V."""
        batch, heads, _, dim = self.whole.out.shape
        length = self.positions.shape[1]
        numbers = self.block // self.whole.out.element_size()
        return int(max(1.5 * batch * heads * length * max(length, dim), numbers))

    def hoard(self) -> str:
        """The largest tensor, where it holds more than a step can need."""
        largest = self.largest() if self.complete else Largest()
        return f"{largest.operation} {list(largest.shape)}" if largest.elements > self.room else ""

    def scores(self) -> list[int]:
        """Scores a head that each rank has computed, masked ones included."""
        return [sum(look.rows * look.columns for look in looks) for looks in self.looks]

    def needless(self, needed: list[int]) -> str:
        """The first rank that has computed more scores than it needs."""
        for rank, (scores, enough) in enumerate(zip(self.scores(), needed, strict=True)):
            if scores > enough:
                return f"rank {rank}: {scores}"
        return ""

    def blind_spot(self) -> str:
        """The first pair of query and key that was masked wrongly, or not looked at just once."""
        for rank, looks in enumerate(self.looks):
            if not looks or not all(look.known for look in looks):
                return ""  # attention computed in another way: nothing to see from here
            times = sum(look.times(self.positions.numel()) for look in looks)
            wanted = torch.ones_like(times).tril()
            mine = self.positions[rank]
            wrong = (times[mine] != wanted[mine]).nonzero()
            if len(wrong):
                row, key = wrong[0].tolist()
                query = int(mine[row])
                seen = int(times[query, key])
                return say("query_saw", rank=rank, query=query, key=key, times=seen)
        return ""

    def swapped(self) -> str:
        """The first rank that has looked at V as if it were K."""
        for rank, looks in enumerate(self.looks):
            if any(look.swapped for look in looks):
                return say("values_as_keys", rank=rank)
        return ""

    def copied_heads(self) -> str:
        """The first rank that has repeated K for its query heads, and by what; of a real ring."""
        for rank, copy in enumerate(self.copies if self.size > 1 else ()):
            if copy:
                heads = self.whole.gradients[1].shape[1]
                return say("kv_copied", rank=rank, operation=copy[0], shape=copy[1], heads=heads)
        return ""

    def crowded(self) -> str:
        """The first rank that holds more blocks than one in use and one on its way."""
        for rank, looks in enumerate(self.looks):
            if not all(look.known for look in looks):
                continue
            steps = held([(x.arrived, x.steps(rank, self.positions)) for x in looks])
            if len(steps) > 2:
                listed = ", ".join(map(str, steps))
                return say("kv_held", rank=rank, count=len(steps), steps=listed)
        return ""

    def output_error(self) -> str:
        """The rank whose output is farthest from the whole one's, if too far."""
        if not self.complete:
            return ""
        return self._farthest("out", [result[0] for result in self.results], self.whole.out)

    def gradient_error(self) -> str:
        """The same of dq, dk and dv."""
        for index, (name, whole) in enumerate(zip(NAMES, self.whole.gradients, strict=True)):
            found = [gradients[index] for gradients in self.gradients]
            if not found:
                return ""
            if said := self._farthest(f"d{name}", found, whole):
                return said
        return ""

    def _farthest(self, name: str, parts: list[Tensor | None], whole: Tensor) -> str:
        errors = [self.distance(rank, part, whole) for rank, part in enumerate(parts)]
        rank = max(range(self.size), key=lambda each: errors[each])
        return f"rank {rank}: {name} ± {errors[rank]:.3g}" if errors[rank] > CLOSE else ""

    def distance(self, rank: int, part: Tensor | None, whole: Tensor) -> float:
        """Largest difference from the whole one's rows of this rank; infinite for NaN or None."""
        if part is None:
            return float("inf")
        worst = (part.detach() - whole[:, :, self.positions[rank]]).abs().max()
        return float(worst.nan_to_num(nan=float("inf")))


def run_ring(
    function: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    v: Tensor,
    positions: Tensor,
    deaf: int | None = None,
) -> RingRun:
    """``function(comm, q, k, v, positions)`` on every rank with its rows of q, k and v.

    Args:
        q, k, v: of the whole sequence, in float64.
        deaf: see `Ring`.

    Raises:
        BaseException: what the function raised on the first rank that failed, as it was.
    """
    cp, places = len(positions), Places(q, k, v)
    parts = [PerRank([x[:, :, mine].requires_grad_() for mine in positions]) for x in (q, k, v)]
    block = sum(x.element_size() * x[:, :, positions[0]].numel() for x in (k, v))
    run = RingRun(positions, yardstick(q, k, v), block, looks=[[] for _ in range(cp)])

    def on_rank(comm: Any, *own: Any) -> tuple[Any, ...]:
        ring = Ring(comm, deaf)
        looks, copies = run.looks[comm.rank], KeyCopies(q, k)

        def look(q: Tensor, k: Tensor, seen: Tensor) -> None:
            arrived = sum(x.nbytes for x in ring.arrived) // block
            looks.append(places.look(q, k, seen, arrived))

        with watched(look), copies:
            result = function(ring, *own, positions.clone())
        return result, ring, own, copies.found

    try:
        ranks = run_ranks(cp, on_rank, *parts)
    except RankFailed as failure:
        if failure.kind == "raised" and failure.__cause__:
            raise failure.__cause__ from None
        run.broken = str(failure)
        return run
    run.results = [result for result, _, _, _ in ranks.results]
    run.copies = [copy for _, _, _, copy in ranks.results]
    run.log = [record for record in ranks.log if record.direction == "forward"]
    run.peaks = [Largest(peak.elements, peak.shape, peak.operation) for peak in ranks.peaks]
    if not run.no_pairs():
        _go_back(run, ranks)
    return run


def bytes_sent(function: Callable[..., Any], positions: Tensor) -> int:
    """What rank 0 hands to forward shifts, with one head of one dim, in float64: a small run.

    Args:
        positions: [cp, s / cp].
    """
    cp, q, k, v = len(positions), *random_qkv(1, 1, 1, positions.numel(), 1)
    parts = [PerRank([x[:, :, mine] for mine in positions]) for x in (q, k, v)]
    ranks = run_ranks(cp, function, *parts, positions, seconds=30)
    return sum(record.bytes for record in ranks.log if record.rank == 0)


def _go_back(run: RingRun, ranks: Any) -> None:
    ends = []
    for rank, (result, ring, _, _) in enumerate(ranks.results):
        if not result[0].requires_grad:
            run.stuck = f"rank {rank}: out.requires_grad = False"
            return
        ends.append(ring.ends(result[0], run.whole.upstream[:, :, run.positions[rank]]))
    try:
        ranks.backward([outputs for outputs, _ in ends], [gradients for _, gradients in ends])
    except RankFailed as failure:
        run.stuck = str(failure.__cause__ or failure).partition(": [")[0]
        return
    run.log = list(ranks.log)
    run.gradients = [tuple(x.grad for x in own) for _, _, own, _ in ranks.results]
