"""What is asked of a run, and what is wrong with the asking itself."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parlab.bench import driver
from parlab.bench.driver import Nodes
from parlab.bench.fields import problem, rules, shown
from parlab.bench.mesh import Mesh
from parlab.bench.tables import Run

RESULTS = Path("benchmarks/results/par_model_internal")
_ENDPOINT = re.compile(r"(\S+):([0-9]{1,5})")
_RUN_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class Refused(Exception):
    """Nothing was started; every reason, one a line."""

    def __init__(self, reasons: list[str]) -> None:
        super().__init__("\n".join(["refused, nothing was started:", *reasons]))
        self.reasons = reasons


@dataclass(frozen=True)
class Request:
    """What to run.

    Attributes:
        root: the course's folder; records count their paths from here.
        workload: a name under ``benchmarks/workloads/``, or a file.
        groups: which of the workload's groups; all by default.
        meshes: further meshes, each a group named after its sizes.
        named: further meshes by the name of their group.
        world_size: what the meshes must multiply to, where it is not their own product.
        device: ``"cpu"``, ``"cuda"`` or ``"auto"`` (CUDA where every rank gets a GPU).
        notebook: a learner's lesson-04 notebook, for the functions.
        inject: group → a fault, in tests; ``launcher`` and ``program`` too are for tests.
        refusals: what a command line holds that none of these can, said with all that is wrong.
    """

    root: Path
    workload: str = "tiny-cpu"
    results: Path | None = None
    groups: tuple[str, ...] = ()
    meshes: tuple[Mesh, ...] = ()
    named: Mapping[str, Mesh] = field(default_factory=dict)
    world_size: int | None = None
    device: str = "auto"
    timeout_s: float | None = None
    nodes: Nodes = field(default_factory=Nodes)
    notebook: Path | None = None
    inject: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    launcher: tuple[str, ...] = driver.LAUNCHER
    program: tuple[str, ...] = driver.PROGRAM
    refusals: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        """Where the records go."""
        return self.results or self.root / RESULTS


def problems(request: Request) -> list[str]:
    """Everything in a request that no workload and no machine could make right."""
    known, nodes = rules(Run), request.nodes
    numbers: tuple[tuple[str, Any, str], ...] = (
        ("--timeout", request.timeout_s, "timeout_s"),
        ("--world-size", request.world_size, "world_size"),
        ("--nnodes", nodes.count, "world_size"),
    )
    found = [
        problem(option, value, known[rule]) for option, value, rule in numbers if value is not None
    ]
    if nodes.count >= 1 and not 0 <= nodes.rank < nodes.count:
        found.append(f"--node-rank {shown(nodes.rank)} is not in 0..{nodes.count - 1}")
    return [*request.refusals, *filter(None, found), *_meeting(nodes)]


def _meeting(nodes: Nodes) -> list[str]:
    """What keeps several nodes from finding each other."""
    reasons = []
    several = nodes.count > 1
    if several and not nodes.endpoint:
        reasons.append("several nodes need --rdzv-endpoint HOST:PORT, the same on each")
    if nodes.endpoint:
        parts = _ENDPOINT.fullmatch(nodes.endpoint)
        if not parts or not several <= int(parts[2]) < 1 << 16:  # one node may take any free port
            reasons.append(
                f"--rdzv-endpoint {shown(nodes.endpoint)}: must be HOST:PORT, PORT from 1 to 65535"
            )
    if several and not nodes.run_id:
        reasons.append("several nodes need --run-id ID (any word, new for each run, same on each)")
    if nodes.run_id and not _RUN_ID.fullmatch(nodes.run_id):
        reasons.append(
            f"--run-id {shown(nodes.run_id)}: must be at most 64 ASCII letters, digits, _, - and ."
        )
    return reasons
