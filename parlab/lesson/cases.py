"""Generated cases whose right answer is known because of how each was made.

Nothing here tests a rule: a case is put together so that exactly the chosen rules break.
"""

import random
from collections.abc import Iterator
from itertools import combinations, islice, permutations
from typing import Any

LAYOUT_RULES = {
    "mesh_product": ("world_size", ""),
    "pipeline_layers": ("num_layers", "pp"),
    "attention_heads": ("num_heads", "tp"),
    "kv_heads": ("num_kv_heads", "tp"),
    "context_blocks": ("sequence_length", "cp"),
}
GATES = ("runtime", "memory", "bubble", "communication")
EVERY_NTH = 23  # of the 720 orders of a contest: any two come next to each other, both ways


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every subset of ``names``, the empty one first."""
    for size in range(len(names) + 1):
        yield from combinations(names, size)


def layouts(seed: int = 0) -> Iterator[tuple[dict[str, Any], list[str]]]:
    """Layouts and the names of the rules that they break: every combination, in two variants.

    Where KV heads are sound there are two more: without ``num_kv_heads``, and with None.
    """
    dice = random.Random(seed)
    for broken in subsets(tuple(LAYOUT_RULES)):
        for _ in range(2):
            yield _layout(broken, dice), list(broken)
        if "kv_heads" not in broken:
            config = _layout(broken, dice)
            yield {**config, "num_kv_heads": None}, list(broken)
            del config["num_kv_heads"]
            yield config, list(broken)


def _layout(broken: tuple[str, ...], dice: random.Random) -> dict[str, Any]:
    """Sizes ``parts × k``, and a remainder where a rule should break.

    Axes may be equal or 1; keys come in any order.
    """
    needs_parts = {LAYOUT_RULES[rule][1] for rule in broken}
    axes = {
        axis: dice.choice([2, 3, 4, 5, 7, 16] if axis in needs_parts else [1, 2, 2, 3, 4, 5])
        for axis in ("pp", "tp", "cp")
    }
    product = axes["pp"] * axes["tp"] * axes["cp"]
    config = {"world_size": product, **axes}
    if "mesh_product" in broken:
        near = {product - 1, product + 1, product * 2, sum(axes.values()), max(axes.values())}
        config["world_size"] = dice.choice(sorted(near - {product, 0}))
    for rule, (size, axis) in LAYOUT_RULES.items():
        if axis:
            remainder = dice.choice([1, axes[axis] - 1]) if rule in broken else 0
            config[size] = axes[axis] * dice.randint(1, 9) + remainder
    if ("attention_heads" in broken) == ("kv_heads" in broken) and dice.random() < 0.5:
        config["num_kv_heads"] = config["num_heads"]
    return dict(dice.sample(sorted(config.items()), len(config)))


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
                if gate in failed:
                    return round(limit + step, 4)
                return limit if on_the_gate else round(limit - step, 4)

            metrics = {
                "name": f"run{dice.randrange(100)}",
                "peak_memory_mb": measured("memory", limits["memory_mb"], 0.5),
                "bubble_ratio": measured("bubble", limits["bubble_ratio"], 0.001),
                "communication_ratio": measured(
                    "communication", limits["communication_ratio"], 0.001
                ),
                "throughput": dice.randrange(50, 500),
                "failure": "rank 3: out of memory" if "runtime" in failed else None,
            }
            yield metrics, limits, list(failed)


def candidate(
    name: str,
    throughput: float,
    communication_ratio: float,
    peak_memory_mb: float,
    eligible: bool = True,
) -> dict[str, Any]:
    """A candidate as it leaves the gates, with a nested value as real records have."""
    return {
        "name": name,
        "throughput": throughput,
        "communication_ratio": communication_ratio,
        "peak_memory_mb": peak_memory_mb,
        "eligible": eligible,
        "ranks": [{"peak_mb": peak_memory_mb}],
    }


def contests(seed: int = 0) -> Iterator[tuple[list[dict[str, Any]], str]]:
    """Lists of candidates and the name of the one that must win, in many orders.

    Each list holds the winner, one that loses at each level of the ranking by a hair and is far
    better below, and two faster ones that are not eligible. Values have 1 to 6 digits.
    """
    dice = random.Random(seed)
    for throughput, ratio, memory in ((100, 0.1, 10_000), (12_345, 0.0, 120_000), (99.5, 0.75, 95)):
        one, two, three, four, five, six = dice.sample("abcdefgh", 6)
        best = candidate(one, throughput, ratio, memory)
        others = [
            candidate(two, throughput - 0.01, 0.00005, memory / 2),
            candidate(three, throughput, round(ratio + 0.001, 4), memory / 2),
            candidate(four, throughput, ratio, memory + 0.5),
            candidate(five, throughput * 2, 0.0, 1, eligible=False),
            candidate(six, throughput * 3, 0.0, 1, eligible=False),
        ]
        for order in islice(permutations([best, *others]), 0, None, EVERY_NTH):
            yield list(order), best["name"]
