"""Files that people write: damaged, odd or absurd ones are refused in a line, not in a rank."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from parlab.bench import hub, reading, room
from parlab.bench.draft import LONGEST_TEXT, LONGEST_TOML, read
from parlab.bench.machine import Machine
from parlab.bench.mesh import Mesh
from parlab.bench.workload import BadWorkload, load

ROOT = Path(__file__).resolve().parent.parent
TINY = ROOT / "benchmarks" / "workloads" / "tiny-cpu.toml"
SHIPPED = TINY.read_text("utf-8")
SMALL = Machine("a CPU", 2, 8000.0, {"torch": "2.13.0"})


def write(folder: Path, **changes: str) -> Path:
    """tiny-cpu beside a text of its own, with lines changed as ``hidden="1"``."""
    lines = SHIPPED.splitlines()
    for key, value in changes.items():
        (number,) = [n for n, line in enumerate(lines) if line.startswith(f"{key} = ")]
        lines[number] = f"{key} = {value}"
    path = folder / "odd.toml"
    path.write_text("\n".join([*lines, ""]), "utf-8")
    if not (folder / "parallel-training.txt").exists():
        (folder / "parallel-training.txt").write_text("a text to train on", "utf-8")
    return path


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


# What stands where a file should be → what is said of it, whether it is TOML or text.
NO_FILES: dict[str, tuple[Any, str]] = {
    "missing": (lambda path: None, "no such file"),
    "folder": (Path.mkdir, "cannot be read: Is a directory"),
    "pipe": (make_fifo, "is a pipe or a device: name a file"),
    "endless": (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device: name a file"),
    "loop": (lambda path: path.symlink_to(path), "cannot be read: "),
    "latin-1": (lambda path: path.write_bytes(b"caf\xe9 = 1"),
                "is not UTF-8 (byte 0xe9 at 3): save it as UTF-8"),
    "latin-1 after a mark": (lambda path: path.write_bytes(b"\xef\xbb\xbfcaf\xe9"), "byte 0xe9"),
    "UTF-16": (lambda path: path.write_bytes("a = 1".encode("utf-16")),
               "is UTF-16: save it as UTF-8"),
    "large": (lambda path: path.write_bytes(b"#" * (LONGEST_TEXT + 1)), "holds more than"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_workload_that_is_no_file(tmp_path: Path, kind: str) -> None:
    make, said = NO_FILES[kind]
    path = tmp_path / "odd.toml"
    make(path)
    (problem,) = read(path).problems
    assert said in problem


@pytest.mark.parametrize("kind", NO_FILES)
def test_a_text_that_is_no_file(tmp_path: Path, kind: str) -> None:
    make, said = NO_FILES[kind]
    make(tmp_path / "odd.txt")
    (problem,) = read(write(tmp_path, text='"odd.txt"')).problems
    assert problem.startswith("data.text = 'odd.txt': ") and said in problem


def test_files_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> int:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path)
    monkeypatch.setattr(reading, "_at_once", forbidden)
    assert read(path).problems == ["cannot be read: Permission denied"]
    assert read(Path("a\0b.toml")).problems == ["cannot be read: embedded null byte"]


@pytest.mark.parametrize(
    ("content", "size"), [(b"", 0), (b"a", 1), (b"\xef\xbb\xbf", 0), (b"\xef\xbb\xbfa", 1)]
)
def test_a_text_too_short_to_train_on(tmp_path: Path, content: bytes, size: int) -> None:
    (tmp_path / "short.txt").write_bytes(content)
    (problem,) = read(write(tmp_path, text='"short.txt"')).problems
    assert f"holds {size} byte(s) of text, at least 2 are needed" in problem


def test_a_byte_order_mark_is_no_content(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    (tmp_path / "parallel-training.txt").write_bytes(b"\xef\xbb\xbfab")
    assert load(path).name == "odd"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("x = " + "[" * 5000 + "]" * 5000, "is nested too deeply"),
        ("x = " + "{a=" * 5000 + "1" + "}" * 5000, "is nested too deeply"),
        ("x = " + "9" * 5000, "is not valid TOML: Exceeds the limit"),
        ("#" * LONGEST_TOML, "holds more than 32 kB: take a smaller file"),
        ("x = 1\0", "is not valid TOML"),
    ],
    ids=["arrays", "tables", "digits", "large", "NUL"],
)
def test_toml_that_cannot_be_parsed(tmp_path: Path, more: str, said: str) -> None:
    path = write(tmp_path)
    path.write_text(more + "\n" + path.read_text("utf-8"), "utf-8")
    (problem,) = read(path).problems
    assert problem.startswith(said)


@pytest.mark.parametrize("key", ["hidden", "rope_theta", "timeout_s", "seed", "text"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("1" + "0" * 400, "an integer of about 401 digits"),
        ("0x" + "f" * 9000, "an integer of about 10838 digits"),
        ("[" * 90 + "]" * 90, "[[...]]"),
        ("{a = {b = {c = 1}}}", "{'a': {'b': {...}}}"),
        ('"\\u0000\\n"', r"'\x00\n'"),
        (f'"{"x" * 5000}"', "...xxx"),
        ("1979-05-27", "datetime.date(1979, 5, 27)"),
    ],
    ids=["long", "hexadecimal", "deep", "table", "control", "text", "date"],
)
def test_values_of_any_kind_are_told_in_a_line(
    tmp_path: Path, key: str, value: str, shown: str
) -> None:
    (problem,) = read(write(tmp_path, **{key: value})).problems
    assert f".{key} = " in problem and shown in problem and ": must be " in problem
    assert len(problem) < 200 and problem.isprintable()


def test_keys_of_any_kind_are_told_in_a_line(tmp_path: Path) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text("utf-8") + '"a\\nb" = {tp = 4}\n["\\u0000"]\n', "utf-8")
    table, group = read(path).problems
    assert table.startswith(r"['\x00'] is no table") and group.startswith(r"groups.'a\nb': ")
    assert table.isprintable() and group.isprintable()


@pytest.mark.parametrize(
    "name", ["中文", "é", "a b", "../x", "x" * 25, "9a", "a-b", "", "Decision"]
)
def test_names_that_no_group_can_have(tmp_path: Path, name: str) -> None:
    path = write(tmp_path)
    path.write_text(path.read_text("utf-8") + f'\n"{name}" = {{tp = 4}}\n', "utf-8")
    (problem,) = read(path).problems
    assert problem.startswith("groups.") and ("ASCII" in problem or "decision" in problem)


@pytest.mark.parametrize("name", ["模型", "x" * 33, "a b", ".hidden"])
def test_names_that_no_workload_can_have(tmp_path: Path, name: str) -> None:
    path = write(tmp_path).rename(tmp_path / f"{name}.toml")
    (problem,) = read(path).problems
    assert "rename it to at most 32 ASCII letters, digits, _, - and ." in problem


def test_a_wrong_field_hides_no_contradiction(tmp_path: Path) -> None:
    path = write(
        tmp_path, hidden="0", num_kv_heads="3", head_dim="15", vocabulary="255", seed="-1",
        chunks_per_rank="2",
    )  # fmt: skip
    with pytest.raises(BadWorkload, match="6 problem") as caught:
        load(path)
    found = "\n".join(caught.value.problems)
    for said in ("hidden = 0", "num_kv_heads = 3", "head_dim = 15", "vocabulary = 255", "seed = -1",
                 "chunks_per_rank = 2"):  # fmt: skip
        assert said in found


def test_a_table_that_is_none_is_shown(tmp_path: Path) -> None:
    path = write(tmp_path)
    text = path.read_text("utf-8").replace("[model]", "[else]")
    path.write_text("model = 3\n" + text, "utf-8")
    assert "model = 3 is no table" in read(path).problems


def test_a_machine_is_not_asked_for_more_ranks_than_it_can_start() -> None:
    (problem,) = room.too_many_ranks(SMALL, Mesh(pp=8, cp=64, tp=4), 1)
    assert "2048 processes on 2 core(s), at most 16" in problem
    assert room.too_many_ranks(SMALL, Mesh(pp=4, tp=4), 1) == []
    assert room.too_many_ranks(SMALL, Mesh(pp=8, tp=4), 2) == []


def memory(folder: Path, mesh: Mesh, found: Machine = SMALL, device: str = "cpu",
           **changes: str) -> list[str]:  # fmt: skip
    return room.too_little_memory(found, device, load(write(folder, **changes)), mesh, 1)


ABSURD = {"hidden": "131072", "num_layers": "1024", "ffn": "524288", "num_heads": "1024",
          "num_kv_heads": "1024", "head_dim": "1024"}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (ABSURD, "7.74e+14 parameters and 1.02e+03 tokens a step in float32 need 12.4 PB"),
        ({"sequence_length": "4194304"}, "3.36e+07 tokens a step"),
        ({"global_batch": "1048576", "sequence_length": "1048576"}, "1.1e+12 tokens a step"),
        ({"vocabulary": "1048576", "hidden": "4096"}, "parameters"),
    ],
)
def test_absurd_sizes_are_refused_with_what_they_need(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    (problem,) = memory(tmp_path, Mesh(tp=4), **changes)
    assert said in problem and "4 process(es) on this machine, which has 8 GB" in problem


def test_masks_of_a_cut_sequence_count(tmp_path: Path) -> None:
    changes = {"sequence_length": "262144", "global_batch": "1", "num_layers": "1", "hidden": "16",
               "ffn": "16"}  # fmt: skip
    assert memory(tmp_path, Mesh(cp=2), **changes)
    assert memory(tmp_path, Mesh(cp=2), cp_method='"ring"', **changes) == []


def test_every_shipped_workload_has_room_where_it_is_meant_to_run() -> None:
    gpu = [{"name": "GPU", "memory_mb": 80e3}]
    for path in TINY.parent.glob("*.toml"):
        work = load(path)
        large = work.model.weights == "hub"
        found = Machine("a CPU", 2, 64e3 if large else 2e3, {"gpus": gpu if large else []})
        for mesh in work.groups.values():
            device = "cuda" if large else "cpu"
            assert room.too_little_memory(found, device, work, mesh, 1) == []


def test_a_gpu_too_small_for_its_rank_is_named(tmp_path: Path) -> None:
    found = Machine("a CPU", 2, 8e6, {"gpus": [{"name": "GPU", "memory_mb": 80e3}]})
    (problem,) = memory(tmp_path, Mesh(), found, "cuda", hidden="65536", ffn="262144")
    assert "a rank's GPU, which has 80 GB" in problem


def test_packages_for_the_hub_are_missed_before_a_rank_misses_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hub, "find_spec", lambda name: None)
    work = load(TINY.with_name("qwen3-0.6b.toml")).as_dict()
    assert [line.partition(":")[0] for line in hub.lacking(work)] == [
        "tokenizer.id needs the package transformers",
        "model.weights needs the package safetensors",
        "model.weights needs the package huggingface_hub",
    ]
    assert hub.lacking(load(TINY).as_dict()) == []
