"""What is right: the solution's results, computed in the grader's own process."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.here import run_here
from parlab.grade.inside.gradients import backward
from parlab.grade.types import Result
from parlab.lesson.judged import judged


def expect(function: Callable[..., Any], cases: Sequence[Case]) -> tuple[Result, ...]:
    """The trusted function's results, one a case: ``("value", …)`` or ``("raised", type name)``."""
    known: dict[object, Result] = {}
    for case in cases:
        if same_run(case) not in known:
            known[same_run(case)] = _one(function, case)
    return tuple(known[same_run(case)] for case in cases)


def same_run(case: Case) -> object:
    """Equal for cases on ranks that are one run, of which each rule looks at its own part."""
    return (case.ranks, repr(case.arguments)) if case.call == "run_ranks" else id(case)


def _one(function: Callable[..., Any], case: Case) -> Result:
    arguments = deepcopy(case.arguments)
    try:
        if case.call == "run_ranks":
            assert case.ranks, "a case on ranks says what each gets"
            return run_here(function, case.ranks(*arguments))[:2]
        if case.call == "backward":
            return ("value", backward(function, *arguments))
        if case.call == "kept":
            return ("value", [function(*given) for given in arguments])
        if case.call == "judged":
            return ("value", judged(function, *arguments))
        return ("value", function(*arguments))
    except Exception as error:
        return ("raised", type(error).__name__)
