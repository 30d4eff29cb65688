"""Measured bubbles against the formula, with stages whose cost is known.

They need both cores to themselves, so `make test-meshes` runs them and `make test` does not.
"""

from __future__ import annotations

import itertools
import json

import bench_sleep
import pytest
from bench_job import torchrun

SMALL, FOUR_MIB = 256, 1 << 20  # floats of an activation
SHORT = [("1F1B", 4, SMALL), ("Interleaved1F1B", 4, FOUR_MIB), "overlap"]
EVERY = [
    *itertools.product(("GPipe", "1F1B", "Interleaved1F1B"), (4, 8, 16), (SMALL, FOUR_MIB)),
    "overlap",
]


def _measured(ranks: int, cases: list, folder) -> None:
    (folder / "cases.json").write_text(json.dumps(cases))
    done = torchrun(ranks, bench_sleep.__file__, str(folder), limit=300)
    assert done.returncode == 0, done.stderr[-3000:]
    for result in json.loads((folder / "results.json").read_text()):
        print(ranks, {k: v if k == "case" else round(v, 4) for k, v in result.items()})
        if result["case"] == "overlap":
            assert result["communication_ratio"] < 0.02
            continue
        schedule, microbatches, _ = result["case"]
        chunks = 2 if schedule == "Interleaved1F1B" else 1
        formula = (ranks - 1) / (chunks * microbatches + ranks - 1)
        assert abs(result["bubble_ratio"] - formula) <= 0.02, (ranks, result, formula)
        assert result["other_ratio"] < 0.03, (ranks, result)


@pytest.mark.meshes
def test_bubble_is_the_formula_on_two_ranks(tmp_path):
    _measured(2, SHORT, tmp_path)


@pytest.mark.meshes
@pytest.mark.parametrize("ranks", [2, 4])
def test_every_bubble_is_the_formula(ranks, tmp_path):
    _measured(ranks, EVERY, tmp_path)
