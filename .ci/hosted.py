"""`make hosted`: the single-file twins where hosted runtimes are, at both ends of what we support.

For each Python found it makes a throw-away environment under .venv-hosted/ with only torch, jupyter
and matplotlib, then runs tests/test_hosted.py (from .venv, which has what judges) with
PARLAB_HOSTED_PYTHON set to that environment's Python.

HOSTED_PYTHONS   the Pythons to use, separated as in PATH; else python3.10 and python3.13 are looked
                 for in PATH and among pyenv's versions
HOSTED_KEEP=1    keeps the environments, and uses again those that were kept
TORCH_INDEX      where torch's CPU build comes from, as in the Makefile
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JUDGE = "tests/test_hosted.py"
OLDEST = ("torch==2.6.0", "matplotlib==3.8.*")  # the floors, with the oldest Python
NEWEST = ("torch", "matplotlib")  # hosted runtimes run ahead of any pin
WANTED = {"3.10": OLDEST, "3.13": NEWEST}


@dataclass
class Runtime:
    """One environment to make, or the reason why not."""

    version: str
    python: str = ""

    @property
    def requirements(self) -> tuple[str, ...]:
        return WANTED.get(self.version, NEWEST)

    @property
    def home(self) -> Path:
        return ROOT / ".venv-hosted" / f"py{self.version}"

    def __str__(self) -> str:
        return f"Python {self.version} with {', '.join(self.requirements)}"


def version_of(python: str) -> str:
    """'3.13' for a Python that runs and can make an environment, else ''."""
    code = "import sys, venv, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def candidates(version: str) -> Iterator[str]:
    """Where a Python of this version may be: PATH first, then pyenv's newest."""
    if found := shutil.which(f"python{version}"):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for folder in sorted(pyenv.glob(f"versions/{version}*"), reverse=True):
        yield str(folder / "bin" / "python")


def runtimes() -> list[Runtime]:
    if named := os.environ.get("HOSTED_PYTHONS"):
        pythons = [python for python in named.split(os.pathsep) if python]
        return [Runtime(version_of(python) or python, python) for python in pythons]
    return [
        Runtime(version, next((p for p in candidates(version) if version_of(p) == version), ""))
        for version in WANTED
    ]


def prepare(runtime: Runtime) -> Path:
    """The environment's Python, freshly made unless it was kept."""
    python = runtime.home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = runtime.home / "ready"
    wanted = " ".join(runtime.requirements)
    if python.exists() and ready.exists() and ready.read_text("utf-8") == wanted:
        return python
    subprocess.run([runtime.python, "-m", "venv", "--clear", str(runtime.home)], check=True)
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    torch = [*pip, "--no-deps", runtime.requirements[0]]
    index = os.environ.get("TORCH_INDEX", "")
    from_index = ["--retries", "0", "--timeout", "20", "--extra-index-url", index]
    if not index or subprocess.run([*torch, *from_index]).returncode:
        subprocess.run(torch, check=True)
    subprocess.run([*pip, *runtime.requirements, "jupyter"], check=True)
    ready.write_text(wanted, "utf-8")
    return python


def judge(runtime: Runtime, arguments: list[str]) -> str:
    """'passed', 'FAILED …' or 'skipped …' for one runtime."""
    if not runtime.python:
        return f"skipped: no python{runtime.version} with venv here (name one in HOSTED_PYTHONS)"
    if version_of(runtime.python) != runtime.version:
        return "skipped: not a Python that runs and has the venv module"
    print(f"\n=== {runtime} ({runtime.python})", flush=True)
    try:
        python = prepare(runtime)
    except (subprocess.CalledProcessError, OSError) as error:
        return f"skipped: its environment could not be made ({error})"
    environment = {**os.environ, "PARLAB_HOSTED_PYTHON": str(python)}
    command = [sys.executable, "-m", "pytest", JUDGE, *arguments]
    code = subprocess.run(command, cwd=ROOT, env=environment).returncode
    return "passed" if code == 0 else f"FAILED (pytest ended with {code})"


def main(arguments: list[str]) -> int:
    outcomes: list[tuple[Runtime, str]] = []
    try:
        for runtime in runtimes():
            outcomes.append((runtime, judge(runtime, arguments)))
            if not os.environ.get("HOSTED_KEEP"):
                shutil.rmtree(runtime.home, ignore_errors=True)
    finally:
        if not os.environ.get("HOSTED_KEEP"):
            shutil.rmtree(ROOT / ".venv-hosted", ignore_errors=True)
    print()
    for runtime, outcome in outcomes:
        print(f"{runtime}: {outcome}")
    passed = sum(outcome == "passed" for _, outcome in outcomes)
    failed = sum(outcome.startswith("FAILED") for _, outcome in outcomes)
    if not passed and not failed:
        print("nothing could be run")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
