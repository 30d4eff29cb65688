"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a file beside `path`, which then takes its place at once.

    Raises:
        OSError: it cannot be written; names `path`, also where `write` tells another story of it,
            as `torch.save` does of a full disk. What was there stays.
    """
    fresh = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        write(fresh)
        os.replace(fresh, path)
    except Exception as error:
        for cause in chain(error):
            if isinstance(cause, OSError) and cause.errno and _is_about(cause, fresh):
                raise OSError(cause.errno, cause.strerror, str(path)) from error
        raise
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink(missing_ok=True)


def _is_about(error: OSError, path: Path) -> bool:
    """A failed write, other than a failed open, does not name the file."""
    return error.filename is None or str(error.filename) == str(path)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that led to it, the latest first."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__
