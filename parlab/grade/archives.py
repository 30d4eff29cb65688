"""Reads zip archives without extracting them: bounded, and every name treated as untrusted."""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import IO

from parlab.grade.types import MAX_NOTEBOOK_BYTES, Note

MAX_INNER_ARCHIVE = 64 * 2**20  # bytes of a zip inside a zip, which is read into memory
MAX_DEPTH = 3  # zips inside zips
MAX_ENTRIES = 50_000  # of one archive
_MAX_RATIO = 25  # by how much a zip inside a zip may have shrunk: it is compressed already
_MAX_DIRECTORY = 16 * 2**20  # bytes of an archive's table of contents
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_CHUNK = 2**18
_UTF8 = 0x800
_END, _END64, _LOCATOR64 = b"PK\x05\x06", b"PK\x06\x06", b"PK\x06\x07"


class Unreadable(Exception):
    """Something cannot be read; ``note`` says why."""

    def __init__(self, key: str, **values: object) -> None:
        super().__init__(key)
        self.note: Note = (key, values)


@dataclass(frozen=True)
class Entry:
    """One file or empty folder of an archive.

    Attributes:
        parts: its path, without climbing and empty parts.
        size: bytes as the archive claims.
        time: seconds, comparable within one archive; 0 where unknown.
        is_folder: whether it is a folder.
        problem: what keeps it from being read.
        climbs: whether its path left the archive.
    """

    info: zipfile.ZipInfo
    parts: tuple[str, ...]
    size: int
    time: float
    is_folder: bool
    problem: Note | None = None
    climbs: bool = False


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """The archive, once its table of contents has been found to be of bearable size.

    Raises:
        Unreadable: it is no zip, or its table of contents is too large.
    """
    size = _directory_size(file)
    if size is None:
        raise Unreadable("broken_zip")
    if size > _MAX_DIRECTORY:
        raise Unreadable("zip_too_many", limit=MAX_ENTRIES)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        raise Unreadable("broken_zip") from None
    if len(archive.filelist) > MAX_ENTRIES:
        raise Unreadable("zip_too_many", limit=MAX_ENTRIES)
    # Entries that share their bytes inflate a small file many times over.
    if sum(info.compress_size for info in archive.filelist) > file.seek(0, io.SEEK_END):
        raise Unreadable("zip_bomb", limit=MAX_NOTEBOOK_BYTES / 2**20)
    return archive


def entries(archive: zipfile.ZipFile) -> Iterator[Entry]:
    """What the archive holds, in its own order."""
    for info in archive.filelist:
        name = entry_name(info)
        parts, climbs = safe_parts(name)
        if not parts:
            continue
        folder = name.replace("\\", "/").endswith("/")
        mode = info.external_attr >> 16
        problem: Note | None = None
        if stat.S_ISLNK(mode):
            problem = ("symlink", {})
        elif mode and stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFDIR):
            problem = ("special_file", {})
        elif info.flag_bits & 0x1:
            problem = ("encrypted", {})
        elif parts[-1].lower().endswith(".zip") and _shrank_too_much(info):
            problem = ("zip_bomb", {"limit": MAX_INNER_ARCHIVE / 2**20})
        elif info.compress_type not in _READABLE:
            problem = ("compression", {"method": info.compress_type})
        yield Entry(info, parts, info.file_size, _time(info), folder, problem, climbs)


def read_entry(archive: zipfile.ZipFile, entry: Entry, limit: int = MAX_NOTEBOOK_BYTES) -> bytes:
    """The entry's bytes; reading stops at ``limit``, whatever size the archive claims.

    Raises:
        Unreadable: it is larger, damaged, encrypted or of a kind that is not read.
    """
    if entry.problem:
        raise Unreadable(entry.problem[0], **entry.problem[1])
    if entry.size > limit:
        raise Unreadable("too_large", mb=round(entry.size / 2**20, 1), limit=limit / 2**20)
    taken = io.BytesIO()
    try:
        with archive.open(entry.info) as file:
            while chunk := file.read(_CHUNK):
                taken.write(chunk)
                if taken.tell() > limit:
                    raise Unreadable("zip_bomb", limit=limit / 2**20)
    except (
        zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError,
        NotImplementedError, struct.error, MemoryError,
    ) as error:  # fmt: skip
        raise Unreadable("broken_entry", error=type(error).__name__) from None
    return taken.getvalue()


def entry_name(info: zipfile.ZipInfo) -> str:
    """The name as it was meant: UTF-8, else what Windows in China writes (GBK)."""
    name = info.orig_filename or info.filename
    told = _unicode_extra(info.extra)
    if told:
        return told
    if info.flag_bits & _UTF8:
        return name
    try:
        raw = name.encode("cp437")
    except UnicodeEncodeError:
        return name
    for encoding in ("utf-8", "gb18030"):
        try:
            return raw.decode(encoding)
        except UnicodeDecodeError:
            continue
    return name


def safe_parts(name: str) -> tuple[tuple[str, ...], bool]:
    """A path's parts without those that climb, and whether there were any."""
    name = name.replace("\\", "/").partition("\0")[0]
    parts = [part[:255] for part in name.split("/")[:64]]
    absolute = name.startswith("/") or parts[0][1:] == ":"
    if parts[0][1:] == ":":
        parts = parts[1:]
    climbs = absolute or ".." in parts
    return tuple(part for part in parts if part.strip() not in ("", ".", "..")), climbs


def _shrank_too_much(info: zipfile.ZipInfo) -> bool:
    return info.file_size > 2**16 + _MAX_RATIO * info.compress_size


def _time(info: zipfile.ZipInfo) -> float:
    try:
        return datetime(*info.date_time).timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


def _unicode_extra(extra: bytes) -> str:
    """The name of an Info-ZIP Unicode path field (0x7075), which older Pythons do not read."""
    while len(extra) >= 4:
        kind, length = struct.unpack("<HH", extra[:4])
        if kind == 0x7075 and length > 5:
            return extra[9 : 4 + length].decode("utf-8", "replace")
        extra = extra[4 + length :]
    return ""


def _directory_size(file: IO[bytes]) -> int | None:
    """Bytes of the table of contents, from the archive's last record; None where there is none."""
    try:
        end = file.seek(0, io.SEEK_END)
        start = max(0, end - 65_557)
        file.seek(start)
        tail = file.read(65_557)
        at = tail.rfind(_END)
        if at < 0 or len(tail) < at + 22:
            return None
        size = int(struct.unpack("<L", tail[at + 12 : at + 16])[0])
        if tail[at - 20 : at - 16] == _LOCATOR64:
            file.seek(struct.unpack("<Q", tail[at - 12 : at - 4])[0])
            record = file.read(56)
            if record[:4] == _END64 and len(record) == 56:
                size = max(size if size != 0xFFFFFFFF else 0, struct.unpack("<Q", record[40:48])[0])
        file.seek(0)
        return size
    except (OSError, ValueError, OverflowError, struct.error):
        return None
