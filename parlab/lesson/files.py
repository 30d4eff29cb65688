"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside `path`, which then takes its place at once."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(fresh)
        os.replace(fresh, path)
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)
