"""What the ranks of a case are given: each its own, and nothing of the others'."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor


@dataclass(frozen=True)
class Weight:
    """A weight that lies on disk. The grader keeps it: a rank gets the entries that it reads."""

    whole: Tensor


@dataclass(frozen=True)
class Ranks:
    """A run on ranks.

    Attributes:
        arguments: by rank, what the function gets after the communicator, by name and in order:
            plain data, `Weight`, and dicts of these.
        upstream: by rank, the gradient at the result's tensor; the rank sees it when its forward
            is over.
        limit: numbers that the largest tensor of a rank may hold.
    """

    arguments: tuple[Mapping[str, Any], ...]
    upstream: tuple[Tensor, ...]
    limit: int

    @property
    def size(self) -> int:
        """How many ranks there are."""
        return len(self.arguments)

    def weights(self, rank: int) -> dict[str, Tensor]:
        """The weights that a rank may read, by name."""
        found: dict[str, Tensor] = {}
        waiting: list[tuple[str, Any]] = list(self.arguments[rank].items())
        for name, value in waiting:
            if isinstance(value, Weight):
                found[name] = value.whole
            elif isinstance(value, dict):
                waiting += value.items()
        return found

    def given(self, rank: int) -> dict[str, Any]:
        """A rank's arguments as plain data: of a weight its name, shape and dtype."""
        return {name: _plain(name, value) for name, value in self.arguments[rank].items()}


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, Weight):
        dtype = str(value.whole.dtype).removeprefix("torch.")
        return {"stored": name, "shape": tuple(value.whole.shape), "dtype": dtype}
    if isinstance(value, dict):
        return {key: _plain(key, item) for key, item in value.items()}
    if isinstance(value, Tensor) and not value.is_contiguous():
        return {"strided": value}
    return value


def strided(x: Tensor) -> Tensor:
    """The same numbers in another order in memory: not contiguous where more than one dim is."""
    return x.detach().transpose(0, -1).contiguous().transpose(0, -1)
