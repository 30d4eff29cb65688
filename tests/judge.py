"""Runs a notebook under nbval in an empty folder and gives back what every cell did."""

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

PLUGINS = Path(__file__).parent / "plugins"
SANITIZE = Path(__file__).parent / "sanitize.cfg"
# No configuration, conftest or plugin but nbval and ours.
ALONE = (
    "-c", os.devnull, "--noconftest", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-p", "cell_outcomes", "--nbval-cell-timeout=120", "--color=no", "--tb=no", "-q",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What one code cell did under nbval."""

    id: str
    source: str
    outcome: str
    text: str
    seconds: float

    @property
    def error(self) -> list[str]:
        """The lines that nbval shows as the cell's traceback."""
        return self.text.partition("Traceback:")[2].strip().splitlines()


def judge(
    notebook: NotebookNode,
    *,
    strict: bool = False,
    kernel: str | None = None,
    environment: dict[str, str] | None = None,
    prefix: tuple[str, ...] = (),
) -> list[Outcome]:
    """The outcome of every code cell, in order.

    Args:
        notebook: what to run; it is written alone into an empty folder.
        strict: compare text outputs with the stored ones as well.
        kernel: name of a kernelspec; the notebook's own if None.
        environment: variables on top of this process's.
        prefix: a command that nbval is run under.

    Raises:
        AssertionError: nbval itself broke down, or a cell went without an outcome.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lesson.ipynb")
        nbformat.write(notebook, file)
        outcomes = Path(folder, "outcomes.jsonl")
        command = [*prefix, sys.executable, "-m", "pytest", *ALONE, "--rootdir", folder]
        command += ["--nbval" if strict else "--nbval-lax", file.name]
        command += [f"--nbval-sanitize-with={SANITIZE}"] if strict else []
        command += [f"--nbval-kernel-name={kernel}"] if kernel else []
        variables = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
        variables |= {"PYTHONPATH": str(PLUGINS), "CELL_OUTCOMES": str(outcomes)}
        done = subprocess.run(
            command,
            cwd=folder,
            env=variables | (environment or {}),
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
        lines = outcomes.read_text(encoding="utf-8").splitlines() if outcomes.exists() else []
    found = [Outcome(**json.loads(line)) for line in lines]
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert len(found) == len(cells), f"{len(found)} outcomes of {len(cells)} cells\n{done.stdout}"
    return found


def vector(outcomes: list[Outcome]) -> dict[str, str]:
    """The cells that did not pass: id and outcome."""
    return {item.id: item.outcome for item in outcomes if item.outcome != "passed"}
