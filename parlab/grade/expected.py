"""What is right: the solution's results, computed in the grader's own process."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.types import Result
from parlab.lesson.judged import judged


def expect(function: Callable[..., Any], cases: Sequence[Case]) -> tuple[Result, ...]:
    """The trusted function's results, one a case: ``("value", …)`` or ``("raised", type name)``."""
    return tuple(_one(function, case) for case in cases)


def _one(function: Callable[..., Any], case: Case) -> Result:
    arguments = deepcopy(case.arguments)
    try:
        if case.call == "run_ranks":
            from parlab.lesson import rank_threads

            run = rank_threads.run_ranks(arguments[0], function, *arguments[1:])
            return ("value", list(run.results))
        if case.call == "kept":
            return ("value", [function(*given) for given in arguments])
        if case.call == "judged":
            return ("value", judged(function, *arguments))
        return ("value", function(*arguments))
    except Exception as error:
        return ("raised", type(error).__name__)
