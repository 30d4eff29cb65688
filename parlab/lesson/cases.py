"""Generated cases whose right answer is known because of how each was made.

Nothing here tests a rule: a case is put together so that exactly the chosen rules break.
"""

import random
from collections.abc import Iterator
from itertools import combinations, permutations
from typing import Any

LAYOUT_RULES = ("mesh_product", "pipeline_layers", "attention_heads", "kv_heads", "context_blocks")
GATES = ("runtime", "memory", "bubble", "communication")


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every subset of ``names``, the empty one first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def layouts(seed: int = 0) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Layouts and the names of the rules that they break: every combination once.

    A size that should split evenly is ``parts × k``; to break its rule a remainder is added.
    """
    dice = random.Random(seed)
    for broken in subsets(LAYOUT_RULES):
        pp, tp, cp = dice.sample([2, 3, 4, 5, 7], 3)

        def size(parts: int, rule: str, broken: tuple[str, ...] = broken) -> int:
            return parts * dice.randint(2, 9) + (dice.randrange(1, parts) if rule in broken else 0)

        off = dice.choice([-1, 1, pp, pp * tp * cp]) if "mesh_product" in broken else 0
        config = {
            "world_size": pp * tp * cp + off,
            "pp": pp,
            "tp": tp,
            "cp": cp,
            "num_layers": size(pp, "pipeline_layers"),
            "num_heads": size(tp, "attention_heads"),
            "num_kv_heads": size(tp, "kv_heads"),
            "sequence_length": size(cp, "context_blocks"),
        }
        yield config, list(broken)


def runs(seed: int = 0) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[str]]]:
    """Metrics, limits and the gates that fail: every combination twice.

    The first of the two stands exactly on the gates that it passes, the second below them.
    """
    dice = random.Random(seed)
    for on_the_gate in (True, False):
        for failed in subsets(GATES):
            limits = {
                "memory_mb": dice.randrange(4_000, 80_000),
                "bubble_ratio": dice.randrange(10, 40) / 100,
                "communication_ratio": dice.randrange(10, 40) / 100,
            }

            def measured(
                gate: str,
                limit: float,
                step: float,
                failed: tuple[str, ...] = failed,
                on_the_gate: bool = on_the_gate,
            ) -> float:
                return limit + step if gate in failed else limit - (0 if on_the_gate else step)

            metrics = {
                "name": f"run{dice.randrange(100)}",
                "peak_memory_mb": measured("memory", limits["memory_mb"], 1),
                "bubble_ratio": measured("bubble", limits["bubble_ratio"], 0.01),
                "communication_ratio": measured(
                    "communication", limits["communication_ratio"], 0.01
                ),
                "throughput": dice.randrange(50, 500),
                "failure": "rank 3: out of memory" if "runtime" in failed else None,
            }
            yield metrics, limits, list(failed)


def contests(seed: int = 0) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Lists of candidates and the name of the one that must win, in every order.

    Each list holds the winner, one that loses at each level of the ranking, and a faster
    one that is not eligible.
    """
    dice = random.Random(seed)
    for _ in range(4):
        throughput, memory = dice.randrange(100, 900), dice.randrange(5_000, 70_000)
        ratio = dice.randrange(10, 30) / 100

        names = iter(dice.sample(range(1_000), 5))

        def one(
            speed: int,
            communication: float,
            peak: int,
            eligible: bool = True,
            names: Iterator[int] = names,
        ) -> dict[str, Any]:
            return {
                "name": f"mesh{next(names)}",
                "throughput": speed,
                "communication_ratio": communication,
                "peak_memory_mb": peak,
                "eligible": eligible,
            }

        best = one(throughput, ratio, memory)
        others = [
            one(throughput - 1, ratio - 0.05, memory - 900),
            one(throughput, ratio + 0.01, memory - 900),
            one(throughput, ratio, memory + 1),
            one(throughput + 50, ratio - 0.05, memory - 900, eligible=False),
        ]
        for order in permutations([best, *others]):
            yield list(order), best["name"]
