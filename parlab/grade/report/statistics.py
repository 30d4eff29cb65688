"""What a teacher wants to know of a class: how each TODO went, what went wrong, who needs help."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from parlab.grade.cases import Rule
from parlab.grade.report.told import to_look_at, waits
from parlab.grade.rows import NOT_HANDED_IN, Row
from parlab.grade.types import STATUSES, Note

HELP_BELOW = 0.6  # of all points
MOST_MISTAKES = 8


@dataclass(frozen=True)
class TodoStatistics:
    """How a TODO went over the class.

    Attributes:
        full, part, zero: students with all, some and none of its points.
        mean: points of those that are known.
    """

    todo: int
    function: str
    out_of: float
    full: int
    part: int
    zero: int
    mean: float


@dataclass(frozen=True)
class Mistake:
    """A rule that students break."""

    todo: int
    rule: Rule
    students: int
    share: float


@dataclass(frozen=True)
class Help:
    """A student who needs help, and with what: a status, or rules as ``(todo, rule)``."""

    row: Row
    rules: tuple[tuple[int, Rule], ...]


@dataclass(frozen=True)
class ClassStatistics:
    """The whole class.

    Attributes:
        handed_in: how many submissions there are.
        totals: of those that are known.
        statuses: status → how many, in the order of `STATUSES`.
        to_look_at: who, and why.
    """

    handed_in: int
    absent: int
    totals: tuple[float, ...]
    statuses: Mapping[str, int]
    todos: tuple[TodoStatistics, ...]
    mistakes: tuple[Mistake, ...]
    help: tuple[Help, ...]
    to_look_at: tuple[tuple[Row, tuple[Note, ...]], ...]

    @property
    def mean(self) -> float:
        """Of the totals; 0 where there are none."""
        return statistics.fmean(self.totals) if self.totals else 0.0

    @property
    def median(self) -> float:
        """Of the totals; 0 where there are none."""
        return statistics.median(self.totals) if self.totals else 0.0


def of_class(
    rows: Sequence[Row], points: Mapping[int, float], rules: Mapping[int, Sequence[Rule]]
) -> ClassStatistics:
    """The statistics of a class.

    Args:
        points: TODO number → its points.
        rules: TODO number → its rules.
    """
    handed_in = [row for row in rows if row.status != NOT_HANDED_IN]
    counts = Counter(row.status for row in handed_in)
    most = sum(points.values())
    return ClassStatistics(
        handed_in=len(handed_in),
        absent=len(rows) - len(handed_in),
        totals=tuple(row.total for row in handed_in if row.total is not None),
        statuses={status: counts[status] for status in STATUSES if counts[status]},
        todos=tuple(_todo(handed_in, index, points) for index in range(len(points))),
        mistakes=_mistakes(handed_in, points, rules),
        help=tuple(_help(row, rules) for row in _needy(handed_in, most)),
        to_look_at=to_look_at(handed_in),
    )


def _todo(rows: Sequence[Row], index: int, points: Mapping[int, float]) -> TodoStatistics:
    number = sorted(points)[index]
    known = [value for row in rows if (value := row.points[index]) is not None]
    full = sum(value >= points[number] for value in known)
    zero = sum(value == 0 for value in known)
    function = rows[0].graded.todos[index].function if rows else ""
    return TodoStatistics(
        todo=number,
        function=function,
        out_of=points[number],
        full=full,
        part=len(known) - full - zero,
        zero=zero,
        mean=statistics.fmean(known) if known else 0.0,
    )


def broken_rules(row: Row, rules: Mapping[int, Sequence[Rule]]) -> list[tuple[int, Rule]]:
    """The rules that a submission breaks, TODO by TODO; not those that could not be judged."""
    named = {todo: {rule.key: rule for rule in some} for todo, some in rules.items()}
    return [
        (todo.todo, named[todo.todo][result.key])
        for todo in row.graded.todos
        if not todo.trouble  # it was stopped half-way: rules fail that it never came to
        for result in todo.rules
        if not result.passed and result.key in named[todo.todo]
        if not waits(result, todo.rules, named[todo.todo])
    ]


def _mistakes(
    rows: Sequence[Row], points: Mapping[int, float], rules: Mapping[int, Sequence[Rule]]
) -> tuple[Mistake, ...]:
    """The rules broken most often, among answers that did not get all points, by hand or not."""
    counts: Counter[tuple[int, str]] = Counter()
    found: dict[tuple[int, str], Rule] = {}
    for row in rows:
        got = dict(zip(sorted(points), row.points, strict=True))
        for todo, rule in broken_rules(row, rules):
            if got[todo] == points[todo]:
                continue
            if not rule.about_input or _changed_its_input(row, todo, rule):
                counts[todo, rule.key] += 1
                found[todo, rule.key] = rule
    return tuple(
        Mistake(todo, found[todo, key], count, count / len(rows))
        for (todo, key), count in counts.most_common(MOST_MISTAKES)
    )


def _changed_its_input(row: Row, todo: int, rule: Rule) -> bool:
    """Whether the rule about the input is broken by a change, not for want of right answers."""
    results = next(item.rules for item in row.graded.todos if item.todo == todo)
    mine = next(result for result in results if result.key == rule.key)
    return any(result.passed for result in results) and mine.right < mine.total


def _needy(rows: Sequence[Row], most: float) -> list[Row]:
    """Students below `HELP_BELOW`, the weakest first."""
    low = [row for row in rows if row.total is not None and row.total < HELP_BELOW * most]
    return sorted(low, key=lambda row: (row.total or 0.0, row.graded.display))


def _help(row: Row, rules: Mapping[int, Sequence[Rule]]) -> Help:
    broken = [(todo, rule) for todo, rule in broken_rules(row, rules) if not rule.about_input]
    return Help(row, tuple(broken[:3]))
