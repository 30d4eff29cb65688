"""A device mesh as plain numbers: no process, no torch."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from parlab.bench.fields import shown

AXES = ("pp", "cp", "tp")  # rank order, outer to inner: tp ranks are adjacent
LARGEST = 1 << 16  # of an axis
_SIZE = re.compile("0*[1-9][0-9]{0,4}")


@dataclass(frozen=True)
class Mesh:
    """Sizes of the three axes."""

    pp: int = 1
    cp: int = 1
    tp: int = 1

    @property
    def world_size(self) -> int:
        """How many ranks the mesh has."""
        return self.pp * self.cp * self.tp

    @property
    def order(self) -> tuple[str, str, str]:
        """The axes from outer to inner."""
        return ("pp", "cp", "tp")

    @property
    def name(self) -> str:
        """As in ``pp2_cp1_tp2``."""
        return f"pp{self.pp}_cp{self.cp}_tp{self.tp}"

    def coordinate(self, rank: int) -> dict[str, int]:
        """Where ``rank`` stands on each axis.

        Raises:
            ValueError: there is no such rank.
        """
        if not 0 <= rank < self.world_size:
            raise ValueError(f"rank {rank} is not in 0..{self.world_size - 1} of {self.name}")
        outer, tp = divmod(rank, self.tp)
        pp, cp = divmod(outer, self.cp)
        return {"pp": pp, "cp": cp, "tp": tp}

    def coordinates(self) -> Iterator[dict[str, int]]:
        """The coordinate of every rank, in rank order."""
        return (self.coordinate(rank) for rank in range(self.world_size))


def parse_mesh(text: str) -> Mesh:
    """A mesh from ``pp=2,tp=1,cp=2``; an axis that is not named has size 1.

    Raises:
        ValueError: the text names another axis, one twice, or a size that is no integer from 1 to
            ``LARGEST``.
    """
    sizes: dict[str, int] = {}
    for part in text.split(","):
        axis, sign, size = (piece.strip() for piece in part.partition("="))
        legal = sign and axis in AXES and _SIZE.fullmatch(size) and int(size) <= LARGEST
        if not legal or axis in sizes:
            raise ValueError(
                f"mesh {shown(text)}: {shown(part)} is not one of pp=N, cp=N, tp=N, each once, "
                f"with N from 1 to {LARGEST}"
            )
        sizes[axis] = int(size)
    return Mesh(**sizes)
