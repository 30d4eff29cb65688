"""A workload: everything that is fixed while layouts are compared, read from TOML and checked."""

import hashlib
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from parlab.bench.mesh import AXES, Mesh

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SCHEDULES = ("1F1B", "GPipe", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble")
BASELINE = "baseline"


class BadWorkload(Exception):
    """Everything that is wrong with a workload, one problem a line."""

    def __init__(self, where: str, problems: list[str]) -> None:
        super().__init__("\n".join([f"{where}: {len(problems)} problem(s)", *problems]))
        self.problems = problems


def _integer(low: int, high: int) -> Any:
    return field(metadata={"type": int, "low": low, "high": high})


def _number(low: float, high: float) -> Any:
    return field(metadata={"type": float, "low": low, "high": high})


def _choice(*values: str) -> Any:
    return field(metadata={"type": str, "choices": values})


def _text(optional: bool = False) -> Any:
    return field(metadata={"type": str, "optional": optional})


def _flag() -> Any:
    return field(metadata={"type": bool})


@dataclass(frozen=True)
class Model:
    """The decoder: Hugging Face's config fields under shorter names."""

    id: str = _text()
    revision: str | None = _text(optional=True)
    weights: str = _choice("random", "hub")
    num_layers: int = _integer(1, 1024)
    hidden: int = _integer(1, 1 << 17)
    num_heads: int = _integer(1, 1024)
    num_kv_heads: int = _integer(1, 1024)
    head_dim: int = _integer(1, 1024)
    ffn: int = _integer(1, 1 << 19)
    vocabulary: int = _integer(2, 1 << 20)
    rope_theta: float = _number(1.0, 1e9)
    norm_eps: float = _number(1e-12, 1e-2)
    qk_norm: bool = _flag()
    tied_embeddings: bool = _flag()
    init_seed: int = _integer(0, 2**31 - 1)


@dataclass(frozen=True)
class Tokenizer:
    """``bytes`` (one token a byte of UTF-8, no file) or a tokenizer on the hub."""

    id: str = _text()
    revision: str | None = _text(optional=True)


@dataclass(frozen=True)
class Data:
    """The text that is trained on; in the TOML its path counts from the TOML's folder."""

    text: str = _text()


@dataclass(frozen=True)
class Batch:
    """Sizes in sequences and tokens."""

    global_batch: int = _integer(1, 1 << 20)
    micro_batch: int = _integer(1, 1 << 20)
    sequence_length: int = _integer(1, 1 << 22)


@dataclass(frozen=True)
class Run:
    """How a group runs."""

    world_size: int = _integer(1, 1 << 16)
    dtype: str = _choice("float32", "bfloat16")
    schedule: str = _choice(*SCHEDULES)
    chunks_per_rank: int = _integer(1, 64)
    split: str = _choice("even", "cost")
    cp_method: str = _choice("allgather", "ring")
    warmup: int = _integer(1, 1000)
    repeats: int = _integer(1, 1000)
    seed: int = _integer(0, 2**31 - 1)
    learning_rate: float = _number(1e-9, 10.0)
    timeout_s: float = _number(1.0, 7 * 86400.0)
    topology: str = _text()


@dataclass(frozen=True)
class Limits:
    """The gates' limits: MB (10⁶ bytes) a rank, and shares of a step."""

    memory_mb: float = _number(1.0, 1e9)
    bubble_ratio: float = _number(0.0, 1.0)
    communication_ratio: float = _number(0.0, 1.0)


@dataclass(frozen=True)
class Workload:
    """One TOML file, checked."""

    name: str
    model: Model
    tokenizer: Tokenizer
    data: Data
    batch: Batch
    run: Run
    limits: Limits
    groups: Mapping[str, Mesh]

    @property
    def microbatches(self) -> int:
        """Microbatches a step."""
        return self.batch.global_batch // self.batch.micro_batch

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one step trains on."""
        return self.batch.global_batch * self.batch.sequence_length

    def as_dict(self) -> dict[str, Any]:
        """Nested dicts by table, as the ranks read them from ``job.json``."""
        return asdict(self)

    def fingerprint(self) -> str:
        """Equal exactly where two runs may be compared: all tables but groups and world size.

        The text counts by its content, so the fingerprint does not depend on where it lies.
        """
        tables = self.as_dict()
        del tables["groups"], tables["run"]["world_size"], tables["run"]["timeout_s"]
        text = Path(self.data.text)
        if text.is_file():
            tables["data"]["text"] = hashlib.sha256(text.read_bytes()).hexdigest()
        return hashlib.sha256(json.dumps(tables, sort_keys=True).encode()).hexdigest()


_TABLES: dict[str, type[Any]] = {
    "model": Model, "tokenizer": Tokenizer, "data": Data, "batch": Batch, "run": Run,
    "limits": Limits,
}  # fmt: skip


def load(path: Path) -> Workload:
    """The workload in a TOML file.

    Raises:
        BadWorkload: every problem at once, each with the field, its value and what is allowed.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadWorkload(str(path), [f"cannot be read: {error.strerror}"]) from None
    except ValueError as error:
        raise BadWorkload(str(path), [f"not valid TOML: {error}"]) from None
    return parse(tables, path.stem, path.parent, str(path))


def parse(tables: dict[str, Any], name: str, folder: Path, where: str = "workload") -> Workload:
    """The workload in parsed TOML; ``data.text`` becomes an absolute path below ``folder``.

    Raises:
        BadWorkload: as ``load``.
    """
    problems = [
        f"[{table}] is no table of a workload; there are {', '.join([*_TABLES, 'groups'])}"
        for table in tables
        if table not in (*_TABLES, "groups")
    ]
    parts = {
        table: _table(table, kind, tables.get(table), problems) for table, kind in _TABLES.items()
    }
    groups = _groups(tables.get("groups"), problems)
    data = parts["data"]
    if isinstance(data, Data):
        text = (folder / data.text).resolve()
        if not text.is_file():
            problems.append(f"data.text = {data.text!r}: no such file beside the workload")
        parts["data"] = Data(str(text))
    problems += _contradictions(parts)
    if problems:
        raise BadWorkload(where, problems)
    return Workload(name=name, groups=groups, **parts)


def _table(table: str, kind: type[Any], given: Any, problems: list[str]) -> Any:
    """The table's dataclass, or None where something is wrong with it."""
    if not isinstance(given, dict):
        problems.append(f"[{table}] is missing")
        return None
    found = len(problems)
    known = {item.name: item.metadata for item in fields(kind)}
    for key in given:
        if key not in known:
            problems.append(f"{table}.{key} is no field; there are {', '.join(known)}")
    values = {
        key: _value(f"{table}.{key}", given.get(key), rule, problems) for key, rule in known.items()
    }
    return kind(**values) if len(problems) == found else None


def _value(where: str, value: Any, rule: Mapping[str, Any], problems: list[str]) -> Any:
    kind = rule["type"]
    if value is None:
        if not rule.get("optional"):
            problems.append(f"{where} is missing ({_allowed(rule)})")
        return None
    if kind is float and type(value) is int:
        value = float(value)
    legal = type(value) is kind
    if legal and kind in (int, float):
        legal = math.isfinite(value) and rule["low"] <= value <= rule["high"]
    if legal and "choices" in rule:
        legal = value in rule["choices"]
    if legal and kind is str:
        legal = bool(value)
    if not legal:
        problems.append(f"{where} = {value!r}: must be {_allowed(rule)}")
    return value


def _allowed(rule: Mapping[str, Any]) -> str:
    if "choices" in rule:
        return "one of " + ", ".join(rule["choices"])
    if "low" in rule:
        word = "an integer" if rule["type"] is int else "a number"
        return f"{word} from {rule['low']:g} to {rule['high']:g}"
    return "true or false" if rule["type"] is bool else "a text that is not empty"


def _groups(given: Any, problems: list[str]) -> dict[str, Mesh]:
    groups = {}
    for name, sizes in (given if isinstance(given, dict) else {}).items():
        if not name.isidentifier() or name == "decision":
            problems.append(f"groups.{name}: a group's name is letters, digits and _")
        legal = isinstance(sizes, dict) and set(sizes) <= set(AXES)
        if not legal or any(type(n) is not int or n < 1 for n in sizes.values()):
            problems.append(f"groups.{name} = {sizes!r}: write {{ pp = N, cp = N, tp = N }}, N ≥ 1")
            continue
        groups[name] = Mesh(**sizes)
    if not groups:
        problems.append("[groups] is missing: it names the meshes, as G0_tp = { tp = 4 }")
    if groups.get(BASELINE, Mesh()).world_size != 1:
        problems.append(f"groups.{BASELINE} = {groups[BASELINE].name}: the baseline is one rank")
    return groups


def _contradictions(parts: Mapping[str, Any]) -> list[str]:
    """What no single field shows; only of tables that are whole."""
    found = []
    model, tokenizer, run = parts["model"], parts["tokenizer"], parts["run"]
    if model and model.num_heads % model.num_kv_heads:
        found.append(
            f"model.num_kv_heads = {model.num_kv_heads} does not divide "
            f"model.num_heads = {model.num_heads}: every KV head serves as many heads"
        )
    if model and model.head_dim % 2:
        found.append(f"model.head_dim = {model.head_dim} is odd: rotary positions turn pairs")
    if model and model.weights == "hub" and not model.revision:
        found.append('model.revision is missing: weights = "hub" needs a branch, tag or commit')
    if model and tokenizer and tokenizer.id == "bytes" and model.vocabulary < 256:
        found.append(f"model.vocabulary = {model.vocabulary}: the bytes tokenizer needs 256")
    if tokenizer and tokenizer.id != "bytes" and not tokenizer.revision:
        found.append(f"tokenizer.revision is missing: {tokenizer.id} needs a tag or commit")
    if run:
        chunks, least = run.chunks_per_rank, {"1F1B": 1, "GPipe": 1}.get(run.schedule, 2)
        most = {"Interleaved1F1B": 64, "InterleavedZeroBubble": 64}.get(run.schedule, least)
        if not least <= chunks <= most:
            wanted = str(least) if least == most else f"{least} or more"
            found.append(f"run.chunks_per_rank = {chunks}: {run.schedule} takes {wanted}")
    return found
