"""The torchrun program: what a rank writes, how it fails."""

from __future__ import annotations

import json

import pytest
from bench_job import torchrun, workload, write_job

from parlab.bench.measure import ratios, split_step
from parlab.bench.rank import too_old

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("torchrun")]


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    """The baseline's folder and a pp = 2, tp = 1 group's that compared itself with it."""
    root = tmp_path_factory.mktemp("jobs")
    (root / "text.txt").write_text("one decoder, trained for real on any mesh. " * 20)
    tables = workload(root / "text.txt")
    base = write_job(root / "baseline", tables, {"pp": 1, "cp": 1, "tp": 1})
    group = write_job(
        root / "G1_pp", tables, {"pp": 2, "cp": 1, "tp": 1}, reference=str(base), device="cpu"
    )
    for world, folder in ((1, base), (2, group)):
        done = torchrun(world, "-m", "parlab.bench.rank", str(folder))
        assert done.returncode == 0, done.stderr[-3000:]
    return base, group


def _documents(folder, world):
    return [json.loads((folder / f"rank-{rank}.json").read_text()) for rank in range(world)]


def test_baseline_leaves_its_reference(jobs):
    (document,) = _documents(jobs[0], 1)
    assert (jobs[0] / "reference.pt").is_file()
    assert document["correctness"] is None and document["traffic"] == []
    assert len(document["steps"]) == 2 and len(document["loss"]) == 5  # 1 + 2, traced, counted
    assert document["peak_memory_mb"] > 50
    assert document["parameters"]["count"] == document["parameters"]["local_count"] == 51552


def test_group_is_correct_and_traced(jobs):
    documents = _documents(jobs[1], 2)
    assert [d["coordinate"]["pp"] for d in documents] == [0, 1]
    for document in documents:
        assert document["correctness"]["loss_difference"] <= 1e-5
        assert document["correctness"]["largest_gradient_error"] <= 1e-5
        assert document["loss"] == pytest.approx(_documents(jobs[0], 1)[0]["loss"], abs=1e-4)
        names = {e["name"] for e in document["trace"]["events"] if e["kind"] == "compute"}
        assert names >= {"F", "B", "optimizer"}
        causes = {row["cause"] for row in document["traffic"]}
        assert causes == {"boundary", "tied"}
        assert json.loads((jobs[1] / f"progress-{document['rank']}.json").read_text())
    step, splits = split_step(documents)
    assert 0 < ratios(step, splits)["bubble_ratio"] < 1


def test_sends_and_receives_match(jobs):
    documents = _documents(jobs[1], 2)
    sent, received = set(), set()
    for document in documents:
        for event in document["trace"]["events"]:
            if event["kind"] == "p2p":
                assert event["end"] >= event["start"]
                ends = (document["rank"], event["peer"], event["sequence"])
                sent.add(ends) if event["operation"] == "send" else received.add(
                    (event["peer"], document["rank"], event["sequence"])
                )
    assert sent == received and len(sent) == 8  # 4 microbatches, both ways


def test_exception_names_its_rank(jobs, tmp_path):
    tables = json.loads((jobs[0] / "job.json").read_text())["workload"]
    inject = {"rank": 1, "what": "exception", "phase": "measure"}
    folder = write_job(tmp_path / "G", tables, {"pp": 1, "cp": 1, "tp": 2}, inject=inject)
    done = torchrun(2, "-m", "parlab.bench.rank", str(folder))
    assert done.returncode != 0
    failure = json.loads((folder / "failure-1.json").read_text())
    assert failure["kind"] == "exception" and "test asked for" in failure["message"]
    assert not (folder / "rank-1.json").exists()


def test_old_torch_is_refused_in_one_line():
    assert too_old("2.13.0+cpu") is None and too_old("2.8.0") is None
    line = too_old("2.7.1+cu126")
    assert line and "\n" not in line and "2.7.1" in line and "2.8" in line
