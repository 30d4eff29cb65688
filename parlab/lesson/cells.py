"""A learner's function in its notebook: its cell, the variables around it, the line that raised."""

import linecache
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Scope:
    """A notebook's variables, and what a block has done to them since.

    Args:
        names: the live variables; a learner's function reads the same dict.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self._before = dict(names)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Within, the block's variables are as they were before it."""
        block = self.restore()
        try:
            yield
        finally:
            self.names.update(block)

    def restore(self) -> dict[str, Any]:
        """Forget what the block has assigned, and return it."""
        before = self._before
        block = {k: v for k, v in self.names.items() if k not in before or before[k] is not v}
        for name in block:
            if name in before:
                self.names[name] = before[name]
            else:
                del self.names[name]
        return block


def outdated(function: object, label: str, names: Mapping[str, object]) -> bool:
    """Whether the cell ``# label ·`` has run since, without making this function.

    That is so after a syntax error, or where the function was renamed.

    Args:
        names: the notebook's variables; IPython keeps the cells that ran in ``In``.
    """
    history = names.get("In")
    source = "".join(linecache.getlines(_file(function))).strip()
    if not isinstance(history, list) or not source:
        return False
    cells = [str(cell).strip() for cell in history]
    made = [index for index, cell in enumerate(cells) if cell == source]
    ran = [index for index, cell in enumerate(cells) if cell.startswith(f"# {label} ·")]
    return bool(made and ran and ran[-1] > made[-1])


def last_line(function: object, error: BaseException) -> tuple[int, str] | None:
    """Number and text of the deepest line of a cell that the error passed through.

    A line of another cell than the function's own carries the name of its function.
    """
    return _deepest(function, traceback.extract_tb(error.__traceback__))


def present_line(function: object, frame: FrameType) -> tuple[int, str] | None:
    """The same of a thread that is still running, in its frame."""
    return _deepest(function, traceback.extract_stack(frame))


def _deepest(function: object, stack: traceback.StackSummary) -> tuple[int, str] | None:
    own = _file(function)
    frames = [frame for frame in stack if _is_cell(frame.filename, own)]
    if not frames:
        return None
    frame = frames[-1]
    line = frame.lineno or 0
    text = linecache.getline(frame.filename, line).strip()
    return line, text if frame.filename == own else f"{frame.name}: {text}"


def _is_cell(file: str, own: str) -> bool:
    return file == own or "ipykernel_" in file or file.startswith("<ipython-input")


def _file(function: object) -> str:
    return getattr(getattr(function, "__code__", None), "co_filename", "")
