"""The generated cases that a lesson's TODOs are graded on: one module a lesson.

A lesson ``NN_name`` has a module or package ``lesson_NN`` here. It holds no answer: what is right
comes from the lesson's solution, which the grader runs in its own process. The module has

``rules(todo) -> tuple[Rule, ...]``
    what a TODO is scored by. A rule counts when all of its cases are right.
``cases(todo, seed) -> list[Case]``
    the same for the same seed, whatever the machine. Many (some hundred in all), small, of every
    rule, with non-degenerate sizes. The cases of a rule need different results, so that no
    constant and no part of the shipped stub satisfies it; different seeds give different cases.
``keeps(todo, rule, arguments, expected) -> bool``
    whether arguments that the shrinker made smaller are still an admissible case of that rule;
    ``expected`` is the solution's result for them, ``("value", …)`` or ``("raised", …)``.
``smaller(todo, arguments) -> Iterator[arguments]``
    steps for the shrinker that change several values at once, where one at a time leads nowhere;
    none is fine.

Arguments are plain data: None, bool, int, float, str, list, tuple, dict and tensors.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from parlab.grade.ranks import Ranks
from parlab.grade.types import Result

# How the sandbox calls a case: see `calls.py`.
CALLS = ("call", "detached", "kept", "run_ranks", "backward", "judged")

# What ``detached`` puts into the arguments (see `inside.driver`).
MARK = "changed later"


@dataclass(frozen=True)
class Rule:
    """What a TODO is scored by.

    Attributes:
        key: unique in its TODO.
        weight: its share of the TODO's points, against the other rules' weights.
        text: what must hold, in Chinese and in English.
        hint: what to look at when it does not, in Chinese and in English; no answer.
        about_input: the rule has no cases of its own: it holds when no call changed its input and
            at least one other rule counts.
        needs: keys of rules without which this one cannot be judged: its cases come out wrong
            when those rules' values are wrong, whatever it speaks of itself. It earns nothing
            then, but it is not said to be broken.
    """

    key: str
    weight: int
    text: tuple[str, str]
    hint: tuple[str, str]
    about_input: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """One call.

    Attributes:
        rule: the key of the rule that it belongs to.
        arguments: what the function is called with.
        compare: one of `relations.RELATIONS`.
        options: the relation's own, such as ``{"any_order": ("errors",)}``.
        call: one of `CALLS`: ``call`` plainly; ``detached`` changes the lists and dicts within
            the arguments afterwards, so that a result that shares them comes out wrong; ``kept``
            has a tuple of arguments for each of several calls and looks at all results after the
            last, so that one that a later call changes comes out wrong;
            ``run_ranks`` gives the function a communicator and runs it on every rank, see
            `ranks`; ``backward`` has the function's arguments and gradients at its results, and
            looks at the results and the arguments' gradients (`inside.gradients`);
            ``judged`` makes the last argument a function (see `parlab.lesson.judged`).
        seconds: CPU time that the call may take; one that goes on is ended, and is wrong. None:
            as long as `Limits` allow. Cases that a brute force may not finish come last, since a
            TODO is given up after two.
        ranks: of ``run_ranks``: what ``arguments``, which are sizes and a seed, stand for. It
            raises `ValueError` where they do not fit together.
    """

    rule: str
    arguments: tuple[Any, ...]
    compare: str = "exact"
    options: Mapping[str, Any] = field(default_factory=dict)
    call: str = "call"
    seconds: float | None = None
    ranks: Callable[..., Ranks] | None = None


RANK_SECONDS = 1.0  # CPU time of one rank; a right one takes some 20 ms


def on_ranks_case(rule: str, sizes: Any, parts: Sequence[str], ranks: Callable[..., Ranks]) -> Case:
    """A run on ranks, of which the rule looks at ``parts`` (`relations_ranks.PARTS`).

    Args:
        sizes: plain data; cases of several rules with the same sizes are one run.
        ranks: what the sizes stand for.
    """
    options = {"parts": tuple(parts)}
    return Case(rule, (sizes,), "on_ranks", options, "run_ranks", RANK_SECONDS, ranks)


def needing(rules: Sequence[Rule], needs: Mapping[str, tuple[str, ...]]) -> tuple[Rule, ...]:
    """The rules with what each needs, by its key."""
    return tuple(replace(rule, needs=needs.get(rule.key, ())) for rule in rules)


class CaseModule(Protocol):
    """What a lesson's module offers."""

    def rules(self, todo: int) -> tuple[Rule, ...]: ...

    def cases(self, todo: int, seed: int) -> list[Case]: ...

    def keeps(self, todo: int, rule: str, arguments: tuple[Any, ...], expected: Result) -> bool: ...

    def smaller(self, todo: int, arguments: tuple[Any, ...]) -> Iterable[tuple[Any, ...]]: ...


class NoCases(Exception):
    """The lesson has no module of cases, or one that cannot be used; says which and why."""


def find(lesson: str) -> CaseModule:
    """The module of ``lesson``, by its number.

    Raises:
        NoCases: there is none.
    """
    name = f"{__name__}.lesson_{lesson[:2]}"
    try:
        return cast(CaseModule, importlib.import_module(name))
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        path = f"parlab/grade/cases/lesson_{lesson[:2]}"
        raise NoCases(
            f"{lesson} has no cases to grade by: write {path}, as described in "
            "parlab/grade/cases/__init__.py"
        ) from None


def generate(module: CaseModule, todo: int, seed: int) -> list[Case]:
    """The TODO's cases, each of a known rule, every rule with at least two.

    Raises:
        NoCases: the module breaks this.
    """
    rules, cases = module.rules(todo), module.cases(todo, seed)
    keys = [rule.key for rule in rules]
    if len(set(keys)) != len(keys):
        raise NoCases(f"TODO {todo}: a rule's key occurs twice in {keys}: rename one")
    own = {rule.key for rule in rules if not rule.about_input}
    unknown = sorted({case.rule for case in cases} - own)
    if unknown:
        raise NoCases(f"TODO {todo}: cases of {unknown}, which are no rules with cases: {keys}")
    _check_counts(todo, own, cases)
    return cases


def _check_counts(todo: int, own: set[str], cases: Sequence[Case]) -> None:
    counts = {key: sum(case.rule == key for case in cases) for key in own}
    few = sorted(key for key, count in counts.items() if count < 2)
    if few:
        raise NoCases(f"TODO {todo}: fewer than two cases of {few}: generate more")
    strange = sorted({case.call for case in cases} - set(CALLS))
    if strange:
        raise NoCases(f"TODO {todo}: unknown ways to call {strange}: use one of {CALLS}")
