"""Lessons 02 and 03 are graded: right answers get everything, wrong ones less, nobody can forge.

Every sample answer runs in this process, its ranks as threads at the ends of the grader's wire;
some run in the sandbox, each rank in a process of its own.
"""

import math
import time
import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from lessons import ROOT, Answer, answers
from sandboxed import warm

from parlab.grade import decide
from parlab.grade.calling import Answer as Source
from parlab.grade.calls import call_answer
from parlab.grade.cases import Case, find
from parlab.grade.counterexample import word
from parlab.grade.course import load_course
from parlab.grade.exam import Exam, prepare
from parlab.grade.here import run_here
from parlab.grade.inside.gradients import backward
from parlab.grade.limits import Limits
from parlab.grade.relations_ranks import near
from parlab.grade.shrink import BATCH, ROUNDS, shrink, size
from parlab.grade.sources import solution_sources
from parlab.grade.types import CallOutcome, Result
from parlab.grade.warm import RunContext, Warm
from parlab.lesson.attention import partial_attention, whole_attention

pytestmark = pytest.mark.slow

__all__ = ["warm"]

FUNCTIONS = {
    "02_tensor_parallel": {1: "column_parallel", 2: "row_parallel", 3: "parallel_block"},
    "03_context_parallel": {1: "head_tail", 2: "merge", 3: "ring_attention"},
}
EACH_TODO = [(lesson, todo) for lesson in FUNCTIONS for todo in FUNCTIONS[lesson]]
SAMPLES = [answer for lesson in FUNCTIONS for answer in answers(lesson)]
# A thread cannot be ended: these run in the sandbox only.
HANGING = ("rank_1_never_returns", "waits_for_a_missing_rank", "never_ends")
ENDING = [answer for answer in SAMPLES if answer.name not in HANGING]


@cache
def exam(lesson: str, seed: int = 1) -> Exam:
    return prepare(ROOT, lesson, FUNCTIONS[lesson], seed)


def load(lesson: str, todo: int, source: str) -> Callable[..., Any]:
    """The function of a source, beside what the lesson's set-up cell imports."""
    module = types.ModuleType("answer")
    beside = {"torch": torch, "F": F, "math": math, "whole_attention": whole_attention}
    module.__dict__.update(beside, partial_attention=partial_attention)
    if lesson.startswith("03"):
        module.__dict__["merge"] = exam(lesson).solution[2]
    exec(compile(source, "<answer>", "exec"), module.__dict__)
    return module.__dict__[FUNCTIONS[lesson][todo]]  # type: ignore[no-any-return]


def one(function: Callable[..., Any], case: Case) -> Result:
    """A result as the sandbox gives it."""
    if case.call == "run_ranks":
        assert case.ranks
        return run_here(function, case.ranks(*case.arguments), seconds=20)
    given = deepcopy(case.arguments) if case.call == "call" else case.arguments
    try:
        value = backward(function, *given) if case.call == "backward" else function(*given)
    except Exception as error:
        return ("raised", type(error).__name__, str(error), None)
    kept = repr(given) == repr(case.arguments)
    return ("value", value) if kept else ("changed_input", value, given)


def outcome(answer: Answer) -> CallOutcome:
    function = load(answer.lesson, answer.todo, answer.source)
    known: dict[object, Result] = {}
    results = []
    for case in exam(answer.lesson).cases[answer.todo]:
        key = (case.call, repr(case.arguments))
        if case.call != "run_ranks" or key not in known:
            known[key] = one(function, case)
        results.append(known[key])
    return CallOutcome(answer.todo, tuple(results))


def lost(answer: Answer, found: CallOutcome) -> set[str]:
    """The rules that an answer breaks."""
    given, todo = exam(answer.lesson), answer.todo
    rules, _ = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], found)
    return {rule.key for rule in rules if not rule.passed}


@pytest.mark.parametrize("answer", [a for a in ENDING if a.right], ids=str)
def test_a_right_answer_in_any_style_meets_every_rule(answer: Answer) -> None:
    assert lost(answer, outcome(answer)) == set()


@pytest.mark.parametrize("answer", [a for a in ENDING if not a.right], ids=str)
def test_a_wrong_answer_does_not_get_all_points(answer: Answer) -> None:
    assert lost(answer, outcome(answer))


def sample(lesson: str, todo: int, name: str) -> Answer:
    (found,) = [a for a in SAMPLES if (a.lesson[:2], a.todo, a.name) == (lesson[:2], todo, name)]
    return found


@pytest.mark.parametrize(
    ("lesson", "todo", "name", "broken"),
    [
        ("02", 1, "bias_forgotten", {"bias"}),
        ("02", 1, "view_of_non_contiguous", {"dims"}),
        ("02", 1, "whole_product_then_slice", {"block", "bias", "largest"}),
        ("02", 1, "padded_to_the_whole", {"largest"}),
        ("02", 2, "bias_divided", {"bias_gradient"}),
        ("02", 2, "bias_on_every_rank", {"bias", "bias_gradient"}),
        ("02", 3, "enter_for_each_projection", {"backward"}),
        ("02", 3, "enter_before_the_norm", {"norm_gradients"}),
        ("02", 3, "kv_heads_expanded_to_q_heads", {"blocks"}),
        ("02", 3, "bytes_forward_only", {"sent"}),
        ("03", 1, "tail_first", {"ascending"}),
        ("03", 1, "inverse_is_the_order", {"inverse"}),
        ("03", 2, "nan_covered_afterwards", {"blind_gradient"}),
        ("03", 2, "only_in_double", {"types"}),
        ("03", 3, "one_shift_too_many", {"shifts", "sent"}),
        ("03", 3, "hoards_the_blocks", {"largest", "skips"}),
        ("03", 3, "shift_without_gradient", {"dkv"}),
        ("03", 3, "only_queries_skipped", {"skips"}),
        ("03", 3, "collected_first", {"largest"}),
        ("03", 3, "collected_first_last_block_first", {"largest"}),
        ("03", 3, "kv_heads_repeated_on_arrival", {"load"}),
        ("03", 3, "kv_heads_indexed_on_arrival", {"load"}),
    ],
)
def test_a_mistake_costs_the_rules_that_it_breaks(
    lesson: str, todo: int, name: str, broken: set[str]
) -> None:
    answer = sample(lesson, todo, name)
    assert lost(answer, outcome(answer)) == broken


@pytest.mark.parametrize(("lesson", "todo"), EACH_TODO)
def test_the_stub_and_constants_earn_nothing(lesson: str, todo: int) -> None:
    given = exam(lesson)
    (stub,) = [item.stub["zh"] for item in load_course(ROOT, lesson).todos if item.number == todo]
    found = outcome(Answer(lesson, todo, False, "stub", "", stub))
    rules, _ = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], found)
    assert decide.share(rules) == 0
    for constant in given.expected[todo][::9]:
        found = CallOutcome(todo, (constant,) * len(given.cases[todo]))
        rules, _ = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], found)
        earned = {rule.key for rule in rules if rule.passed}
        assert not earned, earned


@pytest.mark.parametrize(("lesson", "todo"), EACH_TODO)
def test_cases_are_the_same_for_a_seed_and_differ_between_seeds(lesson: str, todo: int) -> None:
    module = find(lesson)
    one, two, three = (
        [(case.rule, repr(case.arguments)) for case in module.cases(todo, seed)]
        for seed in (5, 5, 6)
    )
    assert one == two != three


@pytest.mark.parametrize("seed", [0, 2, 3])
@pytest.mark.parametrize("lesson", FUNCTIONS)
def test_every_case_is_admissible(lesson: str, seed: int) -> None:
    given = exam(lesson, seed)
    for todo, cases in given.cases.items():
        for case, right in zip(cases, given.expected[todo], strict=True):
            assert right[0] == "value", (case, right)
            assert given.module.keeps(todo, case.rule, case.arguments, right), case


@pytest.mark.parametrize(
    ("lesson", "todo", "name"),
    [
        ("02", 1, "off_by_one_rank"),
        ("02", 2, "only_rank_0_sums"),
        ("02", 3, "no_enter_at_all"),
        ("03", 1, "next_half"),
        ("03", 2, "where_after_the_fact"),
        ("03", 3, "local_positions"),
    ],
)
def test_a_counterexample_is_small_and_says_where(lesson: str, todo: int, name: str) -> None:
    answer = sample(lesson, todo, name)
    given = exam(answer.lesson)
    function = load(answer.lesson, todo, answer.source)
    found = outcome(answer)
    _, wrong = decide.judge(given.rules[todo], given.cases[todo], given.expected[todo], found)
    first, rounds = wrong[0], 0

    def call(cases: Sequence[Case]) -> Iterator[Result]:
        nonlocal rounds
        rounds += 1
        assert len(cases) <= BATCH
        return iter([one(function, case) for case in cases])

    case, right, got = shrink(
        given.cases[todo][first],
        given.expected[todo][first],
        found.results[first],
        lambda cases: list(call(cases)),
        lambda case: given.right_for(todo, case),
        lambda case, right, got: not decide.right(case, right, got),
        lambda arguments: given.module.smaller(todo, arguments),
    )
    assert rounds <= ROUNDS
    assert size(case.arguments) <= size(given.cases[todo][first].arguments)
    said = word(FUNCTIONS[answer.lesson][todo], answer.source, case, right, got)
    assert said.call and said.expected and said.expected != said.actual
    if case.call == "run_ranks":
        assert "rank" in said.actual
    beside = {"torch": torch, FUNCTIONS[answer.lesson][todo]: given.solution[todo]}
    exec(said.call, beside)  # a learner can copy it


def test_rounding_is_near_and_infinity_is_not() -> None:
    x = torch.tensor([1.0, float("-inf")], dtype=torch.float64)
    assert near(x + 1e-12, x)
    assert not near(x + 1e-6, x)
    assert not near(torch.tensor([1.0, -1e30], dtype=torch.float64), x)
    assert not near(x.float(), x) and not near(x[None], x) and not near(None, x)
    assert not near(torch.tensor([1.0, float("nan")], dtype=torch.float64), x)


# ------------------------------------------------------------------------------- in the sandbox


def called(
    lesson: str, todo: int, source: str, warm: Warm, limits: Limits | None = None
) -> tuple[CallOutcome, set[str]]:
    """An answer's results in the sandbox, and the rules that it breaks."""
    course = load_course(ROOT, lesson)
    others = {
        item.function: Source(*solution_sources(course, item.number))
        for item in course.todos
        if item.number != todo and item.function in source
    }
    context = RunContext(warm, limits or Limits())
    given, names = exam(lesson), FUNCTIONS[lesson]
    cases = given.cases[todo]
    setup = [course.setup("zh")]
    found = call_answer(todo, names[todo], source, setup, cases, context, others)
    return found, lost(Answer(lesson, todo, False, "", "", source), found)


@pytest.mark.parametrize(("lesson", "todo"), EACH_TODO)
def test_the_solution_gets_everything_in_seconds(lesson: str, todo: int, warm: Warm) -> None:
    source, _ = solution_sources(load_course(ROOT, lesson), todo)
    exam(lesson)
    began = time.monotonic()
    found, broken = called(lesson, todo, source, warm)
    print(f"{lesson} TODO {todo}: {time.monotonic() - began:.2f} s")
    assert found.status is None and not broken, found.notes
    assert time.monotonic() - began < 15  # 1 to 2 on a machine that does nothing else


@pytest.mark.parametrize(
    "answer",
    [
        sample("02", 1, "column_by_column"),
        sample("02", 3, "fused_projections_and_sdpa"),
        sample("03", 3, "stacked_and_gathered_at_the_end"),
        sample("03", 3, "own_attention"),
        sample("02", 1, "view_of_non_contiguous"),
        sample("02", 2, "ranks_disagree"),
        sample("02", 3, "rank_0_skips_the_mlp"),
        sample("03", 2, "in_place"),
        sample("03", 3, "slices_overwritten"),
    ],
    ids=str,
)
def test_the_sandbox_finds_what_is_found_here(answer: Answer, warm: Warm) -> None:
    found, broken = called(answer.lesson, answer.todo, answer.source, warm)
    assert found.status is None
    assert broken == lost(answer, outcome(answer))


@pytest.mark.parametrize("answer", [a for a in SAMPLES if a.name in HANGING], ids=str)
def test_a_rank_that_never_returns_ends_in_seconds(answer: Answer, warm: Warm) -> None:
    exam(answer.lesson)
    began = time.monotonic()
    found, broken = called(answer.lesson, answer.todo, answer.source, warm)
    assert found.status == "timeout" and broken
    assert time.monotonic() - began < 20  # 3 s of CPU time


def test_a_block_may_call_the_row_parallel_layer(warm: Warm) -> None:
    source = sample("02", 3, "helpers_for_columns_and_rows").source.replace(
        'comm.all_reduce(mixed @ rows("wo"))', 'row_parallel(comm, mixed, weights["wo"], None)'
    )
    assert "row_parallel" in source
    found, broken = called("02_tensor_parallel", 3, source, warm)
    assert found.status is None and not broken


COLUMN = """
def column_parallel(comm, x, weight, bias):
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    {before}
    y = comm.enter(x) @ weight[:, mine]
    return y if bias is None else y + bias[mine]
"""


@pytest.mark.parametrize(
    ("before", "broken"),
    [
        # the log that a rank keeps is its own affair
        ("comm.all_gather(x); comm.comm.log.clear()", {"forward"}),
        ("comm.log = []; comm.comm.run = None", None),
        # what was read is what the grader handed out
        ("weight[:]; weight.reads.clear()", {"block"}),
        # nothing of the others' is here
        ("comm.comm._meeting", None),
        ("weight._whole", None),
        # its own account of its memory is a student's word: that rule alone can be lied about
        (
            "import parlab.lesson.largest_tensor as m; m.Largest.see = lambda *_: None;"
            "torch.zeros(10 ** 5)",
            {"largest"},
        ),
    ],
)
def test_what_was_sent_and_read_cannot_be_forged(
    before: str, broken: set[str] | None, warm: Warm
) -> None:
    found, lost_rules = called("02_tensor_parallel", 1, COLUMN.format(before=before), warm)
    assert found.status is None
    if broken is None:
        assert len(lost_rules) == len(exam("02_tensor_parallel").rules[1])
    else:
        assert broken <= lost_rules <= broken | {"bias", "largest"}


@pytest.mark.parametrize(
    ("before", "status"),
    [
        ("comm.comm._wire._pipe.send(['meet', 'steal', None, ['t']])", "tampered"),
        ("comm.comm._wire._pipe.send(['read', 'weight', ['l', 1, 2]])", "tampered"),
        ("comm.comm._wire._pipe.send(['done', ['d']])", "kernel_died"),
        ("comm.comm._wire._pipe.send(['meet', 'all_gather', 10**6, ['t']])", "tampered"),
        (
            "while True:\n        try: comm.all_reduce(x) if comm.rank else 1 / 0\n"
            "        except BaseException as e:\n            if isinstance(e, ZeroDivisionError):"
            " raise",
            "timeout",
        ),
        ("while True: weight[0]", "timeout"),
        ("import os; os._exit(1)", "kernel_died"),
        ("return torch.ones(10 ** 9)", "memory"),
    ],
)
def test_hostile_ranks_end_with_a_status(before: str, status: str, warm: Warm) -> None:
    limits = Limits(case_seconds=10, memory_mb=512)
    found, broken = called("02_tensor_parallel", 1, COLUMN.format(before=before), warm, limits)
    assert found.status == status, (found.status, found.results[:1], found.notes)
    assert len(broken) == len(exam("02_tensor_parallel").rules[1])
