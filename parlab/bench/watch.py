"""What the ranks of a job write while it runs: read, and told as they get on."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from parlab.bench.blame import positions

SAY_S = 5.0
RANK_LOGS = "ranks"
Say = Callable[[str], None]


def numbered(folder: Path, ranks: int, what: str) -> dict[int, dict[str, Any]]:
    """Rank → content of the ``<what>-<rank>.json`` files that can be read."""
    found = {}
    for rank in range(ranks):
        try:
            content = json.loads((folder / f"{what}-{rank}.json").read_text("utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(content, dict):
            found[rank] = content
    return found


def rank_logs(folder: Path, first: int) -> dict[int, str]:
    """Rank → what it printed, errors last.

    Args:
        first: the lowest rank of this machine; its ranks alone have their logs here.
    """
    logs: dict[int, str] = {}
    for name in ("stdout.log", "stderr.log"):
        for path in sorted((folder / RANK_LOGS).glob(f"*/attempt_*/*/{name}")):
            if path.parent.name.isdigit():
                rank = first + int(path.parent.name)
                logs[rank] = logs.get(rank, "") + read_text(path)
    return dict(sorted(logs.items()))


def read_text(path: Path) -> str:
    """A file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


class Watch:
    """Follows the progress files and says what is new.

    Attributes:
        progress: rank → ``progress-<rank>.json`` as last seen.
        startup_s: torchrun's start to the last rank's first warm-up step; None if it never came.
    """

    def __init__(self, name: str, folder: Path, ranks: int, say: Say) -> None:
        self.name, self.folder, self.ranks, self.say = name, folder, ranks, say
        self.start = time.monotonic()
        self.progress: dict[int, dict[str, Any]] = {}
        self.startup_s: float | None = None
        self._said, self._said_at = "", 0.0

    def read(self) -> None:
        """Reads the files once."""
        self.progress = numbered(self.folder, self.ranks, "progress") or self.progress
        begun = {"start", "build", None}
        phases = [self.progress.get(rank, {}).get("phase") for rank in range(self.ranks)]
        if self.startup_s is None and not begun & set(phases):
            self.startup_s = time.monotonic() - self.start

    def look(self) -> None:
        """Reads, and speaks when the ranks got on, or every few seconds."""
        self.read()
        elapsed = time.monotonic() - self.start
        state = positions(self.progress, range(self.ranks))
        if elapsed - self._said_at >= (0.5 if state != self._said else SAY_S):
            self.say(f"{self.name:<10} {elapsed:6.1f} s  {state}")
            self._said, self._said_at = state, elapsed
