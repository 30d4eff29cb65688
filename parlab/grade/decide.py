"""Decides, in the grader's own process, what a TODO is worth and what a submission's status is."""

from collections.abc import Iterable, Mapping, Sequence

from parlab.grade.cases import Case, Rule
from parlab.grade.graded import RuleResult, TodoResult
from parlab.grade.relations import RELATIONS
from parlab.grade.types import STATUSES, CallOutcome, Rebuilt, Result, RunOutcome

# Kinds of result that hold what the function returned.
RETURNED = ("value", "changed_input")
# Why there was no function to call, though an answer was there.
_NO_FUNCTION = ("syntax", "source_raised", "not_defined")


def right(case: Case, expected: Result, got: Result | None) -> bool:
    """Whether a case came out right.

    A value is compared by the case's relation; where the solution raises, the exception's type
    counts. Whatever is missing or unknown is wrong. A changed input is judged by its own rule.
    """
    if got is None or not got:
        return False
    if expected[0] == "raised":
        return bool(got[0] == "raised" and got[1] == expected[1])
    if got[0] not in RETURNED:
        return False
    return RELATIONS[case.compare](got[1], expected[1], case.options)


def judge(
    rules: Sequence[Rule],
    cases: Sequence[Case],
    expected: Sequence[Result],
    outcome: CallOutcome,
) -> tuple[tuple[RuleResult, ...], list[int]]:
    """The rules' results, and the indices of the cases that came out wrong.

    Fewer results than cases: those that are missing are wrong. Where no rule speaks of the input,
    a case that changed it is wrong.
    """
    got = [*outcome.results, *[None] * len(cases)][: len(cases)]
    speaks = any(rule.about_input for rule in rules)
    wrong = [
        index
        for index, case in enumerate(cases)
        if not right(case, expected[index], got[index]) or (not speaks and _changed(got[index]))
    ]
    results = _own(rules, cases, wrong)
    kept = sum(result is not None and bool(result) and not _changed(result) for result in got)
    counts = any(result.passed for result in results.values())
    for rule in rules:
        if rule.about_input:
            passed = counts and kept == len(cases)
            results[rule.key] = RuleResult(rule.key, rule.weight, kept, len(cases), passed)
    return tuple(results[rule.key] for rule in rules), wrong


def never_called(outcome: CallOutcome) -> bool:
    """Whether the answer's own cell left nothing to call: of the rules nothing is known."""
    if outcome.status or not outcome.results:
        return False
    return all(result[0] == "missing" and result[1] in _NO_FUNCTION for result in outcome.results)


def changed_inputs(outcome: CallOutcome) -> list[int]:
    """The indices of the cases that changed their input."""
    return [index for index, result in enumerate(outcome.results) if _changed(result)]


def _changed(result: Result | None) -> bool:
    return bool(result) and result is not None and result[0] == "changed_input"


def _own(
    rules: Sequence[Rule], cases: Sequence[Case], wrong: Sequence[int]
) -> dict[str, RuleResult]:
    """The results of the rules that have cases of their own."""
    failed = [cases[index].rule for index in wrong]
    results = {}
    for rule in rules:
        if not rule.about_input:
            total = sum(case.rule == rule.key for case in cases)
            good = total - failed.count(rule.key)
            passed = total > 0 and good == total
            results[rule.key] = RuleResult(rule.key, rule.weight, good, total, passed)
    return results


def share(results: Sequence[RuleResult]) -> float:
    """The part of a TODO's points that its rules earn, 0 to 1."""
    whole = sum(result.weight for result in results)
    earned = sum(result.weight for result in results if result.passed)
    return earned / whole if whole else 0.0


def status_of(rebuilt: Rebuilt, run: RunOutcome | None, todos: Sequence[TodoResult]) -> str:
    """The first status that applies, in the order of `STATUSES`.

    A status that is none of `STATUSES` counts as the grader's own error.
    """
    found = {rebuilt.status, run.status if run else None}
    found |= {todo.trouble for todo in todos}
    if any(todo.state == "missing" for todo in todos):
        found.add("missing_answers")
    if any(todo.state == "stub" for todo in todos):
        found.add("unfinished")
    if any(status is not None and status not in STATUSES for status in found):
        return "grader_error"
    full = bool(todos) and all(todo.share == 1 for todo in todos)
    return first_of([*found, "ok" if full else "partial"])


def first_of(found: Iterable[str | None]) -> str:
    """The first of `STATUSES` that is among these; there must be one."""
    present = set(found)
    return next(status for status in STATUSES if status in present)


def points_of(shares: Sequence[float | None], points: Mapping[int, float]) -> list[float | None]:
    """Points per TODO, rounded to 0.01; None stays None."""
    outs = [points[number] for number in sorted(points)]
    return [
        None if part is None else round(part * out_of + 1e-9, 2)
        for part, out_of in zip(shares, outs, strict=True)
    ]
