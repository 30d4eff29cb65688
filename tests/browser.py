"""JupyterLab in headless Chromium, driven as a learner would."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
]
NAMES = ("google-chrome-stable", "google-chrome", "chromium", "chromium-browser")
SECONDS = 180
QUIET = '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}'

# In the page: the open notebook's cells; a cell is scrolled to before its text is read, since
# JupyterLab draws only what can be seen.
NOTEBOOK = "const book = jupyterapp.shell.currentWidget.content;"


def chromium() -> str | None:
    """The browser that $PARLAB_CHROMIUM names, else the first one found."""
    named = os.environ.get("PARLAB_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """A JupyterLab on ``folder``; yields its address with the token."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = folder / ".home"
    settings = home / "lab" / "settings"
    settings.mkdir(parents=True)
    (settings / "overrides.json").write_text(QUIET, encoding="utf-8")
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--expose-app-in-browser",
        "--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", "--allow-root",
        "--IdentityProvider.token=course", f"--ServerApp.root_dir={folder}",
        f"--LabApp.app_settings_dir={settings}",
    ]  # fmt: skip
    variables = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "user-settings"),
    }
    log = folder / ".home" / "server.log"
    with open(log, "wb") as output:
        server = subprocess.Popen(command, cwd=folder, env=variables, stdout=output, stderr=output)
    try:
        _wait_for(f"http://127.0.0.1:{port}/api/status?token=course", server, log)
        yield f"http://127.0.0.1:{port}/lab/tree/{{}}?token=course"
    finally:
        server.terminate()
        server.wait(timeout=30)


def _wait_for(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")


class Lab:
    """One notebook, open in the browser."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        page.set_default_timeout(SECONDS * 1000)
        page.goto(url)
        page.wait_for_function("window.jupyterapp?.shell?.currentWidget?.sessionContext?.isReady")
        page.wait_for_function(
            "jupyterapp.shell.currentWidget.sessionContext.session?.kernel?.status === 'idle'"
        )

    def js(self, body: str, argument: object = None) -> Any:
        """Run JavaScript in the page; ``book`` is the notebook's widget."""
        return self.page.evaluate(f"async argument => {{ {NOTEBOOK} {body} }}", argument)

    def index(self, first_line: str) -> int:
        """The position of the cell whose source starts with this line."""
        found = self.js(
            "return book.widgets.findIndex("
            "cell => cell.model.sharedModel.source.split('\\n')[0].startsWith(argument))",
            first_line,
        )
        assert found >= 0, f"no cell starts with {first_line!r}"
        return int(found)

    def run_all(self) -> None:
        """Run ▸ Run All Cells, and wait until it is over."""
        self.js("await jupyterapp.commands.execute('notebook:run-all-cells')")
        self._settle()

    def run(self, first_line: str) -> str:
        """Run one cell as Ctrl+Enter does; what stands below it then."""
        self.js("book.activeCellIndex = argument", self.index(first_line))
        self.js("await jupyterapp.commands.execute('notebook:run-cell')")
        self._settle()
        return self.output(first_line)

    def _settle(self) -> None:
        """Wait until no cell is running or queued."""
        self.page.wait_for_function(
            "() => jupyterapp.shell.currentWidget.content.widgets.every("
            "cell => (cell.model.executionState ?? 'idle') === 'idle')"
        )

    def output(self, first_line: str) -> str:
        """The text below a cell, once it is drawn; empty if the cell has no output."""
        index = self.index(first_line)
        self.show(first_line)
        self.page.wait_for_function(
            "i => { const cell = jupyterapp.shell.currentWidget.content.widgets[i];"
            "return !cell.model.outputs.length || cell.outputArea.node.textContent.trim(); }",
            arg=index,
        )
        text = self.js("return book.widgets[argument].outputArea.node.textContent", index)
        return re.sub(r"\n\s*\n", "\n", str(text)).strip()

    def ran(self, first_line: str) -> bool:
        """Whether the cell has an execution number."""
        index = self.index(first_line)
        return bool(self.js("return book.widgets[argument].model.executionCount !== null", index))

    def type_into(self, first_line: str, source: str) -> None:
        """Replace a cell's text by typing."""
        self.show(first_line)
        self.js("book.activeCellIndex = argument; book.mode = 'edit'", self.index(first_line))
        editor = self.page.locator(".jp-Notebook .jp-Cell.jp-mod-active .cm-content")
        editor.click()
        self.page.keyboard.press("ControlOrMeta+A")
        self.page.keyboard.insert_text(source)

    def show(self, first_line: str) -> None:
        """Scroll to a cell."""
        index = self.index(first_line)
        self.js("await book.scrollToItem(argument, 'center')", index)
        self.page.wait_for_function(
            "i => jupyterapp.shell.currentWidget.content.widgets[i].node.isConnected", arg=index
        )

    def overflowing(self) -> list[str]:
        """First lines of the code cells that have to be scrolled sideways."""
        wide = []
        count = int(self.js("return book.widgets.length"))
        for index in range(count):
            found = self.js(
                "await book.scrollToItem(argument, 'center');"
                "const cell = book.widgets[argument];"
                "if (cell.model.type !== 'code') return null;"
                "const box = cell.node.querySelector('.cm-scroller');"
                "return box && box.scrollWidth > box.clientWidth + 1"
                " ? cell.model.sharedModel.source.split('\\n')[0] : null",
                index,
            )
            wide += [str(found)] if found else []
        return wide


@contextmanager
def open_lab(folder: Path, file: str, browser: str) -> Iterator[Lab]:
    """``file`` in ``folder``, open in JupyterLab in the browser at a laptop's size."""
    with jupyterlab(folder) as url, sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=browser, args=FLAGS)
        page = chrome.new_page(viewport={"width": 1366, "height": 900})
        try:
            yield Lab(page, url.format(file))
        finally:
            chrome.close()
