"""What an answer is worth: relations, rules, statuses, the smallest counterexample."""

import contextlib
import io
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from grade_fakes import call_one, load
from lessons import ROOT, Answer, answers

from parlab.grade import decide
from parlab.grade.cases import Case, NoCases, Rule, find, generate
from parlab.grade.cases.lesson_02 import linear
from parlab.grade.counterexample import call_text, word
from parlab.grade.exam import Exam, prepare
from parlab.grade.graded import TodoResult
from parlab.grade.here import run_here
from parlab.grade.relations import RELATIONS
from parlab.grade.shrink import BATCH, ROUNDS, shrink, size
from parlab.grade.types import STATUSES, CallOutcome, Rebuilt, Result, RunOutcome
from parlab.lesson.compare import cut

LESSON = "04_model_internal_parallel"
FUNCTIONS = {
    1: "validate_mesh_layout",
    2: "evaluate_internal_parallel_candidate",
    3: "select_internal_parallel_candidate",
}
SAMPLES = list(answers(LESSON))


@pytest.fixture(scope="module")
def exam() -> Exam:
    return prepare(ROOT, LESSON, FUNCTIONS, seed=1)


def results_of(answer: Answer, cases: Sequence[Case]) -> CallOutcome:
    function = load(answer.source, FUNCTIONS[answer.todo])
    return CallOutcome(answer.todo, tuple(call_one(function, case) for case in cases))


def passed(exam: Exam, answer: Answer) -> set[str]:
    """The rules that an answer meets."""
    todo = answer.todo
    outcome = results_of(answer, exam.cases[todo])
    rules, _ = decide.judge(exam.rules[todo], exam.cases[todo], exam.expected[todo], outcome)
    return {rule.key for rule in rules if rule.passed}


@pytest.mark.parametrize("answer", [a for a in SAMPLES if a.right], ids=str)
def test_a_right_answer_in_any_style_meets_every_rule(exam: Exam, answer: Answer) -> None:
    assert passed(exam, answer) == {rule.key for rule in exam.rules[answer.todo]}


@pytest.mark.parametrize("answer", [a for a in SAMPLES if not a.right], ids=str)
def test_a_wrong_answer_does_not_get_all_points(exam: Exam, answer: Answer) -> None:
    assert passed(exam, answer) < {rule.key for rule in exam.rules[answer.todo]}


@pytest.mark.parametrize(
    ("name", "todo", "lost"),
    [
        ("without_kv_heads", 1, {"kv_heads", "several"}),
        ("first_error_only", 1, {"several"}),
        ("kv_heads_required", 1, {"without_kv_heads"}),
        ("product_divides_world", 1, {"mesh_product", "several", "without_kv_heads"}),
        ("key_error_without_kv_heads", 1, {"without_kv_heads"}),
        ("zigzag_needs_two_cp", 1, {"context_blocks", "several"}),
        ("axes_swapped", 1, {"pipeline_layers", "attention_heads", "several"}),
        ("equality_fails", 2, {"edge"}),
        ("zero_means_not_measured", 2, {"memory"}),
        ("copy_of_two_levels", 2, {"copy"}),
        ("one_list_for_all_calls", 1, {"fresh"}),
        ("one_list_for_all_calls", 2, {"fresh"}),
        ("first_failure_only", 2, {"several"}),
        ("throughput_only", 3, {"communication", "memory"}),
        ("no_memory_level", 3, {"memory"}),
        ("ignores_eligibility", 3, {"eligible", "nobody"}),
        ("raises_for_nobody", 3, {"nobody"}),
        ("sorts_in_place", 3, {"unchanged"}),
    ],
)
def test_a_mistake_costs_the_rules_that_it_breaks(
    exam: Exam, name: str, todo: int, lost: set[str]
) -> None:
    (answer,) = [a for a in SAMPLES if a.name == name and a.todo == todo]
    broken = {rule.key for rule in exam.rules[todo]} - passed(exam, answer)
    assert broken == lost


@pytest.mark.parametrize("todo", FUNCTIONS)
def test_a_constant_answer_earns_nothing(exam: Exam, todo: int) -> None:
    cases, expected = exam.cases[todo], exam.expected[todo]
    for constant in {repr(result): result for result in expected}.values():
        outcome = CallOutcome(todo, (constant,) * len(cases))
        rules, wrong = decide.judge(exam.rules[todo], cases, expected, outcome)
        assert decide.share(rules) == 0 and wrong


def test_cases_are_the_same_for_a_seed_and_differ_between_seeds() -> None:
    module = find(LESSON)
    for todo in FUNCTIONS:
        assert module.cases(todo, 5) == module.cases(todo, 5) != module.cases(todo, 6)


@pytest.mark.parametrize("seed", range(20))
def test_every_case_is_admissible_and_no_tie_is_left_open(seed: int) -> None:
    exam = prepare(ROOT, LESSON, FUNCTIONS, seed)
    for todo, cases in exam.cases.items():
        for case in cases:
            assert exam.right_for(todo, case) is not None, (todo, case)


def test_a_lesson_without_cases_is_refused_with_the_place_to_write_them() -> None:
    with pytest.raises(NoCases, match="parlab/grade/cases/lesson_99"):
        find("99_nothing")


class Module:
    def __init__(self, rules: tuple[Rule, ...], cases: list[Case]) -> None:
        self._rules, self._cases = rules, cases

    def rules(self, todo: int) -> tuple[Rule, ...]:
        return self._rules

    def cases(self, todo: int, seed: int) -> list[Case]:
        return self._cases

    def keeps(self, todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool:
        return True

    def smaller(self, todo: int, arguments: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        return []


ONE = Rule("one", 1, ("一", "one"), ("提示", "hint"))


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (Module((ONE, ONE), []), "occurs twice"),
        (Module((ONE,), [Case("two", ())]), "no rules"),
        (Module((ONE,), [Case("one", ())]), "fewer than two"),
        (Module((ONE,), [Case("one", (), call="fly")] * 2), "unknown ways to call"),
    ],
)
def test_a_module_that_breaks_the_interface_is_refused(module: Module, said: str) -> None:
    with pytest.raises(NoCases, match=said):
        generate(module, 1, 0)


@pytest.mark.parametrize(
    ("relation", "got", "expected", "options", "equal"),
    [
        ("exact", {"a": [1]}, {"a": [1]}, {}, True),
        ("exact", {"a": (1,)}, {"a": [1]}, {}, False),
        ("exact", 1, True, {}, False),
        ("exact", 1.0, 1, {}, False),
        ("any_order", {"e": ["b", "a"]}, {"e": ["a", "b"]}, {"any_order": ("e",)}, True),
        ("any_order", {"e": ["a", "a"]}, {"e": ["a"]}, {"any_order": ("e",)}, False),
        ("entries", {"e": True, "x": 1}, {"e": True, "x": 2}, {"keys": ("e",)}, True),
        ("entries", {"x": 2}, {"e": True, "x": 2}, {"keys": ("e",)}, False),
        ("entries", None, {"e": True}, {"keys": ("e",)}, False),
        ("all_but", {"e": 1, "x": [2]}, {"e": 5, "x": [2]}, {"keys": ("e",)}, True),
        ("all_but", {"x": [2]}, {"e": 5, "x": [2]}, {"keys": ("e",)}, False),
        ("close", 1.0 + 1e-9, 1.0, {"rtol": 1e-6, "atol": 0.0}, True),
        ("close", 1, 1.0, {"rtol": 1e-6, "atol": 0.0}, False),
        ("close", float("nan"), float("nan"), {"rtol": 0, "atol": 0}, True),
        ("close", float("inf"), float("nan"), {"rtol": 0, "atol": 0}, False),
        ("close", [torch.ones(2)], [torch.ones(2)], {"rtol": 1e-6, "atol": 0.0}, True),
        ("close", torch.ones(2), torch.ones(2).double(), {"rtol": 1, "atol": 1.0}, False),
        ("close", torch.ones(1), torch.ones(2), {"rtol": 1, "atol": 1.0}, False),
        ("close", torch.ones(2) * 1.1, torch.ones(2), {"rtol": 1e-6, "atol": 0.0}, False),
    ],
)
def test_relations(relation: str, got: Any, expected: Any, options: Any, equal: bool) -> None:
    assert RELATIONS[relation](got, expected, options) is equal


@pytest.mark.parametrize(
    "got",
    [
        None, (), ("missing", "timeout"), ("not_plain", "Anything"), ("raised", "KeyError", "k", 3),
        ("changed", 1), ("value", 2), ("value", True), ("VALUE", 1), ("unknown",),
    ],
)  # fmt: skip
def test_whatever_is_unknown_is_wrong(got: Result | None) -> None:
    assert not decide.right(Case("one", (1,)), ("value", 1), got)


def test_where_the_solution_raises_the_type_counts() -> None:
    case, expected = Case("one", (1,)), ("raised", "ValueError")
    assert decide.right(case, expected, ("raised", "ValueError", "other words", 2))
    assert not decide.right(case, expected, ("raised", "TypeError", "", 2))
    assert not decide.right(case, expected, ("value", "ValueError"))


def test_missing_results_are_wrong(exam: Exam) -> None:
    outcome = CallOutcome(1, exam.expected[1][:30])
    rules, wrong = decide.judge(exam.rules[1], exam.cases[1], exam.expected[1], outcome)
    assert wrong == list(range(30, len(exam.cases[1])))
    assert {rule.key for rule in rules if rule.passed} == {"mesh_product", "pipeline_layers"}


def test_a_changed_input_breaks_its_own_rule_alone(exam: Exam) -> None:
    results = tuple(("changed_input", value, ()) for _, value in exam.expected[3])
    rules, wrong = decide.judge(
        exam.rules[3], exam.cases[3], exam.expected[3], CallOutcome(3, results)
    )
    assert not wrong
    assert [rule.key for rule in rules if not rule.passed] == ["unchanged"]


def test_a_changed_input_is_wrong_where_no_rule_speaks_of_it() -> None:
    cases = [Case("one", (1,)), Case("one", (2,))]
    expected: list[Result] = [("value", 1), ("value", 2)]
    outcome = CallOutcome(1, (("value", 1), ("changed_input", 2, ())))
    _, wrong = decide.judge((ONE,), cases, expected, outcome)
    assert wrong == [1]


def todo(number: int, share: float | None, **other: Any) -> TodoResult:
    return TodoResult(number, "f", other.pop("state", "answered"), share=share, **other)


@pytest.mark.parametrize(
    ("rebuilt", "run", "todos", "status"),
    [
        (None, None, [todo(1, 1.0), todo(2, 1.0)], "ok"),
        (None, None, [todo(1, 1.0), todo(2, 0.99)], "partial"),
        (None, None, [todo(1, 0.0)], "partial"),
        (None, None, [], "partial"),
        (None, None, [todo(1, 0.0, state="stub"), todo(2, 1.0)], "unfinished"),
        (None, "timeout", [todo(1, 1.0)], "timeout"),
        (None, None, [todo(1, 0.0, trouble="memory"), todo(2, 0.0, state="stub")], "memory"),
        (None, "kernel_died", [todo(1, 0.0, trouble="output_limit")], "output_limit"),
        (None, "tampered", [todo(1, 0.0, trouble="memory")], "tampered"),
        ("missing_answers", "tampered", [todo(1, 0.0, state="missing")], "missing_answers"),
        ("wrong_lesson", None, [], "wrong_lesson"),
        (None, "strange", [todo(1, 1.0)], "grader_error"),
        (None, "grader_error", [todo(1, 1.0)], "grader_error"),
    ],
)
def test_the_first_status_that_applies(
    rebuilt: str | None, run: str | None, todos: list[TodoResult], status: str
) -> None:
    outcome = RunOutcome(run, {}) if run else None
    assert decide.status_of(Rebuilt(None, {}, (), {}, (), rebuilt), outcome, todos) == status


def test_statuses_stand_in_the_order_of_the_specification() -> None:
    assert STATUSES == (
        "grader_error", "unreadable", "wrong_lesson", "missing_answers", "tampered", "memory",
        "output_limit", "timeout", "kernel_died", "does_not_run", "unfinished", "partial", "ok",
    )  # fmt: skip


def test_points_are_parts_of_what_a_todo_is_worth() -> None:
    points = decide.points_of([1.0, 1 / 3, None], {1: 40, 2: 30, 3: 30})
    assert points == [40, 10, None]


# ------------------------------------------------------------------------- smallest counterexample


def shrunk(exam: Exam, answer: Answer) -> tuple[Case, Result, Result | None, int]:
    """As `work` does it: the smallest failing case of the first failing rule, and the rounds."""
    todo, rounds = answer.todo, 0
    function = load(answer.source, FUNCTIONS[todo])
    outcome = results_of(answer, exam.cases[todo])
    _, wrong = decide.judge(exam.rules[todo], exam.cases[todo], exam.expected[todo], outcome)
    index = wrong[0]

    def call(cases: Sequence[Case]) -> list[Result]:
        nonlocal rounds
        rounds += 1
        assert len(cases) <= BATCH
        return [call_one(function, case) for case in cases]

    best = shrink(
        exam.cases[todo][index],
        exam.expected[todo][index],
        outcome.results[index],
        call,
        lambda case: exam.right_for(todo, case),
        lambda case, right, got: not decide.right(case, right, got),
        lambda arguments: exam.module.smaller(todo, arguments),
    )
    return (*best, rounds)


@pytest.mark.parametrize("answer", [a for a in SAMPLES if not a.right], ids=str)
def test_a_counterexample_is_small_still_fails_and_costs_few_calls(
    exam: Exam, answer: Answer
) -> None:
    outcome = results_of(answer, exam.cases[answer.todo])
    _, wrong = decide.judge(
        exam.rules[answer.todo], exam.cases[answer.todo], exam.expected[answer.todo], outcome
    )
    if not wrong:
        pytest.skip("it only changes its input")
    case, expected, got, rounds = shrunk(exam, answer)
    assert rounds <= ROUNDS
    assert not decide.right(case, expected, got)
    assert exam.right_for(answer.todo, case) == expected
    assert size(case.arguments) <= size(exam.cases[answer.todo][wrong[0]].arguments)


def test_a_layout_is_shrunk_to_the_smallest_that_shows_the_rule(exam: Exam) -> None:
    (answer,) = [a for a in SAMPLES if a.name == "without_kv_heads"]
    case, expected, got, _ = shrunk(exam, answer)
    (config,) = case.arguments
    assert config["num_kv_heads"] == 1 and config["tp"] == 2, config
    assert expected == ("value", {"valid": False, "errors": ["kv_heads"]})
    assert got == ("value", {"valid": True, "errors": []})
    assert len(config) == 8 and max(config.values()) <= 2


def test_candidates_are_shrunk_to_two(exam: Exam) -> None:
    (answer,) = [a for a in SAMPLES if a.name == "compares_memory_as_text"]
    case, _, _, _ = shrunk(exam, answer)
    assert len(case.arguments[0]) == 2 and case.rule == "memory"


def test_a_function_that_fails_at_random_ends_all_the_same(exam: Exam) -> None:
    dice = random.Random(0)
    case = exam.cases[1][1]

    def call(cases: Sequence[Case]) -> list[Result]:
        return [("value", dice.random()) for _ in cases]

    best = shrink(
        case, exam.expected[1][1], ("value", 1), call,
        lambda case: exam.right_for(1, case), lambda *_: dice.random() < 0.5,
    )  # fmt: skip
    assert size(best[0].arguments) <= size(case.arguments)


def test_a_sandbox_that_gives_nothing_back_leaves_the_case_as_it_was(exam: Exam) -> None:
    case, expected = exam.cases[1][1], exam.expected[1][1]
    best = shrink(
        case, expected, ("value", 1), lambda cases: [],
        lambda case: exam.right_for(1, case), lambda *_: True,
    )  # fmt: skip
    assert best == (case, expected, ("value", 1))


# ------------------------------------------------------------------------------------------ words


def test_a_counterexample_shows_call_expected_actual_and_the_line() -> None:
    source = "def f(config):\n    return config['b']\n"
    case = Case("one", ({"a": 1},))
    found = word("f", source, case, ("value", 1), ("raised", "KeyError", "'b'", 2))
    assert found.call == "f({'a': 1})"
    assert found.expected == "1" and found.actual == "KeyError: 'b'"
    assert found.reasons == (
        ("case_raised", {"type": "KeyError"}),
        ("case_line", {"line": 2, "text": "return config['b']"}),
    )


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        (None, "case_unanswered"),
        (("value", None), "case_nothing"),
        (("value", ["x"]), "case_type"),
        (("value", {"valid": True}), "case_keys"),
        (("not_plain", "Anything"), "case_not_plain"),
        (("missing", "timeout"), "case_timeout"),
        (("missing", "syntax", "line 3"), "case_syntax"),
        (("changed_input", {"valid": True, "errors": []}, ({"a": 2},)), "case_changed_input"),
    ],
)
def test_reasons(got: Result | None, reason: str) -> None:
    expected = ("value", {"valid": True, "errors": []})
    found = word("f", "", Case("one", ({"a": 1},)), expected, got)
    assert reason in [key for key, _ in found.reasons]


def test_a_shared_result_is_named(exam: Exam) -> None:
    index = next(i for i, case in enumerate(exam.cases[2]) if case.call == "detached")
    case, expected = exam.cases[2][index], exam.expected[2][index]
    shared = {**expected[1], "ranks": [*expected[1]["ranks"], "changed later"]}
    found = word("f", "", case, expected, ("value", shared))
    assert [key for key, _ in found.reasons] == ["case_shares_input"]


def test_a_long_call_is_cut_and_runs_when_short() -> None:
    assert len(call_text("f", ({str(i): "x" * 50 for i in range(500)},))) < 3100
    scope: dict[str, Any] = {"f": lambda *given: given}
    arguments = ({"names": ["甲", "b"], "size": 1.5, "deep": [{"k": None}] * 9}, [1, 2])
    assert eval(call_text("f", arguments), scope) == arguments


def _printed(call: str, **names: object) -> str:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(call, names)
    return said.getvalue()


@pytest.mark.parametrize("rule", ["y", "x_gradient", "forward"])
def test_a_shown_run_on_ranks_prints_what_the_page_says(rule: str) -> None:
    """Copied and run it makes the very same numbers, hence the same difference."""

    def column_parallel(comm: Any, x: Any, weight: Any, bias: Any) -> Any:
        width = weight.shape[1] // comm.size
        return x @ weight[:, comm.rank * width : (comm.rank + 1) * width] * 2

    def right(comm: Any, x: Any, weight: Any, bias: Any) -> Any:
        return column_parallel(comm, x, weight, bias) / 2

    case = next(case for case in linear.columns(random.Random(1)) if case.rule == rule)
    assert case.ranks
    expected = run_here(right, case.ranks(*case.arguments))
    got = run_here(column_parallel, case.ranks(*case.arguments))
    found = word("column_parallel", "", case, expected, got)
    printed = _printed(found.call, column_parallel=column_parallel)
    assert cut(printed.splitlines()[-1]) == found.actual != found.expected


def test_a_run_that_broke_off_is_shown_as_a_run_that_breaks_off() -> None:
    def column_parallel(*_: Any) -> Any:
        raise KeyError("mine")

    case = next(case for case in linear.columns(random.Random(1)))
    assert case.ranks
    got = run_here(column_parallel, case.ranks(*case.arguments))
    expected = ("value", [{"out": None, "limit": 1}] * 2)
    found = word("column_parallel", "", case, expected, got)
    assert "KeyError" in _printed(found.call, column_parallel=column_parallel)


def test_a_shown_call_with_gradients_runs() -> None:
    x = torch.tensor([1.5, 2.0], dtype=torch.float64, requires_grad=True)
    up = torch.tensor([1.0, 3.0], dtype=torch.float64)
    case = Case("one", ((x,), (up,)), "merged", {"look": "gradients"}, "backward")
    right = ("value", {"out": x, "gradients": [up]})
    found = word("f", "", case, right, ("value", {"out": x, "gradients": [up * 2]}))
    outcome: dict[str, Any] = {"f": lambda x: x * 2, "torch": torch}
    exec(found.call.replace("\nbackward(", "\nresult = backward("), outcome)
    assert torch.equal(outcome["result"]["gradients"][0], up * 2)
