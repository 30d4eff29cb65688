"""Finds every file below a folder or in a zip, following nothing that leads elsewhere."""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import IO

from parlab.grade.archives import (
    MAX_DEPTH,
    MAX_INNER_ARCHIVE,
    Entry,
    Unreadable,
    entries,
    open_archive,
    read_entry,
)
from parlab.grade.types import MAX_NOTEBOOK_BYTES, Note

MAX_FILES = 100_000
_MAX_FOLDERS_DEEP = 24
_SKIPPED = {"__macosx", ".ipynb_checkpoints", "__pycache__", "thumbs.db", "desktop.ini"}
FILE, EMPTY = "file", "empty"


@dataclass(frozen=True)
class Found:
    """A file, or a folder that holds nothing.

    Attributes:
        parts: its path below what was walked; a zip counts as a folder of its own name.
        size: in bytes, as claimed.
        time: of its last change, in seconds; 0 where unknown.
        kind: ``file`` or ``empty`` (a folder, or a zip that could not be opened).
        read: its bytes, at most ``MAX_NOTEBOOK_BYTES``; raises ``Unreadable``.
        notes: what was noticed on the way.
        problem: why it cannot be read, where that is known already.
    """

    parts: tuple[str, ...]
    size: int
    time: float
    kind: str
    read: Callable[[], bytes] = field(repr=False, compare=False)
    notes: tuple[Note, ...] = ()
    problem: Note | None = None

    @property
    def name(self) -> str:
        """The last part."""
        return self.parts[-1]

    @property
    def path(self) -> str:
        """The path as people write it."""
        return "/".join(self.parts)


def walk(path: Path) -> Iterator[Found]:
    """Every file below ``path`` (a folder, a zip or one file), sorted by name.

    Symbolic links are not followed; pipes, devices and sockets are not opened.
    """
    if path.is_dir():
        yield from _folder(os.fsencode(path), (), 0)
    elif path.suffix.lower() == ".zip":
        yield from _zip_at(os.fsencode(path), ())
    else:
        yield _file(os.fsencode(path), (path.name,), path.lstat())


def is_skipped(name: str) -> bool:
    """What no student meant to hand in: checkpoints, what macOS and Windows leave, hidden files."""
    return name.lower() in _SKIPPED or name.startswith(".") or name.startswith("~$")


def text_of(raw: bytes) -> str:
    """A file name as text: UTF-8, else GBK, else with marks in place of what is neither."""
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return raw.decode("utf-8", "replace")


def _folder(path: bytes, parts: tuple[str, ...], depth: int) -> Iterator[Found]:
    try:
        with os.scandir(path) as listing:
            items = sorted(listing, key=lambda item: item.name)[:MAX_FILES]
    except OSError as error:
        yield _nothing(parts, ("unreadable_folder", {"error": _reason(error)}))
        return
    empty = True
    for item in items:
        name = text_of(item.name)
        if is_skipped(name):
            continue
        empty = False
        inside = (*parts, name)
        try:
            state = item.stat(follow_symlinks=False)
        except OSError as error:
            yield _nothing(inside, ("unreadable_file", {"error": _reason(error)}))
            continue
        if stat.S_ISDIR(state.st_mode):
            if depth >= _MAX_FOLDERS_DEEP:
                yield _nothing(inside, ("too_deep", {"limit": _MAX_FOLDERS_DEEP}))
            else:
                yield from _folder(item.path, inside, depth + 1)
        elif stat.S_ISREG(state.st_mode) and name.lower().endswith(".zip"):
            yield from _zip_at(item.path, inside)
        else:
            yield _file(item.path, inside, state)
    if empty and parts:
        yield _nothing(parts, ("empty_folder", {}))


def _file(path: bytes, parts: tuple[str, ...], state: os.stat_result) -> Found:
    problem: Note | None = None
    if stat.S_ISLNK(state.st_mode):
        problem = ("symlink", {})
    elif not stat.S_ISREG(state.st_mode):
        problem = ("special_file", {})
    elif state.st_size > MAX_NOTEBOOK_BYTES:
        problem = _too_large(state.st_size)

    def read() -> bytes:
        if problem:
            raise Unreadable(problem[0], **problem[1])
        with _opened(path) as file:
            data = file.read(min(state.st_size, MAX_NOTEBOOK_BYTES) + 1)
        if len(data) > MAX_NOTEBOOK_BYTES:
            raise Unreadable("too_large", **_too_large(len(data))[1])
        return data

    return Found(parts, state.st_size, state.st_mtime, FILE, read, problem=problem)


@contextmanager
def _opened(path: bytes) -> Iterator[IO[bytes]]:
    """An ordinary file, opened so that neither a link nor a pipe put in its place does harm."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        number = os.open(path, flags | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise Unreadable("unreadable_file", error=_reason(error)) from None
    with os.fdopen(number, "rb") as file:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise Unreadable("special_file")
        try:
            yield file
        except OSError as error:
            raise Unreadable("unreadable_file", error=_reason(error)) from None


def _zip_at(path: bytes, parts: tuple[str, ...]) -> Iterator[Found]:
    """The files of a zip on disk; each is read by opening the zip again, so none stays open."""

    def read_from(entry: Entry, limit: int) -> bytes:
        with _opened(path) as file, open_archive(file) as archive:
            return read_entry(archive, entry, limit)

    try:
        with _opened(path) as file, open_archive(file) as archive:
            listed = list(entries(archive))
    except Unreadable as reason:
        yield _nothing(parts, reason.note)
        return
    yield from _entries(listed, parts, read_from, 1)


def _entries(
    listed: list[Entry],
    parts: tuple[str, ...],
    read_from: Callable[[Entry, int], bytes],
    depth: int,
) -> Iterator[Found]:
    shown = [
        entry
        for entry in sorted(listed, key=lambda entry: entry.parts)
        if not any(map(is_skipped, entry.parts))
    ]
    files = {entry.parts[:n] for entry in shown for n in range(1, len(entry.parts))}
    if not shown and parts:
        yield _nothing(parts, ("empty_folder", {}))
    for entry in shown:
        inside = (*parts, *entry.parts)
        if entry.is_folder:
            if entry.parts not in files:
                yield _nothing(inside, ("empty_folder", {}))
        elif entry.parts[-1].lower().endswith(".zip"):
            yield from _inner_zip(entry, inside, read_from, depth)
        else:
            notes: tuple[Note, ...] = (("climbing_path", {}),) if entry.climbs else ()
            problem = entry.problem
            if entry.size > MAX_NOTEBOOK_BYTES:
                problem = problem or _too_large(entry.size)
            read = _reader(read_from, entry)
            yield Found(inside, entry.size, entry.time, FILE, read, notes, problem)


def _reader(read_from: Callable[[Entry, int], bytes], entry: Entry) -> Callable[[], bytes]:
    return lambda: read_from(entry, MAX_NOTEBOOK_BYTES)


def _inner_zip(
    entry: Entry,
    parts: tuple[str, ...],
    read_from: Callable[[Entry, int], bytes],
    depth: int,
) -> Iterator[Found]:
    """A zip in a zip: held in memory only while it is listed, and again for each file read."""
    if depth >= MAX_DEPTH:
        yield _nothing(parts, ("zip_too_deep", {"limit": MAX_DEPTH}))
        return

    def read_inner(inner: Entry, limit: int) -> bytes:
        with open_archive(BytesIO(read_from(entry, MAX_INNER_ARCHIVE))) as archive:
            return read_entry(archive, inner, limit)

    try:
        with open_archive(BytesIO(read_from(entry, MAX_INNER_ARCHIVE))) as archive:
            listed = list(entries(archive))
    except Unreadable as reason:
        yield _nothing(parts, reason.note)
        return
    yield from _entries(listed, parts, read_inner, depth + 1)


def _nothing(parts: tuple[str, ...], problem: Note) -> Found:
    def read() -> bytes:
        raise Unreadable(problem[0], **problem[1])

    return Found(parts, 0, 0.0, EMPTY, read, problem=problem)


def _too_large(size: int) -> Note:
    return ("too_large", {"mb": round(size / 2**20, 1), "limit": MAX_NOTEBOOK_BYTES / 2**20})


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
