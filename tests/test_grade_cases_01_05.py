"""What the generated cases of lessons 01 and 05 make of right, wrong, stub and constant answers."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import nbformat
import pytest
from grade_fakes import call_one, load
from lessons import ROOT, Answer, answered, answers, cell
from lessons import load as load_notebook
from sandboxed import warm

from parlab.grade import decide
from parlab.grade.cases import Case, find
from parlab.grade.counterexample import word
from parlab.grade.course import load_course
from parlab.grade.exam import Exam, prepare
from parlab.grade.limits import Limits
from parlab.grade.real import RealParts
from parlab.grade.shrink import BATCH, shrink, size
from parlab.grade.types import CallOutcome, Result
from parlab.grade.warm import RunContext, Warm
from parlab.lesson.judged import judged
from parlab.lesson.time_limit import OutOfTime, TimeLimit

pytestmark = pytest.mark.slow

__all__ = ["warm"]
LESSONS = {
    "01_pipeline_parallel": {1: "split_layers", 2: "one_f_one_b", 3: "simulate"},
    "05_multi_gpu_experiments": {1: "split_rank_step", 2: "step_ratios", 3: "complete_record"},
}
TODOS = [(lesson, todo) for lesson, functions in LESSONS.items() for todo in functions]
SAMPLES = [answer for lesson in LESSONS for answer in answers(lesson)]
RIGHT = [answer for answer in SAMPLES if answer.right]
WRONG = [answer for answer in SAMPLES if not answer.right]
# What lesson 05's set-up cell imports for its answers.
SETUP = (
    "from copy import deepcopy\nfrom parlab.lesson.intervals import minus, total, union, within\n"
)
SLOW = ("every_split", "never_ends", "deadlock_loops_for_ever")
SLOW_CALLS = 2  # as `parlab.grade.calls` gives up
TOO_SLOW: Result = ("missing", "slow", "")


@cache
def exam(lesson: str, seed: int = 1) -> Exam:
    return prepare(ROOT, lesson, LESSONS[lesson], seed)


def run(source: str, function: str, cases: Sequence[Case], seconds: float = 3) -> CallOutcome:
    """As the sandbox does it: a slow call is ended, and after two of them no more are made."""
    return CallOutcome(0, tuple(_results(load(SETUP + source, function), cases, seconds)))


def _results(function: object, cases: Sequence[Case], seconds: float) -> Iterator[Result]:
    slow = 0
    for number, case in enumerate(cases):
        limit = TimeLimit(seconds)
        try:
            with limit:
                result = _call(function, case)
        except OutOfTime:
            limit.stop()
            result, slow = TOO_SLOW, slow + 1
        yield result
        if slow == SLOW_CALLS:
            yield from [TOO_SLOW] * (len(cases) - number - 1)
            return


def _call(function: object, case: Case) -> Result:
    assert callable(function)
    if case.call != "judged":
        return call_one(function, case)
    return call_one(lambda *given: judged(function, *given), replace(case, call="call"))


def result_of(answer: Answer, seed: int = 1) -> tuple[set[str], list[int], CallOutcome]:
    """The rules that an answer does not meet, its wrong cases, what came back."""
    given, todo = exam(answer.lesson, seed), answer.todo
    seconds = 0.5 if answer.name in SLOW else 3
    outcome = run(answer.source, given.functions[todo], given.cases[todo], seconds)
    rules, wrong = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], outcome)
    return {rule.key for rule in rules if not rule.passed}, wrong, outcome


@pytest.mark.parametrize("answer", RIGHT, ids=str)
def test_a_right_answer_in_any_style_meets_every_rule(answer: Answer) -> None:
    for seed in (1, 2):
        broken, wrong, outcome = result_of(answer, seed)
        given = exam(answer.lesson, seed)
        shown = [(given.cases[answer.todo][i], outcome.results[i]) for i in wrong[:1]]
        assert not broken, shown


@pytest.mark.parametrize("answer", WRONG, ids=str)
def test_a_wrong_answer_does_not_get_all_points(answer: Answer) -> None:
    broken, _, _ = result_of(answer)
    assert broken


@pytest.mark.parametrize(
    ("lesson", "todo", "name", "lost"),
    [
        ("01", 1, "first_split_within_the_limit", {"squares", "first", "whole", "edges", "large"}),
        ("01", 1, "best_of_each_part", {"whole", "large"}),
        ("01", 1, "last_in_the_dictionary", {"first", "edges", "large"}),
        ("01", 1, "every_split", {"large"}),
        ("01", 2, "gpipe", {"warm_up", "alternate", "few", "single"}),
        ("01", 2, "too_few_microbatches_forgotten", {"few", "single"}),
        ("01", 2, "two_forwards_two_backwards", {"alternate", "few", "single"}),
        ("01", 3, "transfer_forgotten", {"transfer", "two_stages"}),
        ("01", 3, "transfer_on_the_same_rank_too", {"transfer", "two_stages"}),
        ("01", 3, "only_gaps_between_steps", {"rank_bubbles"}),
        ("01", 3, "the_worst_rank_as_a_whole", {"bubble"}),
        ("01", 3, "last_step_of_rank_0", {"makespan", "rank_bubbles", "bubble"}),
        ("01", 3, "in_flight_of_1f1b_always", {"in_flight"}),
        ("01", 3, "deadlock_raises", {"deadlock"}),
        ("01", 3, "deadlock_loops_for_ever", {"deadlock"}),
        ("01", 3, "finished_ranks_left_out", {"deadlock"}),
        ("01", 3, "starts_only", {"waits", "transfer", "two_stages"}),
        ("01", 3, "uses_up_the_orders", {"unchanged"}),
        ("01", 3, "in_flight_until_w", {"in_flight"}),
        ("01", 3, "w_ends_in_flight_too", {"in_flight"}),
        ("01", 3, "rank_of_a_stage_by_remainder", {"two_stages"}),
        ("01", 3, "stages_of_a_rank_are_neighbours", {"two_stages"}),
        ("05", 1, "ring_forgotten", {"exposed"}),
        ("05", 1, "waiting_before_exposed", {"waiting", "together"}),
        ("05", 1, "no_work_breaks_it", {"no_work"}),
        ("05", 1, "not_cut_to_the_step", {"step", "together", "no_work"}),
        ("05", 2, "rounded", {"average", "edges", "denominator", "clocks"}),
        ("05", 2, "without_the_offset", {"clocks"}),
        ("05", 2, "own_window_as_denominator", {"edges", "denominator", "clocks"}),
        ("05", 2, "moves_the_clocks_of_the_input", {"unchanged"}),
        ("05", 3, "nodes_decide_on_cpu_too", {"level", "crowded"}),
        ("05", 3, "gpu_is_single_node", {"level"}),
        ("05", 3, "cores_of_one_machine", {"crowded"}),
        ("05", 3, "across_levels", {"comparable"}),
        ("05", 3, "across_workloads", {"comparable"}),
        ("05", 3, "no_reasons", {"reasons"}),
        ("05", 3, "reason_overwritten", {"reasons"}),
        ("05", 3, "reason_without_the_kind", {"reasons"}),
        ("05", 3, "all_0_after_a_failure", {"gates"}),
        ("05", 3, "unmeasured_is_runtime", {"unmeasured"}),
        ("05", 3, "judge_without_the_failure", {"judge"}),
        ("05", 3, "changes_the_run", {"unchanged"}),
    ],
)
def test_a_mistake_costs_the_rules_that_it_breaks(
    lesson: str, todo: int, name: str, lost: set[str]
) -> None:
    (answer,) = [a for a in SAMPLES if (a.lesson[:2], a.todo, a.name) == (lesson, todo, name)]
    assert result_of(answer)[0] == lost


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_the_stub_earns_nothing(lesson: str, todo: int) -> None:
    given = exam(lesson)
    source = cell(load_notebook("notebooks", lesson, "zh"), f"todo-{todo}").source
    outcome = run(source, given.functions[todo], given.cases[todo])
    rules, _ = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], outcome)
    assert decide.share(rules) == 0


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_a_constant_answer_earns_nothing(lesson: str, todo: int) -> None:
    given = exam(lesson)
    cases, expected = given.cases[todo], given.expected[todo]
    for constant in {repr(result): result for result in expected}.values():
        outcome = CallOutcome(todo, (constant,) * len(cases))
        rules, _ = decide.judge(given.rules[todo], cases, expected, outcome)
        assert decide.share(rules) == 0, [rule.key for rule in rules if rule.passed]


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_cases_are_the_same_for_a_seed_and_differ_between_seeds(lesson: str, todo: int) -> None:
    module = find(lesson)
    assert module.cases(todo, 5) == module.cases(todo, 5) != module.cases(todo, 6)


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_weights_add_up_and_there_are_about_a_hundred_cases(lesson: str, todo: int) -> None:
    given = exam(lesson)
    assert sum(rule.weight for rule in given.rules[todo]) == 10
    assert 60 <= len(given.cases[todo]) <= 150


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("seed", range(12))
def test_every_case_is_admissible(lesson: str, seed: int) -> None:
    given = prepare(ROOT, lesson, LESSONS[lesson], seed)
    for todo, cases in given.cases.items():
        for case in cases:
            assert given.right_for(todo, case) is not None, (todo, case)


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_the_solution_takes_about_a_second(lesson: str, todo: int) -> None:
    given = exam(lesson)
    begun = time.process_time()
    for case in given.cases[todo]:
        _call(given.solution[todo], case)
    assert time.process_time() - begun < 1.5


@pytest.mark.parametrize("answer", [a for a in WRONG if a.name not in SLOW], ids=str)
def test_a_counterexample_is_small_and_still_fails(answer: Answer) -> None:
    given, todo = exam(answer.lesson), answer.todo
    _, wrong, outcome = result_of(answer)
    if not wrong:
        pytest.skip("it only changes its input")
    function = load(SETUP + answer.source, given.functions[todo])

    def call(cases: Sequence[Case]) -> list[Result]:
        assert len(cases) <= BATCH
        return list(_results(function, cases, 3))

    first = given.cases[todo][wrong[0]]
    case, expected, got = shrink(
        first,
        given.expected[todo][wrong[0]],
        outcome.results[wrong[0]],
        call,
        lambda case: given.right_for(todo, case),
        lambda case, right, got: not decide.right(case, right, got),
        lambda arguments: given.module.smaller(todo, arguments),
    )
    assert not decide.right(case, expected, got)
    assert given.right_for(todo, case) == expected
    assert size(case.arguments) <= size(first.arguments)
    shown = word(given.functions[todo], answer.source, case, expected, got)
    assert shown.call.startswith(given.functions[todo]) and shown.expected
    assert shown.expected != shown.actual, shown


# ------------------------------------------------------------------------------ in the sandbox


def called(
    answer: Answer | None, lesson: str, todo: int, warm: Warm, seconds: float | None = None
) -> tuple[CallOutcome, float, set[str]]:
    """An answer, or the solution's, in the sandbox: what came back, its share, the rules lost."""
    given, book = exam(lesson), answered(lesson, "zh", [1, 2, 3])
    if answer:
        head = f"# TODO {todo} · {given.functions[todo]}\n"
        cell(book, f"todo-{todo}").source = head + answer.source
    parts = RealParts(load_course(ROOT, lesson), RunContext(warm, limits=Limits()))
    cases = given.cases[todo]
    if seconds:
        cases = [replace(case, seconds=seconds) for case in cases]
    outcome = parts.call(parts.rebuild(nbformat.writes(book).encode()), todo, cases)
    rules, _ = decide.judge(given.rules[todo], cases, given.expected[todo], outcome)
    return outcome, decide.share(rules), {rule.key for rule in rules if not rule.passed}


@pytest.mark.parametrize(("lesson", "todo"), TODOS)
def test_the_solution_scores_full_in_the_sandbox(lesson: str, todo: int, warm: Warm) -> None:
    outcome, share, lost = called(None, lesson, todo, warm)
    assert (outcome.status, share, lost) == (None, 1, set())


@pytest.mark.parametrize(
    ("name", "status", "lost"),
    [
        ("every_split", None, {"large"}),
        ("deadlock_loops_for_ever", None, {"deadlock"}),
        ("never_ends", "timeout", {"warm_up", "each_once", "alternate", "few", "single"}),
    ],
)
def test_a_slow_answer_loses_what_it_does_not_finish_and_costs_little(
    name: str, status: str | None, lost: set[str], warm: Warm
) -> None:
    (answer,) = [a for a in SAMPLES if a.name == name]
    outcome, _, broken = called(answer, answer.lesson, answer.todo, warm, seconds=0.4)
    assert (outcome.status, broken) == (status, lost)
    assert outcome.results.count(TOO_SLOW) >= SLOW_CALLS
    assert len(outcome.results) == len(exam(answer.lesson).cases[answer.todo])


@pytest.mark.parametrize("name", ["right", "judge_without_the_failure"])
def test_a_judge_is_handed_to_the_answer_in_the_sandbox(name: str, warm: Warm) -> None:
    (answer,) = [a for a in SAMPLES if a.name == ("helpers" if name == "right" else name)]
    _, _, lost = called(answer, answer.lesson, 3, warm)
    assert lost == (set() if name == "right" else {"judge"})
