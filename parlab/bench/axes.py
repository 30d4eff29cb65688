"""The mesh of a running job: torch's DeviceMesh, and each axis as this rank sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from parlab.bench.collectives import ONE_PROCESS, Axis
from parlab.bench.mesh import Mesh


@dataclass(frozen=True)
class Axes:
    """ends: the ranks of the first and the last pipeline rank with this rank's cp and tp, as an
    axis; None on ranks between them and where pp is 1. Tied embeddings meet there."""

    mesh: Mesh
    device_mesh: Any
    device: torch.device
    pp: Axis
    cp: Axis
    tp: Axis
    ends: Axis | None

    @property
    def coordinate(self) -> dict[str, int]:
        return {"pp": self.pp.index, "cp": self.cp.index, "tp": self.tp.index}


def one_process(device: torch.device) -> Axes:
    """The mesh of one process without torch.distributed."""
    pp, cp, tp = (Axis(name, 0, ONE_PROCESS.ranks, None) for name in ("pp", "cp", "tp"))
    return Axes(Mesh(), None, device, pp, cp, tp, None)


def build_axes(mesh: Mesh, device: torch.device) -> Axes:
    """Every rank of the world calls this once; the world must be exactly the mesh."""
    if dist.get_world_size() != mesh.world_size:
        raise ValueError(
            f"pp × cp × tp = {mesh.pp} × {mesh.cp} × {mesh.tp} = {mesh.world_size}, "
            f"but the world has {dist.get_world_size()} ranks"
        )
    shape = (mesh.pp, mesh.cp, mesh.tp)
    device_mesh = init_device_mesh(device.type, shape, mesh_dim_names=("pp", "cp", "tp"))
    own = mesh.coordinate(dist.get_rank())
    axes = {name: _axis(device_mesh, name, own[name]) for name in ("pp", "cp", "tp")}
    return Axes(mesh, device_mesh, device, **axes, ends=_ends(device_mesh, mesh, axes["pp"]))


def _axis(device_mesh: Any, name: str, index: int) -> Axis:
    group = device_mesh.get_group(name)
    return Axis(name, index, tuple(dist.get_process_group_ranks(group)), group)


def _ends(device_mesh: Any, mesh: Mesh, pp: Axis) -> Axis | None:
    if mesh.pp == 1:
        return None
    if mesh.pp == 2:
        return pp
    last, ends = mesh.pp - 1, None
    for outer, inner in device_mesh.mesh[[0, last]].flatten(1).T.tolist():
        group = dist.new_group([outer, inner])  # all ranks make all groups, in one order
        if dist.get_rank() in (outer, inner):
            ends = Axis("pp", int(dist.get_rank() == inner), (outer, inner), group)
    return ends
