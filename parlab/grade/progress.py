"""How far a run is and how long it will take, in a line every few seconds."""

import time
from collections.abc import Callable

Say = Callable[[str], None]
EVERY = 2.0  # seconds between two lines


class Progress:
    """Counts submissions.

    Args:
        total: how many there are.
        say: takes each line.
        language: ``zh`` or ``en``.
        clock: seconds.
    """

    def __init__(
        self,
        total: int,
        say: Say,
        language: str,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.total, self.done, self.reused = total, 0, 0
        self._say, self._language, self._clock = say, language, clock
        self._begun = self._last = clock()

    def count(self, reused: bool = False) -> None:
        """One submission is finished."""
        self.done += 1
        self.reused += reused
        now = self._clock()
        if self.done == self.total or now - self._last >= EVERY:
            self._last = now
            self._say(self.line(now))

    def line(self, now: float) -> str:
        """``12/300 · 0:41 · about 2:10 left · 3 not run again``."""
        spent = now - self._begun
        fresh = self.done - self.reused
        parts = [f"{self.done}/{self.total}", _time(spent)]
        chinese = self._language == "zh"
        if fresh and self.done < self.total:
            left = _time(spent / fresh * (self.total - self.done))
            parts.append(f"约剩 {left}" if chinese else f"about {left} left")
        if self.reused:
            words = f"{self.reused} 份没有变，沿用上次结果"
            parts.append(words if chinese else f"{self.reused} unchanged, not run again")
        return " · ".join(parts)


def _time(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
