"""Every mesh trains as one process does, and hands over what the formulas say.

The normal run has each schedule, each CP method and each pair of axes; `-m meshes` has them all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import bench_meshes
import pytest
import torch
from bench_formulas import expected
from bench_meshes import Case, all_cases, config, model_names

from parlab.bench.traffic import wire_bytes

FLOAT32 = {
    "loss_difference": 1e-5, "largest_gradient_error": 1e-5, "largest_parameter_error": 1e-5,
}  # fmt: skip
# bfloat16 keeps 8 bits: sums in another order differ by up to a tenth where gradients nearly
# cancel, as those of the QK norms do.
BFLOAT16 = {
    "loss_difference": 1e-2, "largest_gradient_error": 0.2, "largest_parameter_error": 1e-3,
}  # fmt: skip
PROGRAM = Path(bench_meshes.__file__)
COVERING = {
    2: [
        Case(1, 1, 2, "1F1B", "allgather", "tied-8"),
        Case(1, 2, 1, "1F1B", "allgather", "plain-8"),
        Case(1, 2, 1, "1F1B", "ring", "tied-8"),
        Case(2, 1, 1, "GPipe", "allgather", "tied-8"),
        Case(2, 1, 1, "1F1B", "allgather", "plain-8", split="cost"),
        Case(2, 1, 1, "InterleavedZeroBubble", "allgather", "tied-8"),
        Case(2, 1, 1, "ZBVZeroBubble", "allgather", "tied-8"),
        Case(1, 1, 2, "1F1B", "allgather", "plain-8-bfloat16"),
        Case(1, 2, 1, "1F1B", "ring", "tied-8-bfloat16"),
    ],
    4: [
        Case(1, 1, 4, "1F1B", "allgather", "plain-8"),
        Case(1, 4, 1, "1F1B", "ring", "plain-8"),
        Case(1, 2, 2, "1F1B", "allgather", "tied-8"),
        Case(2, 1, 2, "InterleavedZeroBubble", "allgather", "plain-8"),
        Case(2, 1, 2, "ZBVZeroBubble", "allgather", "tied-8"),
        Case(2, 2, 1, "1F1B", "ring", "tied-8"),
        Case(2, 2, 1, "Interleaved1F1B", "allgather", "plain-8"),
        Case(4, 1, 1, "1F1B", "allgather", "tied-8"),
        Case(4, 1, 1, "Interleaved1F1B", "allgather", "tied-8"),
    ],
}


def _launch(cases: list[Case], world: int, folder: Path, limit: float) -> list[dict]:
    (folder / "cases.json").write_text(json.dumps([asdict(case) for case in cases]))
    for model in model_names(cases):
        torch.save(bench_meshes.reference(model), folder / f"reference-{model}.pt")
    command = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node",
        str(world),
        str(PROGRAM),
        str(folder),
    ]
    root = str(PROGRAM.parent.parent)
    path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=limit, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads((folder / "results.json").read_text())


def _check(cases: list[Case], results: list[dict]) -> None:
    assert len(results) == len(cases)
    for case, result in zip(cases, results, strict=True):
        print(_line(case, result))
        bounds = BFLOAT16 if case.model.endswith("-bfloat16") else FLOAT32
        for name, bound in bounds.items():
            assert result[name] <= bound, (case, name, result[name], result["parameter"])
        assert result["gathered"], case
        if case.split == "even" and bounds is FLOAT32:
            _check_traffic(case, result["traffic"])


def _line(case: Case, result: dict) -> str:
    numbers = ("loss_difference", "largest_gradient_error", "largest_parameter_error")
    errors = " ".join(f"{result[name]:.1e}" for name in numbers)
    return (
        f"pp={case.pp} cp={case.cp} tp={case.tp} {case.schedule:>21} {case.cp_method:>9} "
        f"{case.model:>8}  loss, gradient, parameter: {errors}  {result['seconds']:.1f} s"
    )


def _check_traffic(case: Case, ranks: list[list[dict]]) -> None:
    for rank, rows in enumerate(ranks):
        keys = ("axis", "direction", "cause", "operation")
        counted = {
            tuple(row[key] for key in keys): (row["calls"], row["payload_bytes"]) for row in rows
        }
        assert counted == expected(case, config(case.model), case.plan, rank), (case, rank)


@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
@pytest.mark.parametrize("world", [2, 4])
def test_covering_meshes_equal_one_process(world, tmp_path):
    cases = COVERING[world]
    _check(cases, _launch(cases, world, tmp_path, limit=180))


@pytest.mark.meshes
@pytest.mark.parametrize("world", [1, 2, 4, 8])
def test_every_mesh_equals_one_process(world, tmp_path):
    cases = all_cases(world)
    _check(cases, _launch(cases, world, tmp_path, limit=1800))


def test_wire_bytes_of_ring_algorithms():
    assert wire_bytes("all_reduce", 1000, 4) == 1500
    assert wire_bytes("reduce_scatter", 1000, 4) == 750
    assert wire_bytes("all_gather", 1000, 4) == 3000
    assert wire_bytes("send", 1000, 4) == 1000
