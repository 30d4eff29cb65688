"""Starts ``parlab bench`` from a notebook: shown as it goes, stopped with the cell or the kernel.

The benchmark is one subprocess. Its standard input is a pipe that this process holds open: when
that ends (an interrupted cell, a restarted or killed kernel), the benchmark ends its ranks, writes
its record with the failure, and is gone. It runs in a session of its own, so that a signal to the
kernel's process group does not reach it by another way.
"""

import os
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import parlab
from parlab.lesson.deciders import Deciders
from parlab.lesson.language import say
from parlab.lesson.records import course_folder, results_folder
from parlab.lesson.soundness import BASELINE

PATIENCE_S = 10.0
Experiment = Mapping[str, Any]


class RunStopped(KeyboardInterrupt):
    """The learner interrupted a run; notebooks show its own line and no stack."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def bench_command(
    experiments: Sequence[Experiment], world_size: int, results: str, *options: str
) -> list[str]:
    """The command that runs these groups, with the baseline first where there are several.

    Args:
        experiments: each with ``name`` and ``mesh`` (sizes of pp, tp and cp).
        world_size: what every mesh must multiply to.
        results: the folder for the records, from the course's folder.
        options: more, as ``"--device", "cuda"``.
    """
    command = ["parlab", "bench"]
    if len(experiments) > 1:
        command += ["--groups", BASELINE]
    for item in experiments:
        sizes = ",".join(f"{axis}={size}" for axis, size in item["mesh"].items())
        command += ["--mesh", f"{item['name']}:{sizes}"]
    return [*command, "--world-size", str(world_size), "--results", results, *options]


def run_experiments(command: Sequence[str], gpu: bool, rehearsal: bool, deciders: Deciders) -> bool:
    """Runs ``command`` if one of the switches is on.

    Args:
        command: as `bench_command` makes it; the switch decides on the device.
        gpu: ``RUN_GPU_EXPERIMENT``; needs a GPU a rank.
        rehearsal: ``RUN_CPU_REHEARSAL``; works everywhere.
        deciders: whose functions decide.

    Returns:
        Whether something ran to its end.

    Raises:
        RunStopped: the cell was interrupted; the run has been ended.
    """
    if not gpu and not rehearsal:
        print(say("bench_off"))
        return False
    if gpu and rehearsal:
        print(say("bench_both"))
        return False
    lacking = missing_packages()
    if lacking:
        print(say("bench_packages", names=" ".join(lacking)))
        return False
    line = [*_absolute(command), "--device", "cuda" if gpu else "cpu", "--no-report"]
    if deciders.notebook:
        line += ["--functions", str(deciders.notebook)]
    print("$", shlex.join([*command, "--device", "cuda" if gpu else "cpu"]))
    return _run([sys.executable, "-m", "parlab.cli", *line[1:], "--stop-with-stdin"])


def missing_packages() -> list[str]:
    """What the benchmark needs, beyond torch and matplotlib, and cannot import here."""
    needed = {"jsonschema": "jsonschema"}
    if sys.version_info < (3, 11):
        needed["tomli"] = "tomli"
    return [package for module, package in needed.items() if find_spec(module) is None]


def _absolute(command: Sequence[str]) -> list[str]:
    """The command with its results folder spelt out, for it runs in the course's folder."""
    line = list(command)
    at = line.index("--results") + 1
    line[at] = str(results_folder(line[at]).resolve())
    return line


def _run(line: Sequence[str]) -> bool:
    """Runs the benchmark and prints what it says, line by line."""
    started = time.monotonic()
    process: subprocess.Popen[str] | None = None
    try:
        process = subprocess.Popen(
            line, cwd=course_folder(), env=_environment(), start_new_session=True, bufsize=1,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace",
        )  # fmt: skip
        _show(process)
        good = process.wait() == 0
    except KeyboardInterrupt:
        if process is not None:
            _stop(process)
        raise RunStopped(say("bench_stopped")) from None
    finally:
        if process is not None and process.stdin:
            process.stdin.close()
    seconds = f"{time.monotonic() - started:.0f}"
    print(say("bench_done" if good else "bench_failed", seconds=seconds))
    return good


def _show(process: "subprocess.Popen[str]") -> None:
    """Prints what the benchmark says until it ends."""
    assert process.stdout
    for said in process.stdout:
        print(said, end="", flush=True)


def _stop(process: "subprocess.Popen[str]") -> None:
    """Closes the pipe, at which the benchmark ends its run, and waits for the record.

    It takes a few seconds, ten at most; further interruptions change nothing.
    """
    assert process.stdin
    killer = threading.Timer(PATIENCE_S, process.kill)  # its supervisor then ends the ranks
    killer.daemon = True
    killer.start()
    while True:
        try:
            print(say("bench_stopping"), flush=True)
            process.stdin.close()
            _show(process)
            process.wait()
            killer.cancel()
            return
        except KeyboardInterrupt:
            continue


def _environment() -> dict[str, str]:
    """This process's, with the course's ``parlab`` in front."""
    home = Path(list(parlab.__path__)[0]).resolve().parent
    search = [str(home), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(search),
        "PYTHONUNBUFFERED": "1",
        "PYTHONIOENCODING": "utf-8",
    }
