"""Runs solution notebooks and keeps what every run gives alike."""

# mypy: untyped-calls-exclude=nbformat

import asyncio
import atexit
import os
import re
import subprocess
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jupyter_client.kernelspec import NoSuchKernel
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
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
    try:
        # In a thread of its own nbclient leaves the signal handlers alone, so Ctrl-C arrives here.
        with ThreadPoolExecutor(max_workers=1) as pool:
            running = pool.submit(loop.run_until_complete, work)
            try:
                running.result()
            except KeyboardInterrupt:
                loop.call_soon_threadsafe(work.cancel)
                raise
    finally:
        loop.close()


async def _execute_all(notebooks: Mapping[str, NotebookNode], root: Path) -> None:
    tasks = [
        asyncio.ensure_future(_execute_one(path, notebook, root))
        for path, notebook in notebooks.items()
    ]
    try:
        # Not gather: it would cancel the tasks too, and a second time stops their cleaning up.
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        # At once with what they wait for, which nbclient would leave running without a kernel.
        await _cancel(asyncio.all_tasks() - {asyncio.current_task()})
    for task in done:
        task.result()


async def _cancel(tasks: Collection["asyncio.Task[Any]"]) -> None:
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
    manager = client.create_kernel_manager()
    try:
        # What cells print arrives as output; a kernel's own log is of no use to authors.
        await client.async_execute(env=_environment(root), stderr=subprocess.DEVNULL)
    except (CellExecutionError, CellTimeoutError, NoSuchKernel, RuntimeError) as error:
        raise ExecutionFailed(path, running[-1] if running else None, str(error)) from None
    finally:
        # nbclient leaves its kernel running when cancelled while it starts or stops it.
        if isinstance(manager, AsyncKernelManager) and manager.has_kernel:
            await manager.shutdown_kernel(now=True)
        atexit.unregister(client._cleanup_kernel)
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
