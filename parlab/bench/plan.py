"""What is to run, and every reason why it must not: before any process starts."""

import os
from collections.abc import Mapping
from pathlib import Path

from parlab.bench import decide, hub, layout, learner, machine, room
from parlab.bench import request as asked
from parlab.bench.answers import BadAnswer
from parlab.bench.assemble import Context
from parlab.bench.draft import Draft, read
from parlab.bench.fields import key, shown
from parlab.bench.machine import Machine
from parlab.bench.mesh import LARGEST, Mesh
from parlab.bench.names import alike
from parlab.bench.request import Refused, Request
from parlab.bench.rules import lesson_rule
from parlab.bench.workload import BASELINE, stand_in, whole
from parlab.lesson.loader import LessonUnusable, Loaded

__all__ = ["Refused", "Request", "find_workload", "plan"]
WORKLOADS = Path("benchmarks/workloads")


def find_workload(root: Path, name: str) -> Path:
    """The file of a workload given by name or by path.

    Raises:
        Refused: there is none of that name; says which there are.
    """
    named = root / WORKLOADS / f"{name}.toml"
    if os.path.isfile(named):
        return named
    if not name.endswith(".toml"):
        files = (root / WORKLOADS).glob("*.toml")
        known = ", ".join(sorted(path.stem for path in files)) or "none"
        raise Refused(
            [f"there is no workload {shown(name)}; there are: {known} (or name a .toml file)"]
        )
    return Path(name)


def plan(request: Request) -> tuple[Context, dict[str, Mesh]]:
    """The groups to run and what they share.

    Raises:
        Refused: every reason why this must not start, of the command line, the workload, the
            lesson, the machine and every group.
    """
    reasons = asked.problems(request)
    draft = _draft(request, reasons)
    functions, rule = _functions(request, reasons)
    found = machine.look()
    groups = _groups(request, draft)
    device = _device(request, found, groups)
    reasons += machine.refusals(found, device)
    reasons += _folded(draft, found, device, groups) + hub.lacking(draft.tables)
    reasons += _group_reasons(request, draft, groups)
    gpus = len(found.gpus) * _nodes(request) if device == "cuda" else None
    reasons += _layouts(request, draft, groups, rule, gpus)
    reasons += _room(request, draft, found, device, groups)
    if reasons or functions is None:
        raise Refused(list(dict.fromkeys(reasons)))
    try:
        workload = hub.pin(whole(draft))
    except hub.Unresolved as error:
        raise Refused([str(error)]) from None
    return Context(workload, found, functions, device, request.root), groups


def _draft(request: Request, reasons: list[str]) -> Draft:
    """The workload as far as it goes, with its problems among the reasons."""
    try:
        path = find_workload(request.root, request.workload)
    except Refused as refused:
        reasons += refused.reasons
        return Draft(request.workload, "", problems=refused.reasons)
    draft = read(path)
    reasons += [f"{path.name}: {line}" for line in draft.problems]
    return draft


def _functions(request: Request, reasons: list[str]) -> tuple[Loaded | None, layout.Rule]:
    """The lesson's functions, and its rule for meshes: the solution's where they are unusable."""
    try:
        functions = learner.load_functions(request.root, request.notebook)
    except LessonUnusable as error:
        reasons.append(_unusable(request, error))
        return None, lesson_rule(decide.LESSON, decide.LAYOUT)
    return functions, functions[decide.LAYOUT]


def _unusable(request: Request, error: LessonUnusable) -> str:
    if not request.notebook:
        return str(error)
    remedy = "Name a finished notebook of lesson 04, or leave --functions out"
    return f"--functions {request.notebook}: {error}. {remedy}"


def _groups(request: Request, draft: Draft) -> dict[str, Mesh]:
    """The chosen groups, the baseline first where it is among them."""
    further = {mesh.name: mesh for mesh in request.meshes} | dict(request.named)
    names = list(request.groups) or ([] if further else list(draft.groups))
    chosen = {name: draft.groups[name] for name in names if name in draft.groups}
    chosen |= further
    return dict(sorted(chosen.items(), key=lambda item: item[0] != BASELINE))


def _nodes(request: Request) -> int:
    """How many machines; one where the request's number makes no sense and is refused."""
    return request.nodes.count if 1 <= request.nodes.count <= LARGEST else 1


def _device(request: Request, found: Machine, groups: Mapping[str, Mesh]) -> str:
    most = max((mesh.world_size for mesh in groups.values()), default=1)
    per_node = -(-most // _nodes(request))
    if request.device != "auto":
        return request.device
    return "cuda" if found.gpus and len(found.gpus) >= per_node else "cpu"


def _world(request: Request, draft: Draft, name: str, mesh: Mesh) -> int:
    if name == BASELINE:
        return 1
    if request.world_size is not None and 1 <= request.world_size <= LARGEST:
        return request.world_size
    own = mesh.world_size
    return int(draft.tables["run"].get("world_size", own)) if name in draft.groups else own


def _layouts(
    request: Request, draft: Draft, groups: Mapping[str, Mesh], rule: layout.Rule, gpus: int | None
) -> list[str]:
    """What is wrong between meshes and workload; a rule that cannot answer is one reason."""
    reasons = []
    for name, mesh in groups.items():
        workload, world = stand_in(draft, mesh), _world(request, draft, name, mesh)
        try:
            said = layout.problems(workload, mesh, world, rule, gpus)
        except BadAnswer as error:
            reasons.append(str(error))
            rule = lesson_rule(decide.LESSON, decide.LAYOUT)
            said = layout.problems(workload, mesh, world, rule, gpus)
        reasons += [f"{key(name)}: {line}" for line in said]
    return reasons


def _folded(draft: Draft, found: Machine, device: str, groups: Mapping[str, Mesh]) -> list[str]:
    """Why this torch cannot run the schedule, where any group needs it."""
    folded = machine.cannot_fold(found, device)
    asked_for = draft.tables["run"].get("schedule") == "ZBVZeroBubble"
    piped = any(mesh.pp > 1 for mesh in groups.values())
    return [folded] if folded and asked_for and piped else []


def _room(
    request: Request, draft: Draft, found: Machine, device: str, groups: Mapping[str, Mesh]
) -> list[str]:
    """Why this machine is too small for the groups."""
    reasons = []
    for name, mesh in groups.items():
        nodes = 1 if name == BASELINE else _nodes(request)
        said = room.too_many_ranks(found, mesh, nodes) if device == "cpu" else []
        spared = name == BASELINE and len(groups) > 1  # they can do without, should it not fit
        if not draft.problems and not spared:
            said += room.too_little_memory(found, device, whole(draft), mesh, nodes)
        reasons += [f"{key(name)}: {line}" for line in said]
    return reasons


def _group_reasons(request: Request, draft: Draft, groups: Mapping[str, Mesh]) -> list[str]:
    """What is wrong with the choice of groups, whatever the machine."""
    reasons = alike(groups)
    if draft.named:
        reasons += [
            f"{key(name)} is no group of {draft.name}; there are {', '.join(draft.named)}"
            for name in request.groups
            if name not in draft.named
        ]
    nodes = _nodes(request)
    reasons += [
        f"{key(name)}: {mesh.world_size} ranks over {nodes} nodes leave "
        f"{mesh.world_size % nodes}: take a mesh whose product {nodes} divides"
        for name, mesh in groups.items()
        if name != BASELINE and mesh.world_size % nodes
    ]
    return reasons
