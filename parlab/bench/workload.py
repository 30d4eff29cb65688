"""A workload: everything that is fixed while layouts are compared, read from TOML and checked."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from parlab.bench.draft import BASELINE, Draft, read, sketch
from parlab.bench.fields import rules
from parlab.bench.mesh import Mesh
from parlab.bench.tables import SCHEDULES, TABLES, Batch, Data, Limits, Model, Run, Tokenizer

__all__ = ["BASELINE", "SCHEDULES", "BadWorkload", "Model", "Workload", "load", "parse"]


class BadWorkload(Exception):
    """Everything that is wrong with a workload, one problem a line."""

    def __init__(self, where: str, problems: list[str]) -> None:
        super().__init__("\n".join([f"{where}: {len(problems)} problem(s)", *problems]))
        self.problems = problems


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


def load(path: Path) -> Workload:
    """The workload in a TOML file.

    Raises:
        BadWorkload: every problem at once, each with the field, its value and what is allowed.
    """
    return whole(read(path))


def parse(tables: dict[str, Any], name: str, folder: Path, where: str = "workload") -> Workload:
    """The workload in parsed TOML; ``data.text`` becomes an absolute path below ``folder``.

    Raises:
        BadWorkload: as ``load``.
    """
    return whole(sketch(tables, name, folder, where))


def whole(draft: Draft) -> Workload:
    """The workload that a draft without problems is.

    Raises:
        BadWorkload: the draft's problems.
    """
    if draft.problems:
        raise BadWorkload(draft.where, draft.problems)
    parts = {table: kind(**draft.tables[table]) for table, kind in TABLES.items()}
    return Workload(name=draft.name, groups=draft.groups, **parts)


def stand_in(draft: Draft, mesh: Mesh) -> Workload:
    """A draft as a workload by which ``mesh`` can be judged, whatever is wrong in the file.

    What is missing or wrong is replaced by sizes that fit: it has been complained about already.
    """
    known = {table: dict(draft.tables[table]) for table in TABLES}
    fits = 2 * mesh.world_size * known["run"].setdefault("chunks_per_rank", 1)
    known["run"].setdefault("schedule", "GPipe")  # takes any number of microbatches
    if not {"global_batch", "micro_batch"} <= known["batch"].keys():
        known["batch"] |= {"global_batch": fits, "micro_batch": 1}
    parts = {
        table: kind(**{name: known[table].get(name, fits) for name in rules(kind)})
        for table, kind in TABLES.items()
    }
    return Workload(name=draft.name, groups=draft.groups, **parts)
