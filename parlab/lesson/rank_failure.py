"""Why a run on ranks broke off, in words."""

from collections.abc import Iterable

from parlab.lesson.cells import last_line
from parlab.lesson.compare import safe_str
from parlab.lesson.language import say


class RankFailed(Exception):
    """Why a run on ranks broke off; notebooks show its lines and no stack.

    Attributes:
        kind: ``raised`` (an exception on a rank), ``left`` (a rank ended while others wait),
            ``differ`` (two ranks brought different operations) or ``late``.
        rank: the rank that it is about, where it is about one.
    """

    def __init__(self, kind: str, text: str, rank: int | None = None) -> None:
        super().__init__(text)
        self.kind, self.rank = kind, rank

    def _render_traceback_(self) -> list[str]:
        return ["❌ " + str(self)]


def raised(function: object, rank: int, error: BaseException) -> RankFailed:
    """An exception on a rank, with the line of ``function``'s cell that it came from."""
    text = say("rank_raised", rank=rank, error=f"{type(error).__name__}: {safe_str(error)}")
    where = last_line(function, error)
    if where:
        text += "\n   " + say("where") + " | " + say("where_line", line=where[0], text=where[1])
    failure = RankFailed("raised", text, rank)
    failure.__cause__ = error
    return failure


def listed(numbers: Iterable[int]) -> str:
    """``rank 0 and 2``."""
    return "rank " + say("and").join(map(str, sorted(numbers)))
