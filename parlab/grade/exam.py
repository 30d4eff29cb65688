"""What is the same for the whole class: the lesson's rules, cases and right results."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parlab
from parlab.grade import cases as case_modules
from parlab.grade.cases import Case, CaseModule, NoCases, Rule
from parlab.grade.expected import expect
from parlab.grade.types import Result
from parlab.lesson.loader import load_solution

# Part of a result's identity: what decides it beside the submission.
_DECIDES = ("grade", "lesson")


@dataclass(frozen=True)
class Exam:
    """One lesson, one seed.

    Attributes:
        lesson: its name.
        seed: of the cases.
        functions: TODO number → the name of its function.
        solution: TODO number → the solution's function.
        rules: TODO number → its rules.
        cases: TODO number → its cases.
        expected: TODO number → the solution's results, one a case.
        module: the lesson's module of cases.
        digest: of everything here and of the grader's own code.
    """

    lesson: str
    seed: int
    functions: Mapping[int, str]
    solution: Mapping[int, Callable[..., Any]]
    rules: Mapping[int, tuple[Rule, ...]]
    cases: Mapping[int, list[Case]]
    expected: Mapping[int, tuple[Result, ...]]
    module: CaseModule
    digest: str

    def right_for(self, todo: int, case: Case) -> Result | None:
        """The solution's result, if the arguments are an admissible case of the case's rule."""
        (result,) = expect(self.solution[todo], [case])
        keeps = self.module.keeps(todo, case.rule, case.arguments, result)
        return result if keeps else None


def prepare(root: Path, lesson: str, functions: Mapping[int, str], seed: int) -> Exam:
    """Generates the cases and asks the solution for the right results.

    Args:
        root: the folder that holds ``solutions/`` and ``notebooks/``.
        lesson: the lesson's full name.
        functions: TODO number → function.
        seed: of the cases.

    Raises:
        NoCases: there are no cases for the lesson, or not every rule's differ in their results.
        LessonUnusable: the solution cannot be loaded.
    """
    module = case_modules.find(lesson)
    loaded = load_solution(root / "solutions" / f"{lesson}.py")
    solution = {number: loaded[name] for number, name in functions.items()}
    cases = {number: case_modules.generate(module, number, seed) for number in functions}
    expected = {number: expect(solution[number], cases[number]) for number in functions}
    for number in functions:
        _check_not_constant(number, cases[number], expected[number])
    return Exam(
        lesson=lesson,
        seed=seed,
        functions=dict(functions),
        solution=solution,
        rules={number: module.rules(number) for number in functions},
        cases=cases,
        expected=expected,
        module=module,
        digest=_digest(root, lesson, seed),
    )


def _check_not_constant(todo: int, cases: list[Case], expected: tuple[Result, ...]) -> None:
    """Refuses a rule whose cases all have one right result: a constant would satisfy it."""
    for rule in sorted({case.rule for case in cases}):
        results = [
            repr(result) for case, result in zip(cases, expected, strict=True) if case.rule == rule
        ]
        if len(set(results)) < 2:
            raise NoCases(
                f"TODO {todo}, rule {rule}: all {len(results)} cases have the same right result "
                f"{results[0][:80]}: add cases where it differs"
            )


def _digest(root: Path, lesson: str, seed: int) -> str:
    digest = hashlib.sha256(f"{lesson} {seed}".encode())
    package = Path(parlab.__file__).parent
    sources = [path for part in _DECIDES for path in (package / part).rglob("*.py")]
    notebooks = [root / "notebooks" / f"{lesson}.ipynb"]
    notebooks += [root / "notebooks" / "en" / f"{lesson}.ipynb"]
    reports = package / "grade" / "report"
    for path in [root / "solutions" / f"{lesson}.py", *notebooks, *sorted(sources)]:
        if path.is_file() and reports not in path.parents:
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()
