"""Bytes of one step by axis, direction and cause, counted where torch dispatches them.

A `TorchDispatchMode` sees every operator of `c10d` and `_c10d_functional`, whoever called it. The
axis follows from the operator's process group; direction and cause from the label that the engine
set around the call, or for a pipeline's sends from the tensor. What has no label is counted as
`unlabelled`, so nothing passes unseen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from parlab.bench import trace
from parlab.bench.axes import Axes
from parlab.lesson.communicator import ring_bytes

Key = tuple[str, str, str, str]
NAMES = {
    "allreduce_": "all_reduce",
    "_allgather_base_": "all_gather",
    "_reduce_scatter_base_": "reduce_scatter",
    "send": "send",
}
INPUT = {"_allgather_base_": 1, "_reduce_scatter_base_": 1}  # which argument is handed over
SILENT = {"recv_", "recv_any_source_", "barrier", "monitored_barrier_"}


class TrafficCounter(TorchDispatchMode):  # type: ignore[misc]
    """Counts calls and bytes a rank hands to each operation (P2P: those sent)."""

    def __init__(self, axes: Axes) -> None:
        super().__init__()
        self.directions: dict[int, str] = {}
        self.calls: Counter[Key] = Counter()
        self.payload: Counter[Key] = Counter()
        self.wire: Counter[Key] = Counter()
        every = (axes.pp, axes.cp, axes.tp, *([axes.ends] if axes.ends else []))
        self.axis_of = {axis.group.group_name: axis for axis in every if axis.size > 1}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """False: nothing is compiled here, and torch would import its compiler for seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.namespace in ("c10d", "_c10d_functional"):
            self._count(func._schema.name.partition("::")[2], args)
        return func(*args, **(kwargs or {}))

    def _count(self, operator: str, args: tuple[Any, ...]) -> None:
        if operator in SILENT:
            return
        tensors = _tensors(args[INPUT.get(operator, 0)])
        size = sum(tensor.nbytes for tensor in tensors)
        axis, ranks = self._axis(args)
        label = trace.label
        if operator == "send" and label is None:
            direction = self.directions.get(tensors[0].data_ptr(), "unlabelled")
            label = trace.Label(axis, direction, "boundary")
        if label is None:
            label = trace.Label(axis, "unlabelled", "unlabelled")
        key = (axis, label.direction, label.cause, NAMES.get(operator, operator))
        self.calls[key] += 1
        self.payload[key] += size
        self.wire[key] += wire_bytes(key[3], size, ranks)

    def _axis(self, args: tuple[Any, ...]) -> tuple[str, int]:
        """The axis and size of the process group among the arguments."""
        for value in args:
            name = _group_name(value)
            if name in self.axis_of:
                return self.axis_of[name].name, self.axis_of[name].size
        return "world", dist.get_world_size()

    def rows(self) -> list[dict[str, Any]]:
        """As `traffic` stands in a rank file."""
        names = ("axis", "direction", "cause", "operation")
        return [
            {
                **dict(zip(names, key, strict=True)),
                "calls": self.calls[key],
                "payload_bytes": self.payload[key],
                "wire_bytes": self.wire[key],
            }
            for key in sorted(self.calls)
        ]


def wire_bytes(operation: str, payload: int, ranks: int) -> int:
    """Bytes that a rank sends when n ranks run the ring form of the operation on its payload.

    all-reduce 2(n-1)/n, reduce-scatter (n-1)/n, all-gather (n-1) times the payload; a send once.
    Gloo's own reduce-scatter is an all-reduce and sends twice as much.
    """
    return payload if operation == "send" else ring_bytes(operation, payload, 0, ranks)


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    return [tensor for item in value for tensor in _tensors(item)]


def _group_name(value: Any) -> str | None:
    if isinstance(value, str):  # _c10d_functional names its group
        return value
    try:
        group = dist.ProcessGroup.unbox(value)
    except (RuntimeError, TypeError):
        return None
    return str(group.group_name)


@contextmanager
def counting(axes: Axes) -> Iterator[TrafficCounter]:
    """Count everything this rank hands over inside the block."""
    counter = TrafficCounter(axes)
    with trace.directions(counter.directions), counter:
        yield counter
