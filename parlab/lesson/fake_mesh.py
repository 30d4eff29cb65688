"""A real torch DeviceMesh of any size inside one process, without communication."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore


@contextmanager
def fake_mesh(sizes: dict[str, int], rank: int) -> Iterator[DeviceMesh]:
    """The mesh that process ``rank`` would see, for example ``{"pp": 3, "cp": 2, "tp": 4}``.

    Uses torch's ``fake`` backend: groups and coordinates are real, collectives do nothing.

    Raises:
        RuntimeError: if a process group is already running in this process.
    """
    if dist.is_initialized():
        raise RuntimeError("a process group is already running; leave the other mesh first")
    world = 1
    for size in sizes.values():
        world *= size
    dist.init_process_group("fake", store=FakeStore(), rank=rank, world_size=world)
    try:
        yield init_device_mesh("cpu", tuple(sizes.values()), mesh_dim_names=tuple(sizes))
    finally:
        dist.destroy_process_group()
