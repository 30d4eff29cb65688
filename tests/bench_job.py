"""A small job as the driver writes it, run under torchrun."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def workload(text: Path, **run) -> dict:
    """A workload of four layers that takes well under a second a step."""
    return {
        "model": {
            "id": "test", "revision": None, "weights": "random", "num_layers": 4, "hidden": 32,
            "num_heads": 8, "num_kv_heads": 4, "head_dim": 8, "ffn": 48, "vocabulary": 256,
            "rope_theta": 10000.0, "norm_eps": 1e-6, "qk_norm": True, "tied_embeddings": True,
            "init_seed": 7,
        },
        "tokenizer": {"id": "bytes", "revision": None},
        "data": {"text": str(text)},
        "batch": {"global_batch": 4, "micro_batch": 1, "sequence_length": 16},
        "run": {
            "dtype": "float32", "schedule": "1F1B", "chunks_per_rank": 1, "split": "even",
            "cp_method": "allgather", "warmup": 1, "repeats": 2, "seed": 3, "learning_rate": 1e-4,
            "timeout_s": 60, **run,
        },
    }  # fmt: skip


def write_job(folder: Path, tables: dict, mesh: dict, **more) -> Path:
    folder.mkdir(parents=True)
    job = {"workload": tables, "mesh": mesh, "name": folder.name, "reference": None, "inject": None}
    (folder / "job.json").write_text(json.dumps({**job, **more}))
    return folder


def torchrun(world: int, *command: str, limit: float = 120) -> subprocess.CompletedProcess:
    """`command` (a script or -m module with arguments) on `world` ranks."""
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--max-restarts=0",
         "--nproc-per-node", str(world), *command],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path},
        capture_output=True, text=True, timeout=limit, check=False,
    )  # fmt: skip
