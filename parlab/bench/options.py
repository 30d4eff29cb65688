"""The command line of ``parlab bench`` as a request; what it cannot express is complained about."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from parlab.bench.driver import Nodes
from parlab.bench.fields import key, shown
from parlab.bench.mesh import Mesh, parse_mesh
from parlab.bench.names import group_problem
from parlab.bench.request import Request
from parlab.bench.rules import find_root
from parlab.bench.workload import BASELINE
from parlab.lesson.soundness import DECISION

Number = TypeVar("Number", int, float)
# Options that take a text; none may be empty, which a shell makes of an unset variable.
_TEXTS = ("workload", "groups", "results", "functions", "report", "rdzv_endpoint", "run_id",
          "local_addr")  # fmt: skip


def read(arguments: argparse.Namespace) -> Request:
    """The request; its ``refusals`` have everything in the arguments that cannot stand in one."""
    said = [
        f"{_option(name)} is empty: give it a value or leave the option out"
        for name in _TEXTS
        if getattr(arguments, name) is not None and not getattr(arguments, name).strip()
    ]
    nodes = _nodes(arguments, said)
    named = _meshes(arguments.mesh, said)
    groups = _groups(arguments.groups, named, said)
    return Request(
        root=find_root(Path.cwd()),
        workload=arguments.workload.strip() or Request.workload,
        results=_path(arguments.results),
        groups=groups,
        named=named,
        world_size=_number("world_size", arguments.world_size, int, said),
        device=arguments.device,
        timeout_s=_number("timeout", arguments.timeout, float, said),
        notebook=_path(arguments.functions),
        nodes=nodes,
        refusals=tuple(said),
    )


def _path(given: str | None) -> Path | None:
    return Path(given) if given and given.strip() else None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _number(
    name: str, given: str | None, kind: Callable[[str], Number], said: list[str]
) -> Number | None:
    if given is None:
        return None
    try:
        return kind(given)
    except ValueError:
        what = "an integer" if kind is int else "a number"
        said.append(f"{_option(name)} {shown(given)}: must be {what}")
        return None


def _nodes(arguments: argparse.Namespace, said: list[str]) -> Nodes:
    count = _number("nnodes", arguments.nnodes, int, said)
    rank = _number("node_rank", arguments.node_rank, int, said)
    if arguments.nnodes is None and arguments.node_rank is not None:
        said.append(f"--node-rank {shown(arguments.node_rank)} says nothing without --nnodes N")
        rank = None
    return Nodes(
        count=1 if count is None else count,
        rank=rank or 0,
        endpoint=(arguments.rdzv_endpoint or "").strip(),
        run_id=(arguments.run_id or "").strip() or os.environ.get("SLURM_JOB_ID", ""),
        local_address=arguments.local_addr or "",
    )


def _meshes(texts: list[str], said: list[str]) -> dict[str, Mesh]:
    """Groups by name from ``NAME:pp=2,tp=1,cp=2``, or without a name after the mesh's sizes."""
    meshes: dict[str, Mesh] = {}
    for text in texts:
        name, colon, sizes = text.rpartition(":")
        if colon and (why := group_problem(name, (BASELINE, DECISION))):
            said.append(f"--mesh {shown(text)}: {why}")
        try:
            mesh = parse_mesh(sizes)
        except ValueError as error:
            said.append(f"--mesh {shown(text)}: {error}" if colon else str(error))
            continue
        name = name if colon else mesh.name
        if name in meshes:
            said.append(f"--mesh names {key(name)} twice: a group has one mesh; rename one of them")
        meshes[name] = mesh
    return meshes


def _groups(given: str | None, named: dict[str, Mesh], said: list[str]) -> tuple[str, ...]:
    groups = tuple(filter(None, (name.strip() for name in (given or "").split(","))))
    if given and given.strip() and not groups:
        said.append(f"--groups {shown(given)} names no group")
    said += [
        f"{name} is in --groups and in --mesh: a group has one mesh; rename that of --mesh"
        for name in groups
        if name in named
    ]
    return groups
