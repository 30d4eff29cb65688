"""Runs solution notebooks and keeps what every run gives alike."""

import asyncio
import os
import re
import threading
from collections.abc import Mapping
from pathlib import Path

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

_CELL_TIMEOUT = 300  # seconds; the slowest lesson promises a minute for all of its cells
_GLYPH = re.compile(r"Glyph .* missing from .*")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_VOLATILE = (
    (re.compile(r"\S*ipykernel_\d+[/\\]\d+\.py"), "<cell>"),
    (re.compile(r"\bat 0x[0-9a-fA-F]{6,}"), "at 0x…"),
)


class ExecutionFailed(Exception):
    """A cell of a solution did not run as it must."""

    def __init__(self, notebook: str, cell: NotebookNode | None, reason: str) -> None:
        where = f"{notebook}: cell {cell.id}" if cell else notebook
        source = "".join(f"    {line}\n" for line in cell.source.split("\n")) if cell else ""
        super().__init__(f"{where} failed\n{source}{_ANSI.sub('', reason).rstrip()}")


def execute(notebooks: Mapping[str, NotebookNode], root: Path) -> None:
    """Executes notebooks side by side, in place, each in its own folder.

    Args:
        notebooks: by path from ``root``; the folders must exist.
        root: the repository's root, whose ``parlab`` the cells import.

    Raises:
        ExecutionFailed: a cell raised, ran too long or drew a character that no font has.
        KeyboardInterrupt: the kernels have been stopped.
    """
    loop = asyncio.new_event_loop()
    work = loop.create_task(_execute_all(notebooks, root))
    # In a thread of its own nbclient leaves the signal handlers alone, so Ctrl-C arrives here.
    thread = threading.Thread(target=_run, args=(loop, work), daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)
    except KeyboardInterrupt:
        loop.call_soon_threadsafe(work.cancel)
        thread.join()
        raise
    finally:
        if not thread.is_alive():
            loop.close()
    work.result()


def _run(loop: asyncio.AbstractEventLoop, work: "asyncio.Task[None]") -> None:
    asyncio.set_event_loop(loop)
    loop.run_until_complete(asyncio.wait([work]))


async def _execute_all(notebooks: Mapping[str, NotebookNode], root: Path) -> None:
    tasks = [
        asyncio.ensure_future(_execute_one(path, notebook, root))
        for path, notebook in notebooks.items()
    ]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _execute_one(path: str, notebook: NotebookNode, root: Path) -> None:
    running: list[NotebookNode] = []
    client = NotebookClient(
        notebook,
        timeout=_CELL_TIMEOUT,
        kernel_name="python3",
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str((root / path).parent)}},
        on_cell_start=lambda cell, cell_index: running.append(cell),
    )
    metadata = dict(notebook.metadata)
    try:
        await client.async_execute(env=_environment(root))
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        raise ExecutionFailed(path, running[-1] if running else None, str(error)) from None
    notebook.metadata = NotebookNode(metadata)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [_steady(output) for output in _coalesced(cell.outputs)]
            _refuse_missing_glyphs(path, cell)


def _environment(root: Path) -> dict[str, str]:
    """The kernel's environment: this checkout's parlab, pictures inline, sets in a fixed order."""
    search = [str(root), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(search),
        "PYTHONHASHSEED": "0",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }


def _coalesced(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Joins neighbouring chunks of one stream, whose bounds differ from run to run."""
    joined: list[NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        if last and output.output_type == "stream" == last.output_type and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _steady(output: NotebookNode) -> NotebookNode:
    """The output without addresses and temporary file names."""
    if output.output_type == "stream":
        output.text = _without_volatile(output.text)
    elif "text/plain" in output.get("data", {}):
        output.data["text/plain"] = _without_volatile(output.data["text/plain"])
    return output


def _without_volatile(text: str) -> str:
    for pattern, replacement in _VOLATILE:
        text = pattern.sub(replacement, text)
    return text


def _refuse_missing_glyphs(path: str, cell: NotebookNode) -> None:
    for output in cell.outputs:
        found = _GLYPH.search(output.text) if output.output_type == "stream" else None
        if found:
            raise ExecutionFailed(path, cell, f"{found.group()}: label the figure in English")
