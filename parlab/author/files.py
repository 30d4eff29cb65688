"""Writes files so that an interruption leaves each one whole."""

import os
from collections.abc import Mapping
from pathlib import Path


def write_together(contents: Mapping[Path, bytes]) -> set[Path]:
    """Writes every file whose content is new, all of them prepared before the first is replaced.

    Returns:
        The files that changed.

    Raises:
        OSError: a file cannot be written; those not yet replaced are as before.
    """
    changed = {path: data for path, data in contents.items() if not _holds(path, data)}
    prepared = {path: path.with_name(f".{path.name}.{os.getpid()}.tmp") for path in changed}
    try:
        for path, data in changed.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            prepared[path].write_bytes(data)
        for path, temporary in prepared.items():
            os.replace(temporary, path)
    finally:
        for temporary in prepared.values():
            temporary.unlink(missing_ok=True)
    return set(changed)


def _holds(path: Path, data: bytes) -> bool:
    return path.is_file() and path.read_bytes() == data
