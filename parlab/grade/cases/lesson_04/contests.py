"""TODO 3: candidates of whom one must win, by a hair."""

import itertools
import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_04.numbers import is_number
from parlab.grade.cases.lesson_04.rules import EACH

MEASURED = ("throughput", "communication_ratio", "peak_memory_mb")


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    for _ in range(EACH):
        yield _contest("throughput", dice, _lead(dice, 0))
        yield _contest("communication", dice, _lead(dice, 1))
        yield _contest("memory", dice, _lead(dice, 2))
        yield _contest("eligible", dice, _lead(dice, 0, barred=2))
    for number in range(EACH):
        barred = [(*_values(dice), False) for _ in range(number % 5)]
        only = [(*_values(dice), True)] if number % 2 else []
        yield _contest("nobody", dice, barred + only)


def _values(dice: random.Random) -> tuple[float, float, float]:
    """Throughput, communication ratio and peak memory, with 1 to 6 digits."""
    return (
        dice.choice([dice.randrange(5, 200_000), dice.randrange(5, 999) / 2]),
        dice.choice([0.0, dice.randrange(1, 90) / 100, dice.randrange(1, 9000) / 10_000]),
        dice.choice([dice.randrange(80, 120_000), dice.randrange(80, 999) / 2]),
    )


def _lead(
    dice: random.Random, decided_by: int, barred: int = 0
) -> list[tuple[float, float, float, bool]]:
    """A winner by a hair at ``decided_by``, its rivals far better in what comes after."""
    throughput, ratio, memory = _values(dice)
    if dice.random() < 0.5:  # so that text in place of numbers comes out wrong
        ratio, memory = 0.00005, 10 ** dice.randint(2, 5) - 0.5
    field = [(throughput, ratio, memory, True)]
    for step in range(1, 4):
        rival = (throughput, ratio, memory)
        if decided_by == 0:
            rival = (throughput - step / 1000, 0.00005 * step, memory / (step + 1))
        elif decided_by == 1:
            rival = (throughput, round(ratio + step / 10_000, 6), memory / (step + 1))
        else:
            rival = (throughput, ratio, memory + step / 2)
        field.append((*rival, True))
    for step in range(barred):
        field.append((throughput * (step + 2), ratio, memory / 2, False))
    return field


def _contest(rule: str, dice: random.Random, field: list[tuple[float, float, float, bool]]) -> Case:
    names = dice.sample([f"pp{i}_tp{j}" for i in range(1, 5) for j in range(1, 5)], len(field))
    candidates = [
        {
            "name": name,
            "throughput": throughput,
            "communication_ratio": ratio,
            "peak_memory_mb": memory,
            "eligible": eligible,
            "ranks": [{"peak_mb": memory}],
        }
        for name, (throughput, ratio, memory, eligible) in zip(names, field, strict=True)
    ]
    dice.shuffle(candidates)
    return Case(rule, (candidates,))


def smaller(candidates: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """One to three of them, without extras; then with small numbers in the same order."""
    plain = [{key: item[key] for key in ("name", *MEASURED, "eligible")} for item in candidates]
    for count in (1, 2, 3):
        for some in itertools.combinations(plain, count):
            named = [{**item, "name": name} for item, name in zip(some, "abc", strict=False)]
            yield named
            yield _ranked(named)


def _ranked(candidates: list[dict[str, Any]]) -> list[dict[str, Any]]:
    units = {"throughput": 1, "communication_ratio": 0.1, "peak_memory_mb": 1}
    orders = {key: sorted({item[key] for item in candidates}) for key in MEASURED}
    return [
        {
            **item,
            **{key: round(units[key] * (orders[key].index(item[key]) + 1), 1) for key in MEASURED},
        }
        for item in candidates
    ]


def keeps(rule: str, arguments: tuple[Any, ...], expected: Any) -> bool:
    (candidates,) = arguments
    able = [item for item in candidates if item["eligible"] is True]
    barred = [item for item in candidates if item["eligible"] is False]
    names = [item["name"] for item in candidates]
    marks = [tuple(item[key] for key in MEASURED) for item in candidates]
    if len(able) + len(barred) != len(candidates) or len(set(names)) != len(names):
        return False
    if not all(names) or not all(is_number(value) for mark in marks for value in mark):
        return False
    ranks = [tuple(item[key] for key in MEASURED) for item in able]
    if len(set(ranks)) != len(ranks):
        return False  # a complete tie: the lesson leaves it open
    if rule == "nobody":
        return len(able) < 2
    if len(able) < (1 if rule == "eligible" else 2):
        return False
    if rule == "eligible":
        return bool(barred)
    return _decided_by(rule, able, expected["candidate"])


def _decided_by(rule: str, able: list[dict[str, Any]], winner: str) -> bool:
    """Whether the winner's nearest rival loses at this level, and at none before."""
    level = {"throughput": 0, "communication": 1, "memory": 2}[rule]
    best = next(item for item in able if item["name"] == winner)
    return all(item[key] == best[key] for item in able for key in MEASURED[:level]) and all(
        item is best or item[MEASURED[level]] != best[MEASURED[level]] for item in able
    )
