"""Lesson 04 keeps to the project's specification and says the facts as they are published."""

import ast
import math

import pytest
from lessons import LANGUAGES, Kernel, cell, code_cells, load

from parlab.lesson.cases import contests, layouts, runs
from parlab.lesson.published import layout, llama3_405b, megatron

LESSON = "04_model_internal_parallel"
SPECIFICATION = """
def run_model_internal_parallel_tests():
    valid = {'world_size': 8, 'pp': 2, 'tp': 2, 'cp': 2, 'num_layers': 24, 'num_heads': 16, 'sequence_length': 4096}
    invalid = {**valid, 'world_size': 4, 'num_heads': 15}
    assert validate_mesh_layout(valid) == {'valid': True, 'errors': []}
    assert set(validate_mesh_layout(invalid)['errors']) == {'mesh_product', 'attention_heads'}
    limits = {'memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    tp = evaluate_internal_parallel_candidate({'name': 'tp2', 'peak_memory_mb': 11000, 'bubble_ratio': 0.0, 'communication_ratio': 0.22, 'throughput': 120, 'failure': None}, limits)
    hybrid = evaluate_internal_parallel_candidate({'name': 'pp2_tp2', 'peak_memory_mb': 9000, 'bubble_ratio': 0.25, 'communication_ratio': 0.28, 'throughput': 130, 'failure': None}, limits)
    assert tp['eligible'] is True
    assert hybrid['gate_failures'] == ['bubble']
    assert select_internal_parallel_candidate([tp, hybrid]) == {'decision': 'accept', 'candidate': 'tp2'}
    assert select_internal_parallel_candidate([])['decision'] == 'reject'
    print('✅ Device Mesh、候选准入与组合选择通过基础校验。')
"""  # noqa: E501
STUBS = """
def validate_mesh_layout(config):
    return {'valid': not errors, 'errors': errors}
def evaluate_internal_parallel_candidate(metrics, limits):
    result = deepcopy(metrics)
    result['eligible'] = not failures
    result['gate_failures'] = failures
    return result
def select_internal_parallel_candidate(candidates):
    eligible = [item for item in candidates if item['eligible']]
    if not eligible:
        return {'decision': 'reject', 'candidate': None}
    return {'decision': 'accept', 'candidate': selected['name']}
"""


def functions(source: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}


def without_docstring_and_raise(function: ast.FunctionDef) -> list[str]:
    body = function.body[1:] if ast.get_docstring(function) else function.body
    return [ast.dump(node) for node in body if not isinstance(node, ast.Raise)]


@pytest.mark.parametrize("folder", ["notebooks", "solutions", "colab"])
def test_the_specification_s_test_stands_in_a_cell_of_its_own(folder: str) -> None:
    (wanted,) = functions(SPECIFICATION).values()
    for language in LANGUAGES:
        cells = [c.source for c in code_cells(load(folder, LESSON, language))]
        (source,) = [s for s in cells if f"def {wanted.name}" in s]
        (found,) = ast.parse(source).body
        assert isinstance(found, ast.FunctionDef)
        if language == "en":  # its printed line is the English partner
            assert ast.dump(found.body[-1]) != ast.dump(wanted.body[-1])
            found.body[-1] = wanted.body[-1]
        assert ast.dump(found) == ast.dump(wanted)


@pytest.mark.parametrize("language", LANGUAGES)
def test_stubs_are_the_specification_s(language: str) -> None:
    exercise = load("notebooks", LESSON, language)
    for number, (name, wanted) in enumerate(functions(STUBS).items(), 1):
        source = cell(exercise, f"todo-{number}").source
        found = functions(source)[name]
        assert without_docstring_and_raise(found) == without_docstring_and_raise(wanted)
        assert ast.get_docstring(found) and [a.arg for a in found.args.args] == [
            a.arg for a in wanted.args.args
        ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_last_cell_calls_the_test(language: str) -> None:
    last = code_cells(load("notebooks", LESSON, language))[-1].source
    assert "run_model_internal_parallel_tests()" in last
    (printed,) = code_cells(load("solutions", LESSON, language))[-1].outputs
    assert printed.text.startswith("✅ Device Mesh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_open_todos_leave_one_line_in_every_cell_that_uses_them(language: str) -> None:
    kernel, waiting = Kernel(), 0
    cells = code_cells(load("notebooks", LESSON, language))
    for item in cells:
        if item.id.startswith("check-") and item.id != "check-extra":
            continue
        printed = kernel.run(item.source)
        if "⏳" in printed:
            waiting += 1
            assert printed.startswith("⏳ ") and printed.count("\n") == 1
            last = item
    assert last is cells[-1]
    uses = ("draw_admission(", "in megatron()", "decide(LIMITS)", "draw_gates(", "for change in (")
    named = [item for item in cells if any(use in item.source for use in uses)]
    assert waiting == len(named) + 2 == 7  # the optional check and the last cell as well


REQUIRED = "('world_size','pp','tp','cp','num_layers','num_heads','sequence_length')"
SIZES = {
    "right": [
        f"[k for k in (*{REQUIRED}, 'num_kv_heads') if not (k[4:6] == 'kv' and c.get(k) is None)"
        " and not (type(c.get(k)) is int and c[k] > 0)]",
        f"sorted({{k for k in {REQUIRED} if k not in c}} | {{k for k, v in c.items() if k in "
        f"{REQUIRED} + ('num_kv_heads',) * (v is not None) and (type(v) is not int or v < 1)}})",
    ],
    "wrong": [
        "[]",
        f"[k for k in {REQUIRED} if not c.get(k)]",
        f"[k for k in {REQUIRED} if type(c.get(k)) is not int or c[k] <= 0]",
        f"[k for k in (*{REQUIRED}, 'num_kv_heads') if type(c.get(k)) is not int or c[k] <= 0]",
        "[k for k, v in c.items() if type(v) is not int or v <= 0]",
        f"[k for k in {REQUIRED} if not isinstance(c.get(k), int) or c[k] <= 0]",
        f"tuple(k for k in {REQUIRED} if type(c.get(k)) is not int or c[k] <= 0)",
    ],
}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(("verdict", "mark"), [("right", "✅"), ("wrong", "❌")])
def test_the_optional_check(verdict: str, mark: str, language: str) -> None:
    exercise = load("notebooks", LESSON, language)
    for body in SIZES[verdict]:
        kernel = Kernel()
        kernel.run(cell(exercise, "setup").source)
        kernel.run(f"def find_bad_sizes(c): return {body}")
        printed = kernel.run(cell(exercise, "check-extra").source)
        assert printed.startswith(f"{mark} EXTRA · find_bad_sizes"), (body, printed)


def test_generated_cases_break_what_they_say() -> None:
    """Against the solution: cases and answers come from different hands."""
    kernel, solution = Kernel(), load("solutions", LESSON, "zh")
    for number in (1, 2, 3):
        kernel.run(cell(solution, f"todo-{number}").source)
    for config, broken in layouts():
        assert set(kernel["validate_mesh_layout"](config)["errors"]) == set(broken)
    for metrics, limits, failed in runs():
        evaluate = kernel["evaluate_internal_parallel_candidate"]
        assert set(evaluate(metrics, limits)["gate_failures"]) == set(failed)
    for candidates, winner in contests():
        select = kernel["select_internal_parallel_candidate"]
        assert select(candidates) == {"decision": "accept", "candidate": winner}
        assert len({c["name"] for c in candidates}) == len(candidates)


def test_published_tables_agree_with_themselves() -> None:
    """arXiv 2104.04473: P = 12 l h² (1 + 13/(12 h) + (V + s)/(12 l h)), GPUs = t · p · d."""
    for row in megatron():
        layers, hidden = row["num_layers"], row["hidden"]
        tail = 13 / (12 * hidden) + (51_200 + 2_048) / (12 * layers * hidden)
        billions = 12 * layers * hidden**2 * (1 + tail) / 1e9
        assert math.isclose(billions, row["params_b"], abs_tol=0.1)
        assert row["tp"] * row["pp"] * row["cp"] * row["dp"] == row["gpus"]
        assert layout(row)["world_size"] == row["tp"] * row["pp"]
    for row in llama3_405b():
        assert row["tp"] * row["pp"] * row["cp"] * row["dp"] == row["gpus"]
        assert (row["num_layers"] + 2) % row["pp"] == 0


def test_no_cell_is_marked_as_allowed_to_fail() -> None:
    for folder in ("notebooks", "solutions", "colab"):
        for language in LANGUAGES:
            for item in load(folder, LESSON, language).cells:
                assert "NBVAL_" not in item.source
                assert not {"raises-exception", "nbval-skip"} & set(item.metadata.get("tags", []))
