"""Stands for torchrun in the driver's tests: starts ranks as it does, in sessions of their own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

OPTIONS = dict(a.lstrip("-").split("=", 1) for a in sys.argv[1:] if a.startswith("--"))
PROGRAM = [a for a in sys.argv[1:] if not a.startswith("--")]
WORLD = int(OPTIONS["nproc-per-node"])


def start(rank: int) -> subprocess.Popen[bytes]:
    folder = Path(OPTIONS["log-dir"]) / "run_x" / "attempt_0" / str(rank)
    folder.mkdir(parents=True)
    return subprocess.Popen(
        [sys.executable, *PROGRAM],
        env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(WORLD)},
        start_new_session=True,
        stdout=(folder / "stdout.log").open("wb"),
        stderr=(folder / "stderr.log").open("wb"),
    )


def main() -> int:
    ranks = [start(rank) for rank in range(WORLD)]
    while True:
        codes = [rank.poll() for rank in ranks]
        bad = [(rank, code) for rank, code in enumerate(codes) if code]
        if bad:
            for rank, code in bad:
                print(f"  rank      : {rank} (local_rank: {rank})\n  exitcode  : {code} (pid: 1)")
            sys.stdout.flush()
            for one in ranks:
                if one.poll() is None:
                    os.killpg(one.pid, signal.SIGTERM)
            return 1
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.02)


sys.exit(main())
