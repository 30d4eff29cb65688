"""A disk that is full, a folder that is gone: room kept in reserve, and what to say of it."""

import contextlib
import errno
import os
import shutil
from pathlib import Path

from parlab.lesson.files import write_whole

RESERVE_BYTES = 32 << 10  # holds a failure with its traceback, or a record
_FULL = (errno.ENOSPC, errno.EDQUOT)
_GONE = (errno.ENOENT, errno.ENOTDIR)


def reserve(folder: Path, owner: object) -> None:
    """Takes room on the disk that `owner` can `release` when there is no other left.

    Raises:
        OSError: there is none left already.
    """
    # random, since some file systems store nothing for zeros
    write_whole(_place(folder, owner), lambda fresh: fresh.write_bytes(os.urandom(RESERVE_BYTES)))


def release(folder: Path, owner: object = "*") -> None:
    """Gives back the room of `owner`, or everybody's."""
    for place in folder.glob(_place(folder, owner).name):
        with contextlib.suppress(OSError):
            place.unlink()


def _place(folder: Path, owner: object) -> Path:
    return folder / f"reserve-{owner}"


def trouble(folder: Path) -> str:
    """What keeps files from being written to a folder, in one line; empty where nothing does."""
    try:
        reserve(folder, "probe")
        release(folder, "probe")
    except OSError as error:
        return explain(error)
    return ""


def explain(error: OSError) -> str:
    """An error in one line; that of a full disk or a lost folder with the remedy."""
    place = Path(str(error.filename)) if error.filename is not None else None
    if error.errno in _FULL:
        return (
            f"{place or 'a file'} cannot be written: {error.strerror}{_room(place)}; make room "
            "there, or put the results on another disk with --results"
        )
    if error.errno in _GONE and place and not place.parent.is_dir():
        missing = [folder for folder in place.parents if not folder.is_dir()][-1]
        return (
            f"the folder {missing} is gone: was it removed or renamed while the run was at work? "
            "Leave it alone until the run has ended, or choose another with --results"
        )
    return str(error)


def _room(place: Path | None) -> str:
    """How much room there is for the file: what was written of it is gone again."""
    for folder in place.parents if place else ():
        if folder.is_dir():
            usage = shutil.disk_usage(folder)
            free, size = usage.free / 1e6, usage.total / 1e6
            return f" (without it {free:.1f} MB of {size:.1f} MB are free)"
    return ""
