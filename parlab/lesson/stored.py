"""A weight that lies on disk: a rank reads the block it wants, and the block alone takes memory."""

from typing import Any

import torch
from torch import Tensor

from parlab.lesson.language import say


class Stored:
    """A tensor of a checkpoint. ``stored[:, 3:6]`` reads these columns into a new tensor.

    What was read can be trained: it is a leaf that gathers its gradient. Like safetensors'
    ``get_slice``; the file itself is played by a tensor that no rank gets hold of.

    Attributes:
        reads: the index and the tensor of each read, in order.
    """

    def __init__(self, whole: Tensor) -> None:
        self._whole = whole.detach()
        self.reads: list[tuple[Any, Tensor]] = []

    @property
    def shape(self) -> torch.Size:
        """Of the whole tensor."""
        return self._whole.shape

    @property
    def dtype(self) -> torch.dtype:
        return self._whole.dtype

    def __len__(self) -> int:
        return len(self._whole)

    def __iter__(self) -> Any:
        raise TypeError(say("stored_read", shape=tuple(self.shape)))

    def __getitem__(self, index: Any) -> Tensor:
        block = self._whole[index].clone().requires_grad_()
        self.reads.append((index, block))
        return block

    def __repr__(self) -> str:
        return f"Stored{tuple(self.shape)}"

    def _unread(self, *_: object) -> Any:
        raise TypeError(say("stored_read", shape=tuple(self.shape)))

    __add__ = __radd__ = __mul__ = __rmul__ = __matmul__ = __rmatmul__ = _unread

    def covered(self) -> Tensor:
        """True where an entry has been read, of the whole shape."""
        mask = torch.zeros(self.shape, dtype=torch.bool)
        for index, _ in self.reads:
            mask[index] = True
        return mask

    def gradient(self) -> Tensor:
        """The gradient of everything that was read, of the whole shape, zero elsewhere."""
        total = torch.zeros(self.shape, dtype=self.dtype)
        for index, block in self.reads:
            if block.grad is not None:
                total[index] += block.grad
        return total


def block_words(mask: Tensor) -> str:
    """Which entries of a matrix or vector ``mask`` marks, as one would index them.

    ``[:, 4:8]`` for whole columns, ``[0:2]`` of a vector, ``–`` for none; several blocks are joined
    by ``+``, and what is no block at all is counted.
    """
    if not mask.any():
        return "–"
    lines = [
        mask.any(dim=tuple(d for d in range(mask.dim()) if d != dim)) for dim in range(mask.dim())
    ]
    outer = lines[0]
    for line in lines[1:]:
        outer = outer[..., None] & line
    if not torch.equal(outer, mask):
        return f"{int(mask.sum())}/{mask.numel()}"
    return "[" + ", ".join(map(_ranges, lines)) + "]"


def _ranges(line: Tensor) -> str:
    """``:`` for all, ``2:5`` for a run, ``0:2+6:8`` for several."""
    if line.all():
        return ":"
    places = line.nonzero().flatten().tolist()
    runs: list[list[int]] = []
    for place in places:
        if runs and runs[-1][1] == place:
            runs[-1][1] = place + 1
        else:
            runs.append([place, place + 1])
    return "+".join(f"{start}:{stop}" for start, stop in runs)
