"""TODO 2: metrics and limits where exactly the gates chosen fail."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_04.numbers import is_number
from parlab.grade.cases.lesson_04.rules import EACH

LIMITED = {
    "memory": ("peak_memory_mb", "memory_mb"),
    "bubble": ("bubble_ratio", "bubble_ratio"),
    "communication": ("communication_ratio", "communication_ratio"),
}
VERDICT = ("eligible", "gate_failures")


_PAIR = {"compare": "member", "options": {"entry": "gate_failures", "names": ("memory",)}}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    verdict = {"keys": VERDICT, "any_order": ("gate_failures",)}
    gates = ("runtime", *LIMITED)
    for rule in gates:
        for number in range(EACH):
            metrics, limits = _run(dice, {rule} if number % 2 else set())
            if number % 4 < 2:  # what was not measured is 0, and 0 is below every limit
                fails = rule if number % 2 else ""
                zeros = ["throughput", *(LIMITED[gate][0] for gate in LIMITED if gate != fails)]
                metrics |= dict.fromkeys(zeros, 0)
            names = {"entry": "gate_failures", "names": (rule,)}
            yield Case(rule, (metrics, limits), "member", names)
    for number in range(EACH):
        failed = {sorted(LIMITED)[number // 2 % 3]} if number % 2 else set()
        yield Case("edge", _run(dice, failed, near=True), "entries", verdict)
    for number in range(2 * EACH):
        failed = set(dice.sample(gates, 2 + number % 3))
        metrics, limits = _run(dice, failed)
        if number % 6 == 5:
            metrics |= {"eligible": True, "gate_failures": ["old"]}
        yield Case("several", (metrics, limits), "entries", verdict)
    for number in range(EACH):
        metrics, limits = _run(dice, set(dice.sample(gates, number % 3)))
        metrics["ranks"] = [{"peak_mb": [dice.randrange(100), number]}, {"axis": "pp"}]
        yield Case("copy", (metrics, limits), "all_but", {"keys": VERDICT}, call="detached")

    for number in range(4):
        pair = [_run(dice, {"memory"}), _run(dice, set())]
        given = tuple(pair if number % 2 else pair[::-1])
        yield Case("fresh", given, "each", _PAIR, call="kept")


def _run(
    dice: random.Random, failed: set[str], near: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metrics and limits where exactly these gates fail.

    ``near``: by a hair, and whatever passes stands on its limit.
    """
    limits: dict[str, Any] = {
        "memory_mb": dice.randrange(4_000, 80_000),
        "bubble_ratio": dice.randrange(10, 40) / 100,
        "communication_ratio": dice.randrange(10, 40) / 100,
    }
    metrics: dict[str, Any] = {"name": f"run{dice.randrange(1000)}"}
    for gate, (value, limit) in LIMITED.items():
        metrics[value] = _measured(dice, limits[limit], gate in failed, near)
    metrics["throughput"] = dice.randrange(50, 500)
    if "runtime" in failed:
        metrics["failure"] = dice.choice(["rank 3: out of memory", {"kind": "timeout"}, "OOM"])
    elif dice.random() < 0.5:
        metrics["failure"] = None
    return metrics, limits


def _measured(dice: random.Random, limit: float, fails: bool, near: bool) -> float:
    whole = limit > 1
    if near:
        step = 0.5 if whole else 0.0001
        return round(limit + step, 4) if fails else limit
    part = dice.randint(1, 9) / 10
    value = limit * (1 + part if fails else 1 - part)
    return round(value) if whole else round(value, 4)


def smaller(
    metrics: dict[str, Any], limits: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Small limits; every value at 0, on its limit or above."""
    few = {"memory_mb": 1, "bubble_ratio": 0.1, "communication_ratio": 0.2}
    pairs = [(value, few[limit]) for value, limit in LIMITED.values()]
    rest = {key: value for key, value in metrics.items() if key not in ("ranks", "name")}
    for factors in itertools.product((0, 1, 2), repeat=len(pairs)):
        measured = {
            value: limit * factor for (value, limit), factor in zip(pairs, factors, strict=True)
        }
        for throughput in sorted({0, 1, metrics["throughput"]}):
            small = {"name": "r", **rest, **measured, "throughput": throughput}
            yield small, few
            yield {key: value for key, value in small.items() if key != "failure"}, few


def keeps(rule: str, arguments: tuple[Any, ...], expected: Any) -> bool:
    if rule == "fresh":
        rules = ("memory",) * len(arguments)
        return len(arguments) > 1 and all(map(keeps, rules, arguments, expected))
    metrics, limits = arguments
    for value, limit in LIMITED.values():
        if not (is_number(metrics[value]) and is_number(limits[limit]) and limits[limit] > 0):
            return False
    failed = expected["gate_failures"]
    if not metrics["name"] or not is_number(metrics["throughput"]):
        return False
    if not isinstance(metrics.get("failure"), str | dict | None):
        return False
    if rule == "copy":
        return True
    if rule == "several":
        return len(failed) > 1
    if rule == "edge":
        return _hairs(metrics, limits)
    return failed in ([], [rule])


def _hairs(metrics: dict[str, Any], limits: dict[str, Any]) -> bool:
    """Whether every value stands on its limit or a hair above."""
    return all(
        0 <= metrics[value] - limits[limit] <= (0.5 if limits[limit] > 1 else 0.00011)
        for value, limit in LIMITED.values()
    )
