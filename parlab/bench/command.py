"""``parlab bench``: from arguments to a run, a table or a report."""

import argparse
import os
from pathlib import Path

from parlab.bench import machine, preflight
from parlab.bench.driver import Nodes, Say
from parlab.bench.experiment import bench
from parlab.bench.lock import Locked
from parlab.bench.mesh import Mesh, parse_mesh
from parlab.bench.plan import Refused, Request, find_workload
from parlab.bench.rules import find_root
from parlab.bench.workload import BadWorkload, load
from parlab.lesson.loader import LessonUnusable


def main(arguments: argparse.Namespace, say: Say) -> bool:
    """Does what the command line asks for.

    Returns:
        Whether everything asked for was done.
    """
    try:
        if arguments.report:
            return _report(Path(arguments.report), say)
        request = _request(arguments)
        if arguments.preflight:
            return _preflight(request, say)
        good = bench(request, say)
        if request.nodes.rank == 0:
            _report(request.folder, say)
        return good
    except (Refused, BadWorkload, LessonUnusable, Locked) as error:
        say(str(error))
        return False


def _request(arguments: argparse.Namespace) -> Request:
    return Request(
        root=find_root(Path.cwd()),
        workload=arguments.workload,
        results=Path(arguments.results) if arguments.results else None,
        groups=tuple(name for name in arguments.groups.split(",") if name),
        meshes=_meshes(arguments.mesh),
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


def _meshes(texts: list[str]) -> tuple[Mesh, ...]:
    meshes, bad = [], []
    for text in texts:
        try:
            meshes.append(parse_mesh(text))
        except ValueError as error:
            bad.append(str(error))
    if bad:
        raise Refused(bad)
    return tuple(meshes)


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
