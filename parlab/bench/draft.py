"""A workload's TOML as far as it can be understood, with everything that is wrong in it."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from parlab.bench.fields import key, problem, rules, shown
from parlab.bench.mesh import AXES, LARGEST, Mesh
from parlab.bench.names import group_problem, workload_problem
from parlab.bench.reading import Unreadable, read_text
from parlab.bench.tables import TABLES

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BASELINE = "baseline"
LONGEST_TOML, LONGEST_TEXT = 32_000, 16_000_000  # bytes
LEAST_TEXT = 2  # bytes: one token and the one after it


@dataclass
class Draft:
    """What is known of a workload.

    Attributes:
        where: the file, for messages.
        tables: table → field → value, of legal values only.
        groups: those with a legal mesh; ``named`` has the names of all.
        problems: everything that is wrong, one line each.
    """

    name: str
    where: str
    tables: dict[str, dict[str, Any]] = field(default_factory=lambda: {name: {} for name in TABLES})
    groups: dict[str, Mesh] = field(default_factory=dict)
    named: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)


def read(path: Path) -> Draft:
    """The draft of a TOML file, whatever that holds."""
    try:
        tables = tomllib.loads(read_text(path, LONGEST_TOML))
    except Unreadable as error:
        said = str(error)
    except RecursionError:
        said = "is nested too deeply: a workload has tables of plain values"
    except ValueError as error:
        said = f"is not valid TOML: {error}"
    else:
        return sketch(tables, path.stem, path.parent, str(path))
    return Draft(path.stem, str(path), problems=[said])


def sketch(given: Mapping[str, Any], name: str, folder: Path, where: str) -> Draft:
    """The draft of parsed TOML; ``data.text`` becomes an absolute path below ``folder``."""
    draft = Draft(name, where)
    said = draft.problems
    if why := workload_problem(name):
        said.append(why)
    known = ", ".join([*TABLES, "groups"])
    said += [
        f"[{key(table)}] is no table of a workload; there are {known}"
        for table in given
        if table not in (*TABLES, "groups")
    ]
    for table, kind in TABLES.items():
        draft.tables[table] = _table(table, kind, given.get(table), said)
    _groups(given.get("groups"), draft)
    if "text" in draft.tables["data"]:
        draft.tables["data"]["text"] = _text(draft.tables["data"]["text"], folder, said)
    said += _contradictions(draft.tables)
    return draft


def _table(table: str, kind: type[Any], given: Any, said: list[str]) -> dict[str, Any]:
    """The table's legal values."""
    if not isinstance(given, dict):
        said.append(_no_table(table, given))
        return {}
    known = rules(kind)
    said += [
        f"{table}.{key(name)} is no field; there are {', '.join(known)}"
        for name in given
        if name not in known
    ]
    legal: dict[str, Any] = {}
    for name, rule in known.items():
        value = given.get(name)
        if why := problem(f"{table}.{name}", value, rule):
            said.append(why)
        else:
            legal[name] = (
                float(value) if isinstance(value, int) and rule["type"] is float else value
            )
    return legal


def _no_table(table: str, given: Any) -> str:
    """Where a table should be and ``given`` is."""
    return f"{table} = {shown(given)} is no table" if given else f"[{table}] is missing"


def _groups(given: Any, draft: Draft) -> None:
    said = draft.problems
    named = given if isinstance(given, dict) else {}
    draft.named = tuple(named)
    if not named:
        said.append(f"{_no_table('groups', given)}: it names the meshes, as G0_tp = {{ tp = 4 }}")
    for name, sizes in named.items():
        if why := group_problem(name):
            said.append(f"groups.{key(name)}: {why}")
        legal = isinstance(sizes, dict) and set(sizes) <= set(AXES)
        if not legal or any(type(n) is not int or not 1 <= n <= LARGEST for n in sizes.values()):
            said.append(
                f"groups.{key(name)} = {shown(sizes)}: write {{ pp = N, cp = N, tp = N }}, "
                f"N from 1 to {LARGEST}"
            )
            continue
        draft.groups[name] = Mesh(**sizes)
    alone = draft.groups.get(BASELINE, Mesh())
    if alone.world_size != 1:
        said.append(f"groups.{BASELINE} = {alone.name}: the baseline is one rank")


def _text(given: str, folder: Path, said: list[str]) -> str:
    """The absolute path of the text, which is looked through."""
    path = os.path.realpath(folder / given)
    try:
        size = len(read_text(Path(path), LONGEST_TEXT).encode())
    except Unreadable as error:
        said.append(f"data.text = {shown(given)}: {error}")
        return path
    if size < LEAST_TEXT:
        said.append(
            f"data.text = {shown(given)}: holds {size} byte(s) of text, at least {LEAST_TEXT} are "
            "needed: a token and the one after it"
        )
    return path


def _contradictions(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What no single field shows; of fields that are legal by themselves."""
    model, tokenizer, run = tables["model"], tables["tokenizer"], tables["run"]
    found = []
    heads, kv_heads = model.get("num_heads", 0), model.get("num_kv_heads", 1)
    if heads % kv_heads:
        found.append(
            f"model.num_kv_heads = {kv_heads} does not divide "
            f"model.num_heads = {heads}: every KV head serves as many heads"
        )
    if model.get("head_dim", 0) % 2:
        found.append(f"model.head_dim = {model['head_dim']} is odd: rotary positions turn pairs")
    if model.get("weights") == "hub" and model.get("revision", "") is None:
        found.append('model.revision is missing: weights = "hub" needs a branch, tag or commit')
    size, name = model.get("vocabulary", 256), tokenizer.get("id", "bytes")
    if name == "bytes" and size < 256:
        found.append(f"model.vocabulary = {size}: the bytes tokenizer needs 256")
    if name != "bytes" and tokenizer.get("revision", "") is None:
        found.append(f"tokenizer.revision is missing: {name} needs a tag or commit")
    return found + _chunks(run)


def _chunks(run: Mapping[str, Any]) -> list[str]:
    """Chunks a rank that the schedule cannot do with."""
    if "schedule" not in run or "chunks_per_rank" not in run:
        return []
    schedule, chunks = run["schedule"], run["chunks_per_rank"]
    least = {"1F1B": 1, "GPipe": 1}.get(schedule, 2)
    most = {"Interleaved1F1B": 64, "InterleavedZeroBubble": 64}.get(schedule, least)
    if least <= chunks <= most:
        return []
    wanted = str(least) if least == most else f"{least} or more"
    return [f"run.chunks_per_rank = {chunks}: {schedule} takes {wanted}"]
