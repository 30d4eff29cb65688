"""One rank of a run, in a process of its own: all that it gets of the others comes from the grader.

It is handed its own arguments. What it reads of a weight, and what it gives to a collective and
takes from it, passes through the grader, which is the wire between the ranks. This process can be
patched by the student's code at will, and still knows no more than it was sent.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor

from parlab.grade import plain
from parlab.lesson.attention import watched
from parlab.lesson.communicator import Communicator, Post
from parlab.lesson.largest_tensor import Largest, LargestTensor
from parlab.lesson.ring import Ring
from parlab.lesson.ring_looks import KeyCopies, blocks_by_number, held
from parlab.lesson.stored import Stored


class Pipe(Protocol):
    """The way to the grader."""

    def send(self, message: Any) -> None: ...

    def receive(self) -> Any: ...


class Stopped(BaseException):
    """The run has broken off on another rank; no ``except Exception`` takes it."""


class _Wire:
    """Asks the grader, which answers ``["got", …]``, or ``["stop"]`` where the run is over."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe

    def ask(self, *message: Any) -> Any:
        self._pipe.send(list(message))
        word = self._pipe.receive()
        if word[0] != "got":
            raise Stopped
        return plain.untag(word[1])


class _Comm(Communicator):
    """The lesson's communicator, whose other ranks are elsewhere."""

    def __init__(self, rank: int, size: int, wire: _Wire) -> None:
        super().__init__(rank, size)
        self._wire = wire

    def _meet(self, post: Post) -> tuple[Tensor, ...]:
        handed = plain.tag(tuple(tensor.detach() for tensor in post.tensors))
        got: tuple[Tensor, ...] = self._wire.ask("meet", post.operation, post.argument, handed)
        return got


class _Remote(Stored):
    """A weight of which this process has only what it reads."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: str, wire: _Wire) -> None:
        self._name, self._wire = name, wire
        self._shape, self._dtype = torch.Size(shape), getattr(torch, dtype)
        self._places = torch.arange(self._shape.numel()).view(shape)
        self._blocks: list[tuple[Tensor, Tensor]] = []
        self.reads: list[tuple[Any, Tensor]] = []

    @property
    def shape(self) -> torch.Size:
        return self._shape

    @property
    def dtype(self) -> torch.dtype:
        found: torch.dtype = self._dtype
        return found

    def __len__(self) -> int:
        return int(self._shape[0])

    def __getitem__(self, index: Any) -> Tensor:
        places = self._places[index]
        block: Tensor = self._wire.ask("read", self._name, plain.tag(places)).requires_grad_()
        self.reads.append((index, block))
        self._blocks.append((places, block))
        return block

    def gradient(self) -> Tensor:
        total = torch.zeros(self._shape.numel(), dtype=self._dtype)
        for places, block in self._blocks:
            if block.grad is not None:
                total.index_add_(0, places.flatten(), block.grad.flatten())
        return total.view(self._shape)


def run(
    pipe: Pipe,
    function: Callable[..., Any],
    case: dict[str, Any],
    describe: Callable[[BaseException], list[Any]],
) -> list[Any]:
    """Forward, then backward from the gradient that the grader sends; the last message.

    Args:
        case: ``rank``, ``size`` and the tagged ``arguments``.
        describe: an exception as a message.
    """
    wire = _Wire(pipe)
    try:
        return ["done", plain.tag(_run(wire, function, case))]
    except Stopped:
        return ["stopped"]
    except plain.NotPlain as error:
        return ["not_plain", str(error)[:200]]
    except BaseException as error:
        return describe(error)


def _run(wire: _Wire, function: Callable[..., Any], case: dict[str, Any]) -> dict[str, Any]:
    weights: dict[str, _Remote] = {}
    arguments = _made(plain.untag(case["arguments"]), wire, weights)
    tensors = {name: item for name, item in arguments.items() if isinstance(item, Tensor)}
    comm = Ring(_Comm(case["rank"], case["size"], wire))
    largest, ring = Largest(), {"scores": 0, "held": 0, "copied": ""}
    largest.see(list(tensors.values()), "input")
    with LargestTensor(largest), _ring_watched(comm, tensors, ring):
        value = function(comm, *arguments.values())
    upstream = wire.ask("forward", plain.tag(value))
    stuck = "" if upstream is None else _back(comm, value, upstream)
    gradients = {name: leaf.grad for name, leaf in tensors.items() if leaf.requires_grad}
    gradients |= {name: weight.gradient() for name, weight in weights.items()}
    peak = [largest.elements, list(largest.shape), largest.operation]
    return {"grad": gradients, "peak": peak, "stuck": stuck, **ring}


@contextmanager
def _ring_watched(comm: Ring, tensors: dict[str, Tensor], found: dict[str, Any]) -> Iterator[None]:
    """Of a ring attention: its scores, how many blocks it held at most, what repeated KV heads."""
    if not {"q", "k", "v"} <= set(tensors):
        yield
        return
    q, k, v = (tensors[name].detach() for name in ("q", "k", "v"))
    looks: list[tuple[int, set[int]]] = []

    def look(q: Tensor, keys: Tensor, seen: Tensor) -> None:
        found["scores"] += seen.numel()
        blocks = blocks_by_number(k, v, comm.arrived)
        arrived = sum(x.nbytes for x in comm.arrived) // (k.nbytes + v.nbytes)
        numbers = keys[0, 0, :, 0].tolist()
        looks.append((arrived, {blocks[number] for number in numbers if number in blocks}))

    with watched(look), KeyCopies(q, k) as copies:
        yield
    found["held"] = len(held(looks))
    found["copied"] = " ".join(map(str, copies.found or ()))


def _made(value: Any, wire: _Wire, weights: dict[str, _Remote]) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"strided"}:  # plain data is contiguous
        x = value["strided"].detach().transpose(0, -1).contiguous().transpose(0, -1)
        return x.requires_grad_(value["strided"].requires_grad)
    if set(value) == {"stored", "shape", "dtype"}:
        name = value["stored"]
        weights[name] = _Remote(name, value["shape"], value["dtype"], wire)
        return weights[name]
    return {key: _made(item, wire, weights) for key, item in value.items()}


def _back(comm: Ring, value: Any, upstream: Tensor) -> str:
    """Runs backward through every shift; why it did not come to its end, if it did not."""
    out = value if isinstance(value, Tensor) else value[0]
    try:
        pairs = zip(*comm.ends(out, upstream), strict=True)
        # a sum, since backward(output, gradient) has torch import its compiler for seconds
        sum((one * two).sum() for one, two in pairs).backward()
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return ""
