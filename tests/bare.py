"""Kernels for the single-file twins: a few packages only, no parlab, and no network."""

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement

LOOPBACK_ONLY = Path(__file__).parent / "loopback_only.py"


def needed(names: tuple[str, ...]) -> set[str]:
    """The installed packages that ``names`` need, themselves included, in normal form."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        try:
            requires = distribution(name).requires or []
        except PackageNotFoundError:
            continue  # an optional part that is not installed here
        if name in found:
            continue
        found.add(name)
        for line in requires:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def bare_python(folder: Path, names: tuple[str, ...]) -> Path:
    """An environment that sees nothing but ``names`` and what they need; its Python.

    The packages are links to the ones installed here, so nothing is downloaded.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in needed(names):
        package = distribution(name)
        tops = {file.parts[0] for file in package.files or () if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            link = site / top
            if not link.exists():
                link.symlink_to(Path(str(package.locate_file(top))))
    return folder / "bin" / "python"


def kernel_for(python: Path, folder: Path) -> dict[str, str]:
    """Variables that make the kernel ``bare`` known, which runs on ``python``."""
    spec = folder / "kernels" / "bare"
    spec.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel = {"argv": argv, "display_name": "bare", "language": "python", "env": {"PYTHONPATH": ""}}
    (spec / "kernel.json").write_text(json.dumps(kernel), encoding="utf-8")
    return {"JUPYTER_PATH": str(folder)}


def no_network() -> tuple[str, ...]:
    """A command prefix under which only the loopback address works; empty where impossible."""
    unshare = shutil.which("unshare")
    if not unshare:
        return ()
    prefix = (unshare, "--map-root-user", "--net", "--", sys.executable, str(LOOPBACK_ONLY))
    tried = subprocess.run([*prefix, sys.executable, "-c", ""], capture_output=True)
    return prefix if tried.returncode == 0 else ()


def hosted_python() -> Path | None:
    """The Python that ``make hosted`` prepared, if it calls."""
    named = os.environ.get("PARLAB_HOSTED_PYTHON")
    return Path(named) if named else None
