"""Makes a failing case small: fewer entries, shorter lists, smaller numbers, still failing.

Works in rounds. A round proposes every smaller variant of the case at hand, calls them all at
once, and goes on with the smallest that still fails. The number of rounds and of calls a round is
bounded, whatever the student's function does.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.types import Result

ROUNDS, BATCH = 6, 120
RANKS_ROUNDS, RANKS_BATCH = 2, 10  # a run on ranks costs a hundred times as much as a call

MOST = 4000  # variants that a round looks at

# Calls cases in the sandbox: one result a case, in order; fewer where it ended early.
Call = Callable[[Sequence[Case]], Sequence[Result]]
# Whether the case is admissible and of its rule, with the solution's result for it; else None.
Expect = Callable[[Case], Result | None]
# Whether a case came out wrong: case, expected, got.
Fails = Callable[[Case, Result, Result | None], bool]
# The lesson's own steps from arguments to smaller ones.
Steps = Callable[[tuple[Any, ...]], Iterable[tuple[Any, ...]]]


def shrink(
    case: Case,
    expected: Result,
    got: Result | None,
    call: Call,
    expect: Expect,
    fails: Fails,
    steps: Steps = lambda arguments: (),
) -> tuple[Case, Result, Result | None]:
    """The smallest failing case found, with its results; the one given where none is smaller."""
    best = (case, expected, got)
    for _ in range(RANKS_ROUNDS if case.call == "run_ranks" else ROUNDS):
        smaller = _round(best[0], call, expect, fails, steps)
        if smaller is None:
            break
        best = smaller
    return best


def _round(
    case: Case, call: Call, expect: Expect, fails: Fails, steps: Steps
) -> tuple[Case, Result, Result | None] | None:
    proposed: list[tuple[Case, Result]] = []
    batch = RANKS_BATCH if case.call == "run_ranks" else BATCH
    for arguments in _sorted(case.arguments, steps(case.arguments)):
        variant = replace(case, arguments=arguments)
        right = expect(variant)
        if right is not None:
            proposed.append((variant, right))
        if len(proposed) == batch:
            break
    if not proposed:
        return None
    results = list(call([variant for variant, _ in proposed]))
    for index, (variant, right) in enumerate(proposed):
        got = results[index] if index < len(results) else None
        if got is not None and fails(variant, right, got):
            return variant, right, got
    return None


def size(value: Any) -> tuple[int, int]:
    """How large plain data is: leaves and containers, then digits and letters."""
    if isinstance(value, dict):
        parts = [size(item) for item in value.values()]
        return 1 + sum(one for one, _ in parts), sum(two for _, two in parts) + len(value)
    if isinstance(value, list | tuple):
        parts = [size(item) for item in value]
        return 1 + sum(one for one, _ in parts), sum(two for _, two in parts)
    if isinstance(value, bool) or value is None:
        return 1, 0
    if isinstance(value, int | float):
        return 1, min(int(abs(value) * 2), 10**9) + len(repr(value))
    if isinstance(value, str):
        return 1, len(value)
    return 1 + getattr(value, "numel", lambda: 1)(), 0


def _sorted(arguments: tuple[Any, ...], steps: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Variants smaller than the arguments, the smallest first, each once."""
    limit = size(arguments)
    seen: dict[str, tuple[tuple[int, int], tuple[Any, ...]]] = {}
    for variant in islice(chain(steps, _variants(arguments)), MOST):
        measure = size(variant)
        if measure < limit:
            seen.setdefault(repr(variant), (measure, variant))
    return [variant for _, variant in sorted(seen.values(), key=lambda pair: pair[0])]


def _variants(arguments: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """One step smaller in one place, and in all numbers of a dict at once."""
    for index, argument in enumerate(arguments):
        for smaller in _smaller(argument):
            yield (*arguments[:index], smaller, *arguments[index + 1 :])


def _smaller(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from _smaller_dict(value)
    elif isinstance(value, list | tuple):
        yield from _smaller_list(value)
    elif isinstance(value, bool) or value is None:
        return
    elif isinstance(value, int | float):
        yield from _smaller_number(value)
    elif isinstance(value, str) and len(value) > 1:
        yield value[0]


def _smaller_dict(value: dict[Any, Any]) -> Iterator[dict[Any, Any]]:
    for key in value:
        yield {other: item for other, item in value.items() if other != key}
    for key, item in value.items():
        for smaller in _smaller(item):
            yield {**value, key: smaller}
    numbers = [key for key, item in value.items() if type(item) is int and item > 1]
    for first in numbers:  # a pair at once: 30 heads over 3 to 10 over 1
        for second in numbers:
            if first < second:
                for one in _few(value[first]):
                    for two in _few(value[second]):
                        yield {**value, first: one, second: two}


def _smaller_list(value: Any) -> Iterator[Any]:
    kind = type(value)
    if len(value) > 2:
        half = len(value) // 2
        yield kind(value[:half])
        yield kind(value[half:])
    for index in range(len(value)):
        yield kind([*value[:index], *value[index + 1 :]])
    for index, item in enumerate(value):
        for smaller in _smaller(item):
            yield kind([*value[:index], smaller, *value[index + 1 :]])


def _smaller_number(value: float) -> Iterator[float]:
    if type(value) is int:
        yield from _few(value)
        yield from (n for n in (3, 4, 5, 6, value // 2, value - 1) if 0 <= n < value)
    elif value == value and abs(value) != float("inf"):
        yield from (type(value)(n) for n in (0.0, 0.5, 1.0, round(value, 1), round(value, 2)))


def _few(value: int) -> tuple[int, ...]:
    return tuple(n for n in (0, 1, 2) if n < value)
