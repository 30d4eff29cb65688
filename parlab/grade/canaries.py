"""Cells that must fail: one that does not tells that somebody has changed how cells fail."""

# mypy: disable-error-code="no-untyped-call"

import random

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

_LEAST, _BEYOND = 10_000, 100_000  # five digits


class Canaries:
    """The canaries of one run, no two alike, and none that an answer can know beforehand."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._said: dict[str, str] = {}  # cell id -> what its error must say

    def make(self) -> NotebookNode:
        """One more, with an id that no other has; uses no name that an answer may have taken."""
        one, two = self._random.sample(range(_LEAST, _BEYOND), 2)
        source = self._random.choice(
            (
                f"assert {one} == {two}, '{one}-{two}'",
                f"assert not {one}, f'{one}-{{{two}}}'",
                f"canary = [{one}, {two}]\nassert canary[0] is None, '%d-%d' % (*canary,)",
                f"with __import__('contextlib').nullcontext():\n    assert {one} > {10 * two},"
                f" '{one}-{two}'",
            )
        )
        cell: NotebookNode = new_code_cell(source, id=f"canary-{len(self._said)}-{one}")
        self._said[cell.id] = f"{one}-{two}"
        return cell

    def said(self, cell_id: str) -> str | None:
        """What the error of this cell must say; None where it is no canary."""
        return self._said.get(cell_id)
