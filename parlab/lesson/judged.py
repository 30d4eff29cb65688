"""Calls a function that asks a judge, and says what the judge was handed."""

from collections.abc import Callable, Sequence
from typing import Any

from parlab.lesson.record_cases import Record, a_judge


def judged(
    function: Callable[..., Any], run: Record, baseline: Record | None, failures: Sequence[str]
) -> dict[str, Any]:
    """What ``function(run, baseline, judge)`` returned, and the judge's last call.

    Args:
        function: lesson 05's ``complete_record``, or an answer to it.
        run: what is to be completed.
        baseline: the run of one process, if there is one.
        failures: what the judge says each time.

    Returns:
        ``record``: the result; ``handed``: the metrics and limits of the last call as a pair in a
        list, which is empty where the judge was not asked.
    """
    judge, seen = a_judge(*failures)
    return {"record": function(run, baseline, judge), "handed": seen[-1:]}
