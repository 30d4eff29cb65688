"""Writes files together: all of them, or none."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from parlab.interrupts import stops_held_back

_TEMPORARY = re.compile(r"\..+\.\d+\.tmp")


class CutShort(OSError):
    """Some files are new and some old: putting the old ones back has failed too."""


def write_together(contents: Mapping[Path, bytes]) -> set[Path]:
    """Writes every file whose content is new, all of them prepared before the first is replaced.

    After an exception every file is as it was. Ctrl-C waits until the last one is replaced. A
    process that is killed in between leaves whole files, but some new and some old, and maybe
    ``leftovers``; the next build mends both.

    Returns:
        The files that changed.

    Raises:
        CutShort: a file could be neither replaced nor put back; the files are a mixture.
        OSError: a file cannot be written; every file is as it was.
    """
    old = {path: path.read_bytes() if path.is_file() else None for path in contents}
    changed = {path: data for path, data in contents.items() if data != old[path]}
    prepared = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in changed}
    try:
        for path, data in changed.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            prepared[path].write_bytes(data)
        with stops_held_back():
            _replace(prepared, old)
    finally:
        for temporary in prepared.values():
            temporary.unlink(missing_ok=True)
    return set(changed)


def leftovers(folders: Iterable[Path]) -> Iterator[Path]:
    """Files that ``write_together`` has prepared and, being killed, could not remove."""
    for folder in folders:
        if folder.is_dir():
            yield from sorted(f for f in folder.iterdir() if _TEMPORARY.fullmatch(f.name))


def _replace(prepared: Mapping[Path, Path], old: Mapping[Path, bytes | None]) -> None:
    replaced: list[Path] = []
    try:
        for path, temporary in prepared.items():
            os.replace(temporary, path)
            replaced.append(path)
    except BaseException:
        failed = [path for path in replaced if not _put_back(path, old[path], prepared[path])]
        if failed:
            names = ", ".join(str(path) for path in failed)
            raise CutShort(
                f"writing was cut short and {names} stayed new; run parlab build again"
            ) from None
        raise


def _put_back(path: Path, data: bytes | None, temporary: Path) -> bool:
    with contextlib.suppress(OSError):
        if data is None:
            path.unlink()
        else:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        return True
    return False
