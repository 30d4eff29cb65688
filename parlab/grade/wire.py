"""The grader as the wire between ranks: what they read, hand over and get passes through here.

Each rank of a student's function is a process of its own that holds its own shard. Collectives are
worked out here, of what the ranks have sent, and written down here. So neither the values that come
in nor the log of operations nor the record of what was read is a student's word: a rank that
returns the right result has got it from its own data and from what the log says.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from parlab.grade import plain
from parlab.grade.calling import SLOW
from parlab.grade.plain import PlainError
from parlab.grade.ranks import Ranks
from parlab.grade.types import Result
from parlab.lesson.communicator import Post, exchange
from parlab.lesson.stored import block_words

_OPERATIONS = ("all_reduce", "all_gather", "reduce_scatter", "shift")
_AT_REST = ("done", "raised", "not_plain", "stopped", "missing")
_ACCOUNT = {"grad", "peak", "scores", "held", "copied", "stuck"}
_MESSAGES = 5000  # of all ranks in one case
_STOPS = 20  # how often a rank is told that the run is over


class Line(Protocol):
    """The way to one rank."""

    def send(self, message: Any) -> None: ...

    def receive(self) -> list[Any]: ...


class TooMuch(Exception):
    """More messages than a run can need, or a rank that does not end when it is told to."""


class _Broken(Exception):
    """The ranks cannot go on together.

    Attributes:
        result: what became of the case.
    """

    def __init__(self, *result: Any) -> None:
        super().__init__(str(result))
        self.result: Result = result


class Wire:
    """One run.

    Args:
        lines: to each rank, in order.
        ranks: what each is given.
        seconds: CPU time that a rank may take.
    """

    def __init__(self, lines: Sequence[Line], ranks: Ranks, seconds: float | None = None) -> None:
        self._lines, self._ranks, self._seconds = lines, ranks, seconds
        self._left = _MESSAGES
        self._weights = [ranks.weights(rank) for rank in range(ranks.size)]
        self._read = [
            {name: torch.zeros(whole.shape, dtype=torch.bool) for name, whole in mine.items()}
            for mine in self._weights
        ]
        self._facts: list[dict[str, Any]] = [
            {"forward": [], "backward": [], "grad": {}, "stuck": "", "limit": ranks.limit}
            for _ in lines
        ]

    def run(self) -> Result:
        """What came of it: ``("value", facts by rank)``, ``("raised", …)``, ``("broken", …)``.

        Facts of a rank: ``out``, the result's tensor; ``returned``, the type and what else it
        holds; ``forward`` and ``backward``, its operations; ``read``, by weight; ``grad``, by
        argument and weight; ``stuck``, why there is no gradient; ``limit``. Of the rank's own
        saying are ``peak``, its largest tensor, ``scores``, the scores it computed, ``held``, the
        blocks of K and V that it held at once, and ``copied``, what repeated KV heads.

        Raises:
            PlainError: a message that the driver does not send.
            TooMuch: see there.
        """
        size = self._ranks.size
        for rank, line in enumerate(self._lines):
            given = plain.tag(self._ranks.given(rank))
            case = {"call": "run_ranks", "seconds": self._seconds, "arguments": given}
            line.send({**case, "rank": rank, "size": size})
        try:
            for rank, word in enumerate(self._until("forward")):
                self._returned(self._facts[rank], plain.untag(word[1]))
        except _Broken as broken:
            return broken.result
        upstream = self._ranks.upstream if self._has_graph() else [None] * size
        for line, gradient in zip(self._lines, upstream, strict=True):
            line.send(["got", plain.tag(gradient)])
        try:
            for rank, word in enumerate(self._until("done", "backward")):
                self._facts[rank] |= _checked(plain.untag(word[1]))
        except _Broken as broken:
            if broken.result == SLOW:
                return SLOW
            for facts in self._facts:
                facts["stuck"] = " · ".join(str(part) for part in broken.result if part)
        for rank, masks in enumerate(self._read):
            self._facts[rank]["read"] = {name: block_words(mask) for name, mask in masks.items()}
        return ("value", self._facts)

    def _returned(self, facts: dict[str, Any], value: Any) -> None:
        several = type(value) in (list, tuple)
        first = value[0] if several and value else value
        facts["out"] = first if isinstance(first, Tensor) else None
        rest = list(value[1:]) if several else []
        facts["returned"] = [type(value).__name__, *rest]

    def _has_graph(self) -> bool:
        """Whether every rank has a result to go back from; says which has not."""
        for rank, wanted in enumerate(self._ranks.upstream):
            out = self._facts[rank]["out"]
            if out is None or out.shape != wanted.shape or not out.requires_grad:
                graph = f"requires_grad = {out.requires_grad}" if out is not None else "–"
                for facts in self._facts:
                    facts["stuck"] = f"rank {rank}: out.{graph}"
                return False
        return True

    def _until(self, last: str, direction: str = "forward") -> list[list[Any]]:
        """Lets the ranks meet until each has sent ``last``."""
        while True:
            words = [self._next(rank) for rank in range(len(self._lines))]
            kinds = {word[0] for word in words}
            if kinds == {last}:
                return words
            try:
                if kinds != {"meet"}:
                    raise _Broken(*_why(words))
                self._exchange([_post(word, direction) for word in words], direction)
            except _Broken:
                self._stop(words)
                raise

    def _exchange(self, posts: list[Post], direction: str) -> None:
        if not all(post.agrees(posts[0]) for post in posts):
            raise _Broken("broken", "differ", _side_by_side(posts))
        try:
            with torch.no_grad():
                brought = [plain.tag(tensors) for tensors in exchange(posts)]
        except Exception as error:
            raise _Broken("raised", type(error).__name__, str(error)[:500], None) from None
        for facts, post in zip(self._facts, posts, strict=True):
            handed = sum(tensor.numel() * tensor.element_size() for tensor in post.tensors)
            facts[direction].append([post.operation, post.shape, handed])
        for line, tensors in zip(self._lines, brought, strict=True):
            line.send(["got", tensors])

    def _next(self, rank: int) -> list[Any]:
        """The rank's next word that is no reading."""
        while True:
            self._left -= 1
            if self._left < 0:
                raise TooMuch(f"more than {_MESSAGES} messages in one run")
            word = self._lines[rank].receive()
            if word[0] != "read":
                return word
            self._lines[rank].send(["got", plain.tag(self._block(rank, word))])

    def _block(self, rank: int, word: list[Any]) -> Tensor:
        if len(word) != 3 or not isinstance(word[1], str) or word[1] not in self._weights[rank]:
            raise PlainError("it reads what it was not offered")
        places = plain.untag(word[2])
        whole = self._weights[rank][word[1]].flatten()
        if not isinstance(places, Tensor) or places.dtype != torch.int64:
            raise PlainError("places that are no numbers")
        if places.numel() and (int(places.min()) < 0 or int(places.max()) >= whole.numel()):
            raise PlainError("places outside of the weight")
        self._read[rank][word[1]].view(-1)[places.flatten()] = True
        return whole[places]

    def _stop(self, words: Sequence[list[Any]]) -> None:
        """Brings every rank to rest, so that it can take the next case."""
        for line, word in zip(self._lines, words, strict=True):
            for _ in range(_STOPS):
                if word[0] in _AT_REST:
                    break
                line.send(["stop"])
                word = line.receive()
            else:
                raise TooMuch("a rank that goes on after it was told to stop")


def _post(word: list[Any], direction: str) -> Post:
    if len(word) != 4 or word[1] not in _OPERATIONS or type(word[2]) not in (int, type(None)):
        raise PlainError("no collective")
    tensors = plain.untag(word[3])
    if type(tensors) is not tuple or not 0 < len(tensors) <= 64:
        raise PlainError("a collective of nothing")
    if not all(isinstance(tensor, Tensor) for tensor in tensors):
        raise PlainError("a collective of what is no tensor")
    return Post(word[1], direction, word[2], tensors)


def _why(words: Sequence[list[Any]]) -> Result:
    """Why ranks that have come to these words cannot go on."""
    for word in words:
        if word[0] == "raised" and len(word) == 4 and all(isinstance(x, str) for x in word[1:3]):
            line = word[3] if type(word[3]) is int else None
            return ("raised", word[1][:200], word[2][:2000], line)
        if word[0] == "not_plain" and len(word) == 2 and isinstance(word[1], str):
            return ("not_plain", word[1][:200])
        if word[0] == "missing":
            return SLOW
        if word[0] not in ("meet", "forward", "done"):
            raise PlainError(f"no message of a rank: {str(word[0])[:40]}")
    posts = [_post(word, "forward") if word[0] == "meet" else None for word in words]
    return ("broken", "left", _side_by_side(posts))


def _side_by_side(posts: Sequence[Post | None]) -> str:
    parts = [f"{post.operation} {post.shape}" if post else "–" for post in posts]
    return ", ".join(f"rank {rank}: {part}" for rank, part in enumerate(parts))[:400]


def _checked(said: Any) -> dict[str, Any]:
    """What a rank says at the end, of the types that it must have."""
    if type(said) is not dict or set(said) != _ACCOUNT:
        raise PlainError("no account of a rank")
    grad, peak = said["grad"], said["peak"]
    plain_grad = type(grad) is dict and all(
        type(name) is str and (item is None or isinstance(item, Tensor))
        for name, item in grad.items()
    )
    texts, counts = (said["stuck"], said["copied"]), (said["scores"], said["held"])
    typed = {type(x) for x in texts} == {str} and {type(x) for x in counts} == {int}
    if not plain_grad or not typed:
        raise PlainError("no account of a rank")
    if type(peak) is not list or len(peak) != 3 or type(peak[0]) is not int:
        raise PlainError("no account of a rank")
    said["stuck"], said["copied"] = said["stuck"][:400], said["copied"][:100]
    return said
