"""Relations for answers that leave some freedom: measured numbers, orders, parts, records.

As in `relations`, what is compared is plain data, and nothing of a student's is called.
"""

import math
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

from parlab.lesson.nearly import TOLERANCE, nearly
from parlab.lesson.record_cases import MISSING, look
from parlab.lesson.trace_cases import agrees, tidied

Options = Mapping[str, Any]
Relation = Callable[[object, object, Options], bool]


def _bounded(relation: Relation) -> Relation:
    """Numbers too large to be compared with a float are wrong, and no error."""

    @wraps(relation)
    def bounded(got: object, expected: object, options: Options) -> bool:
        try:
            return relation(got, expected, options)
        except OverflowError:
            return False

    return bounded


@_bounded
def measured(got: object, expected: object, options: Options) -> bool:
    """Of two dicts the entries ``keys``, rounding aside; an int may stand for a float.

    A tuple of the solution's may come as a list, a list not as a tuple.
    """
    if type(got) is not dict or type(expected) is not dict:
        return False
    return all(key in got and _near(got[key], expected[key]) for key in options["keys"])


def _near(got: object, expected: object) -> bool:
    if isinstance(expected, list | tuple):
        return (
            isinstance(got, list | tuple)
            and type(got) in (list, type(expected))
            and len(got) == len(expected)
            and all(map(_near, got, expected))
        )
    if type(got) not in (int, float) or not isinstance(got, int | float):
        return False
    assert isinstance(expected, int | float), expected
    return math.isclose(got, expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def steps(got: object, expected: object, options: Options) -> bool:
    """An order of steps ``(kind, …, number)``, as far as the option ``look`` says.

    ``first``: how many steps there are before the first backward, and what they are; ``each``:
    the forwards by themselves, and the backwards by themselves; ``all``: everything.
    """
    if type(got) is not list or type(expected) is not list or not all(map(_is_step, got)):
        return False
    if options["look"] == "first":
        return bool(_until_backward(got) == _until_backward(expected))
    if options["look"] == "each":
        lanes = [[[s for s in side if s[0] == kind] for kind in "FB"] for side in (got, expected)]
        return len(got) == len(expected) and bool(lanes[0] == lanes[1])
    return bool(got == expected)


def _is_step(step: object) -> bool:
    return (
        isinstance(step, tuple)
        and len(step) == 3
        and type(step[0]) is str
        and all(type(number) is int for number in step[1:])
    )


def _until_backward(order: list[Any]) -> list[Any]:
    """The steps up to the first backward, which is the last of them."""
    place = next((place for place, step in enumerate(order) if step[0] == "B"), len(order))
    return order[: place + 1]


@_bounded
def parts(got: object, expected: object, options: Options) -> bool:
    """The parts of a rank's step, however their intervals are cut and sorted."""
    return isinstance(expected, dict) and agrees(got, tidied(expected))


@_bounded
def paths(got: object, expected: object, options: Options) -> bool:
    """What stands at ``paths`` such as ``record.metrics.mfu``, rounding aside."""
    return all(nearly(look(got, path), look(expected, path)) for path in options["paths"])


def explained(got: object, expected: object, options: Options) -> bool:
    """The reasons in a record: the given ones as they were, one in own words for each that lacks.

    A reason that the solution made up may be any sentence; where the run failed, one that holds
    the kind of the failure. Options: ``given``, texts that a run may bring along.
    """
    mine, theirs = (look(side, "record.reasons") for side in (got, expected))
    if type(mine) is not dict or type(theirs) is not dict or set(mine) != set(theirs):
        return False
    if any(type(reason) is not str or not reason.strip() for reason in mine.values()):
        return False
    kind = look(expected, "record.failure.kind")
    within = "" if kind == MISSING else kind
    return all(
        mine[key] == reason if reason in options["given"] else within in mine[key]
        for key, reason in theirs.items()
    )


def _entries(value: Any, options: Options) -> Any:
    if type(value) is not dict:
        return value
    return {key: value[key] for key in options["keys"] if key in value}


def _paths(value: Any, options: Options) -> Any:
    if type(value) is not dict or type(value.get("record")) is not dict:
        return value
    return {path.removeprefix("record."): look(value, path) for path in options["paths"]}


def _reasons(value: Any, options: Options) -> Any:
    return _paths(value, {"paths": ("record.failure", "record.metrics", "record.reasons")})


RELATIONS: Mapping[str, Relation] = {
    "measured": measured,
    "steps": steps,
    "parts": parts,
    "paths": paths,
    "explained": explained,
}
# What of a value is shown in a counterexample.
FOCUS: Mapping[str, Callable[[Any, Options], Any]] = {
    "measured": _entries,
    "paths": _paths,
    "explained": _reasons,
}
