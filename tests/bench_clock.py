"""Ranks that believe to be on several hosts: `torchrun tests/bench_clock.py FILE`.

Rank 1's clock is 1000 s ahead of rank 0's, rank 2 shares rank 0's host.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from pathlib import Path

import torch.distributed as dist

from parlab.bench import host

AHEAD_S = 1000.0

dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=60))
if dist.get_rank() == 1:
    clock = time.perf_counter
    time.perf_counter = lambda: clock() + AHEAD_S
    host._host = lambda: ("another", "boot")
offsets = [None] * dist.get_world_size()
dist.all_gather_object(offsets, host.clock_offset())
if dist.get_rank() == 0:
    Path(sys.argv[1]).write_text(json.dumps(offsets))
dist.barrier()
dist.destroy_process_group()
