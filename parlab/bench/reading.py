"""Text files that people name: read whole and bounded, or refused in a few words."""

import codecs
import os
import stat
from pathlib import Path


class Unreadable(Exception):
    """Why a file cannot be used, and what to do; to be put after its name."""


def read_text(path: Path, most: int) -> str:
    """The text in a file of UTF-8; a byte-order mark at its start is no text.

    Never waits for a pipe and never reads more than ``most`` + 1 bytes.

    Raises:
        Unreadable: there is no such file, it is none, it is too large, or it is not UTF-8.
    """
    data = _bytes(path, most)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("is UTF-16: save it as UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        wrong = f"byte 0x{error.object[error.start]:02x} at {error.start}"
        raise Unreadable(f"is not UTF-8 ({wrong}): save it as UTF-8") from None


def _bytes(path: Path, most: int) -> bytes:
    try:
        with open(path, "rb", opener=_at_once) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable("is a pipe or a device: name a file")
            data = file.read(most + 1)
    except FileNotFoundError:
        raise Unreadable("no such file") from None
    except OSError as error:
        raise Unreadable(f"cannot be read: {error.strerror}") from None
    except ValueError as error:  # a NUL in the path
        raise Unreadable(f"cannot be read: {error}") from None
    if len(data) > most:
        raise Unreadable(f"holds more than {most / 1e3:.0f} kB: take a smaller file")
    return data


def _at_once(path: str, flags: int) -> int:
    """Opens without waiting for whoever might write into a pipe."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
