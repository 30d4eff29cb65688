"""Workloads and layouts: all that is wrong is said at once, with numbers, before anything runs."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import sys
from pathlib import Path
from typing import Any

import pytest

from parlab.bench.draft import sketch
from parlab.bench.layout import problems
from parlab.bench.mesh import Mesh, parse_mesh
from parlab.bench.workload import SCHEDULES, BadWorkload, Workload, load, parse, stand_in
from parlab.lesson.loader import load_lesson

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks" / "workloads"
TINY = FOLDER / "tiny-cpu.toml"
RULE = load_lesson(ROOT, "04_model_internal_parallel")["validate_mesh_layout"]


def tables() -> dict[str, Any]:
    return copy.deepcopy(tomllib.loads(TINY.read_text("utf-8")))


def changed(**changes: Any) -> Workload:
    """tiny-cpu with fields changed after the check, as ``batch__global_batch=3``."""
    work = load(TINY)
    for where, value in changes.items():
        table, _, key = where.partition("__")
        work = dataclasses.replace(
            work, **{table: dataclasses.replace(getattr(work, table), **{key: value})}
        )
    return work


def names(work: Workload, mesh: Mesh, world: int | None = None, gpus: int | None = None) -> set:
    said = problems(work, mesh, mesh.world_size if world is None else world, RULE, gpus)
    return {line.partition(":")[0] for line in said}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_shipped_workloads_fit_their_groups(path: Path) -> None:
    work = load(path)
    assert list(work.groups) == ["baseline", "G0_tp", "G1_pp", "G2_pp_tp"]
    for name, mesh in work.groups.items():
        world = 1 if name == "baseline" else work.run.world_size
        assert problems(work, mesh, world, RULE) == []


def test_tiny_is_as_large_as_promised() -> None:
    work = load(TINY)
    assert work.model.num_layers >= 8 and work.model.hidden == 128 and work.run.repeats == 3
    assert work.batch.sequence_length == 128 and work.microbatches == 8
    assert len(Path(work.data.text).read_bytes()) > work.tokens_per_step


def test_every_problem_of_a_file_is_said_at_once() -> None:
    given = tables()
    given["model"]["hidden"] = -4
    given["model"]["num_layers"] = True
    given["model"]["colour"] = "blue"
    given["batch"]["micro_batch"] = 1.5
    given["run"]["schedule"] = "1F2B"
    given["run"]["learning_rate"] = float("nan")
    del given["run"]["seed"]
    given["limits"]["bubble_ratio"] = 1.2
    given["data"]["text"] = "nowhere.txt"
    given["extra"] = {}
    with pytest.raises(BadWorkload) as caught:
        parse(given, "t", FOLDER)
    said = "\n".join(caught.value.problems)
    for part in (
        "model.hidden = -4: must be an integer from 1 to 131072",
        "model.num_layers = True",
        "model.colour is no field",
        "batch.micro_batch = 1.5",
        "run.schedule = '1F2B': must be one of 1F1B, GPipe",
        "run.learning_rate = nan",
        "run.seed is missing",
        "limits.bubble_ratio = 1.2",
        "data.text = 'nowhere.txt': no such file",
        "[extra] is no table",
    ):
        assert part in said
    assert len(caught.value.problems) == 10


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model": {"num_kv_heads": 3}}, "num_kv_heads = 3 does not divide model.num_heads = 8"),
        ({"model": {"head_dim": 15}}, "head_dim = 15 is odd"),
        ({"model": {"weights": "hub"}}, "model.revision is missing"),
        ({"model": {"vocabulary": 100}}, "vocabulary = 100: the bytes tokenizer needs 256"),
        ({"tokenizer": {"id": "a/b"}}, "tokenizer.revision is missing"),
        ({"run": {"chunks_per_rank": 2}}, "chunks_per_rank = 2: 1F1B takes 1"),
        ({"run": {"schedule": "Interleaved1F1B"}}, "Interleaved1F1B takes 2 or more"),
        ({"run": {"schedule": "ZBVZeroBubble", "chunks_per_rank": 3}}, "ZBVZeroBubble takes 2"),
        ({"groups": {"baseline": {"pp": 2}}}, "the baseline is one rank"),
        ({"groups": {"G0": {"dp": 2}}}, "groups.G0"),
        ({"groups": {"G0": {"pp": 0}}}, "groups.G0"),
        ({"groups": {"a/b": {"pp": 1}}}, "groups.a/b"),
        ({"groups": {"decision": {"pp": 1}}}, "groups.decision"),
    ],
)
def test_contradictions(change: dict[str, Any], said: str) -> None:
    given = tables()
    for table, values in change.items():
        given[table].update(values)
    with pytest.raises(BadWorkload, match="1 problem") as caught:
        parse(given, "t", FOLDER)
    assert said in caught.value.problems[0]


def test_unreadable_files(tmp_path: Path) -> None:
    with pytest.raises(BadWorkload, match="no such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("[model")
    with pytest.raises(BadWorkload, match="not valid TOML"):
        load(tmp_path / "bad.toml")
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(BadWorkload, match="7 problem"):
        load(tmp_path / "empty.toml")


def test_all_that_does_not_divide_is_said_at_once() -> None:
    work = changed(
        model__num_layers=9, model__num_heads=7, model__num_kv_heads=7, model__ffn=345,
        model__vocabulary=257, batch__sequence_length=127, batch__global_batch=9,
        batch__micro_batch=4,
    )  # fmt: skip
    assert names(work, Mesh(pp=4, cp=2, tp=2), 15, gpus=8) == {
        "mesh_product", "pipeline_layers", "attention_heads", "kv_heads", "context_blocks",
        "vocabulary_shards", "ffn_shards", "microbatches", "schedule_microbatches",
        "15 ranks but 8 GPU(s)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "mesh", "said"),
    [
        ({"run__chunks_per_rank": 3, "run__schedule": "Interleaved1F1B"}, Mesh(pp=2),
         "pipeline_chunks: num_layers = 8 over pp · chunks_per_rank = 2 · 3 = 6 leaves 2: "
         "take 6 or 12"),
        ({"batch__sequence_length": 127}, Mesh(cp=2),
         "context_blocks: sequence_length = 127 over 2 · cp = 2 · 2 = 4 leaves 3: take 124 or 128"),
        ({"batch__sequence_length": 126}, Mesh(cp=2),
         "head_tail_blocks: sequence_length = 126 over 2 · cp = 2 · 2 = 4 leaves 2"),
        ({"batch__global_batch": 3}, Mesh(pp=4), "3 / 1 = 3"),
        ({"batch__global_batch": 6, "run__chunks_per_rank": 2, "run__schedule": "Interleaved1F1B"},
         Mesh(pp=4), "needs a multiple of 4 microbatches, but global_batch / micro_batch = 6 / 1"),
    ],
)  # fmt: skip
def test_one_rule_each(changes: dict[str, Any], mesh: Mesh, said: str) -> None:
    (line,) = problems(changed(**changes), mesh, mesh.world_size, RULE)
    assert said in line


def test_gpipe_takes_any_number_of_microbatches() -> None:
    work = changed(run__schedule="GPipe", batch__global_batch=1)
    assert problems(work, Mesh(pp=4), 4, RULE) == []


def test_any_length_fits_where_no_sequence_is_cut() -> None:
    for length in (1, 7, 127):
        assert problems(changed(batch__sequence_length=length), Mesh(tp=2), 2, RULE) == []


def test_no_pipeline_no_schedule_rule() -> None:
    for schedule in SCHEDULES:
        work = changed(run__schedule=schedule, batch__global_batch=1, run__chunks_per_rank=2)
        assert problems(work, Mesh(tp=2), 2, RULE) == []


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        (Mesh(pp=3), {"pipeline_layers"}),
        (Mesh(tp=3), {"attention_heads", "ffn_shards"}),
        (Mesh(pp=2, tp=16), {"attention_heads", "ffn_shards"}),
        (Mesh(cp=3), set()),
    ],
)
def test_what_is_wrong_in_a_file_hides_nothing_about_a_mesh(mesh: Mesh, said: set[str]) -> None:
    """Fields that are wrong themselves fit every mesh; the others are held against it."""
    given = tables()
    given["model"] |= {"num_kv_heads": 0, "vocabulary": "many"}
    given["batch"] |= {"sequence_length": -1, "micro_batch": 0}
    given["run"]["schedule"] = "1F2B"
    assert names(stand_in(sketch(given, "t", FOLDER, "t"), mesh), mesh) == said


def test_rules_come_from_the_function() -> None:
    said = problems(load(TINY), Mesh(tp=4), 4, lambda config: {"errors": ["my_own_rule"]})
    assert said == ["my_own_rule: broken"]


def test_coordinates_follow_the_rank_order() -> None:
    for pp, cp, tp in itertools.product((1, 2, 3), repeat=3):
        mesh = Mesh(pp=pp, cp=cp, tp=tp)
        expected = [
            {"pp": a, "cp": b, "tp": c} for a in range(pp) for b in range(cp) for c in range(tp)
        ]
        assert list(mesh.coordinates()) == expected
    with pytest.raises(ValueError, match="rank 4"):
        Mesh(tp=4).coordinate(4)


def test_meshes_on_the_command_line() -> None:
    assert parse_mesh("pp=2, tp=1,cp=2") == Mesh(pp=2, cp=2)
    for bad in ("", "pp", "pp=0", "pp=2,pp=2", "dp=2", "pp=-1", "pp=x"):
        with pytest.raises(ValueError, match="mesh"):
            parse_mesh(bad)


def test_fingerprint_names_what_may_be_compared(tmp_path: Path) -> None:
    work = load(TINY)
    assert work.fingerprint() == changed(run__world_size=8, run__timeout_s=5.0).fingerprint()
    assert work.fingerprint() != changed(run__seed=12).fingerprint()
    assert work.fingerprint() != changed(limits__memory_mb=10.0).fingerprint()
    copied = tmp_path / "other.txt"
    copied.write_bytes(Path(work.data.text).read_bytes())
    assert work.fingerprint() == changed(data__text=str(copied)).fingerprint()
    copied.write_text("other")
    assert work.fingerprint() != changed(data__text=str(copied)).fingerprint()
