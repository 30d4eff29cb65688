"""One run at a time in a results folder."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform != "win32":
    import fcntl

NAME = ".bench.lock"


class Locked(Exception):
    """Another run is at work in the folder; names it."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds a results folder's ``jobs/`` while the block runs.

    The lock is the system's own (``flock``) on a file that tells the owner's process id. It ends
    with the owner however that ends, so a lock left behind by a dead run is simply taken over.

    Raises:
        Locked: another process holds it.
        OSError: the folder cannot be made or written.
    """
    if sys.platform == "win32":
        raise OSError("parlab bench needs Linux or macOS; on Windows run it in WSL")
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(file, 100).decode(errors="replace").strip() or "of unknown id"
            raise Locked(
                f"another run is at work in {folder.parent} (process {owner}): wait for it, stop "
                "it, or choose another folder with --results"
            ) from None
        os.ftruncate(file, 0)
        os.write(file, f"{os.getpid()}\n".encode())
        yield
        os.ftruncate(file, 0)
    finally:
        os.close(file)
