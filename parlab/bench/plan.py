"""What is to run, and every reason why it must not: before any process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parlab.bench import decide, driver, hub, layout, learner, machine
from parlab.bench.assemble import Context
from parlab.bench.driver import Nodes
from parlab.bench.mesh import Mesh
from parlab.bench.workload import BASELINE, Workload, load
from parlab.lesson.loader import LessonUnusable, Loaded

RESULTS = Path("benchmarks/results/par_model_internal")
WORKLOADS = Path("benchmarks/workloads")


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

    @property
    def folder(self) -> Path:
        """Where the records go."""
        return self.results or self.root / RESULTS


def find_workload(root: Path, name: str) -> Path:
    """The file of a workload given by name or by path.

    Raises:
        Refused: there is none of that name; says which there are.
    """
    named = root / WORKLOADS / f"{name}.toml"
    if named.is_file():
        return named
    if not name.endswith(".toml"):
        known = ", ".join(sorted(path.stem for path in named.parent.glob("*.toml"))) or "none"
        raise Refused([f"there is no workload {name!r}; there are: {known} (or name a .toml file)"])
    return Path(name)


def plan(request: Request) -> tuple[Context, dict[str, Mesh]]:
    """The groups to run and what they share.

    Raises:
        Refused: every reason why this must not start, of every group.
        BadWorkload, LessonUnusable: the workload or the lesson cannot be read.
        BadAnswer: the learner's rule for layouts gave no answer.
    """
    workload = load(find_workload(request.root, request.workload))
    functions = _functions(request)
    found = machine.look()
    groups = _groups(request, workload)
    most = max((mesh.world_size for mesh in groups.values()), default=1)
    per_node = -(-most // request.nodes.count)
    device = request.device
    if device == "auto":
        device = "cuda" if found.gpus and len(found.gpus) >= per_node else "cpu"
    reasons = machine.refusals(found, device) + _node_reasons(request, groups)
    folded = machine.cannot_fold(found, device)
    if (
        folded
        and workload.run.schedule == "ZBVZeroBubble"
        and any(m.pp > 1 for m in groups.values())
    ):
        reasons.append(folded)
    reasons += [
        f"{name} is no group of {workload.name}; there are {', '.join(workload.groups)}"
        for name in request.groups
        if name not in workload.groups
    ]
    gpus = len(found.gpus) * request.nodes.count if device == "cuda" else None
    for name, mesh in groups.items():
        world = _world(request, workload, name, mesh)
        rule = functions[decide.LAYOUT]
        reasons += [
            f"{name}: {line}" for line in layout.problems(workload, mesh, world, rule, gpus)
        ]
    if reasons:
        raise Refused(reasons)
    try:
        workload = hub.pin(workload)
    except hub.Unresolved as error:
        raise Refused([str(error)]) from None
    return Context(workload, found, functions, device, request.root), groups


def _functions(request: Request) -> Loaded:
    try:
        return learner.load_functions(request.root, request.notebook)
    except LessonUnusable as reason:
        if not request.notebook:
            raise
        remedy = "Name a finished notebook of lesson 04, or leave --functions out"
        raise Refused([f"--functions {request.notebook}: {reason}. {remedy}"]) from None


def _groups(request: Request, workload: Workload) -> dict[str, Mesh]:
    """The chosen groups, the baseline first where it is among them."""
    further = {mesh.name: mesh for mesh in request.meshes} | dict(request.named)
    names = list(request.groups) or ([] if further else list(workload.groups))
    chosen = {name: workload.groups[name] for name in names if name in workload.groups}
    chosen |= further
    return dict(sorted(chosen.items(), key=lambda item: item[0] != BASELINE))


def _world(request: Request, workload: Workload, name: str, mesh: Mesh) -> int:
    if name == BASELINE:
        return 1
    if request.world_size:
        return request.world_size
    return workload.run.world_size if name in workload.groups else mesh.world_size


def _node_reasons(request: Request, groups: Mapping[str, Mesh]) -> list[str]:
    nodes = request.nodes
    if nodes.count == 1:
        return []
    reasons = [
        f"{name}: {mesh.world_size} ranks over {nodes.count} nodes leave "
        f"{mesh.world_size % nodes.count}: take a mesh whose product {nodes.count} divides"
        for name, mesh in groups.items()
        if name != BASELINE and mesh.world_size % nodes.count
    ]
    if not 0 <= nodes.rank < nodes.count:
        reasons.append(f"--node-rank {nodes.rank} is not in 0..{nodes.count - 1}")
    if ":" not in nodes.endpoint:
        reasons.append("several nodes need --rdzv-endpoint HOST:PORT, the same on each")
    if not nodes.run_id:
        reasons.append("several nodes need --run-id ID (any word, new for each run, same on each)")
    return reasons
