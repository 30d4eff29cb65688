"""``parlab bench``: from arguments to a run, a table or a report."""

import argparse
import contextlib
import os
import re
import signal
import threading
from pathlib import Path

from parlab.bench import machine, preflight
from parlab.bench.answers import BadAnswer
from parlab.bench.driver import Nodes, Say
from parlab.bench.experiment import bench
from parlab.bench.lock import Locked
from parlab.bench.mesh import Mesh, parse_mesh
from parlab.bench.plan import Refused, Request, find_workload
from parlab.bench.record import DECISION, BadRecord
from parlab.bench.rules import find_root
from parlab.bench.workload import BASELINE, BadWorkload, load
from parlab.lesson.loader import LessonUnusable

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def main(arguments: argparse.Namespace, say: Say) -> bool:
    """Does what the command line asks for.

    Returns:
        Whether everything asked for was done.
    """
    if arguments.stop_with_stdin:
        stop_with_stdin()
    try:
        if arguments.report:
            return _report(Path(arguments.report), say)
        request = _request(arguments)
        if arguments.preflight:
            return _preflight(request, say)
        good = bench(request, say)
        if request.nodes.rank == 0 and not arguments.no_report:
            _report(request.folder, say)
        return good
    except (Refused, BadWorkload, LessonUnusable, BadAnswer, BadRecord, Locked) as error:
        say(str(error))
        return False


def _request(arguments: argparse.Namespace) -> Request:
    return Request(
        root=find_root(Path.cwd()),
        workload=arguments.workload,
        results=Path(arguments.results) if arguments.results else None,
        groups=tuple(name for name in arguments.groups.split(",") if name),
        named=_meshes(arguments.mesh),
        world_size=arguments.world_size,
        device=arguments.device,
        timeout_s=arguments.timeout,
        notebook=Path(arguments.functions) if arguments.functions else None,
        nodes=Nodes(
            count=arguments.nnodes,
            rank=arguments.node_rank,
            endpoint=arguments.rdzv_endpoint,
            run_id=arguments.run_id or os.environ.get("SLURM_JOB_ID", ""),
            local_address=arguments.local_addr,
        ),
    )


def stop_with_stdin() -> None:
    """From here on this process gets SIGTERM when its standard input ends.

    Whoever started it holds the other end of a pipe, and so stops it also by dying.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _meshes(texts: list[str]) -> dict[str, Mesh]:
    """Groups by name from ``NAME:pp=2,tp=1,cp=2``, or without a name after the mesh's sizes."""
    meshes: dict[str, Mesh] = {}
    bad = []
    for text in texts:
        name, _, sizes = text.rpartition(":")
        try:
            mesh = parse_mesh(sizes)
        except ValueError as error:
            bad.append(str(error))
            continue
        if name in (BASELINE, DECISION) or (name and not _NAME.fullmatch(name)):
            bad.append(
                f"mesh {text!r}: a group's name is letters, digits and _, not {name!r}; "
                f"{BASELINE} and {DECISION} are taken"
            )
        meshes[name or mesh.name] = mesh
    if bad:
        raise Refused(bad)
    return meshes


def _preflight(request: Request, say: Say) -> bool:
    workload = load(find_workload(request.root, request.workload))
    found = machine.look()
    rows = preflight.rows(found, workload.run.world_size)
    say(preflight.table(rows))
    return not any(verdict == preflight.MISSING for _, _, verdict, _ in rows)


def _report(folder: Path, say: Say) -> bool:
    import matplotlib

    matplotlib.use("Agg")  # pictures go to files: no window, whatever the desktop
    from parlab.bench.report import report

    return report(folder, say)
