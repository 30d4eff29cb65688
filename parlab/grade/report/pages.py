"""The pages: one a student, one for the class. Self-contained, no scripts, everything escaped."""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from parlab.grade.cases import Rule
from parlab.grade.corrections import TOTAL, Correction
from parlab.grade.graded import RuleResult, TodoResult
from parlab.grade.report.picture import data_uri
from parlab.grade.report.statistics import ClassStatistics
from parlab.grade.report.told import NO_FUNCTION, for_the_student, notes_of, waits
from parlab.grade.report.visible import visible
from parlab.grade.report.words import item_name, words
from parlab.grade.rows import NOT_HANDED_IN, Row, number
from parlab.grade.texts import LANGUAGES, say, status_name, status_text
from parlab.grade.types import Note


@dataclass(frozen=True)
class About:
    """What stands on every page.

    Attributes:
        lesson: its name.
        title: its title for people.
        language: ``zh`` or ``en``.
        seed: of the cases.
        when: day and time, in words.
        points: TODO number → its points.
        rules: TODO number → its rules.
    """

    lesson: str
    title: str
    language: str
    seed: int
    when: str
    points: Mapping[int, float]
    rules: Mapping[int, Sequence[Rule]]

    @property
    def most(self) -> float:
        """The points of the whole lesson."""
        return sum(self.points.values())


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("parlab.grade.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["number"] = number
    environment.filters["sentence"] = _sentence
    return environment


def _finalize(value: Any) -> Any:
    """Every text on a page without characters that hide or reorder others; markup stays markup."""
    return visible(value) if type(value) is str else value


def _sentence(text: str) -> str:
    """With a capital at the start, where the script has capitals."""
    return text[:1].upper() + text[1:]


def student_page(row: Row, about: About) -> str:
    """One student's feedback."""
    todos = [_todo(todo, about, row, index) for index, todo in enumerate(row.graded.todos)]
    settled = bool(row.corrections) and row.total is not None and row.total >= about.most
    return (
        _environment()
        .get_template("student.html")
        .render(
            w=words(about.language),
            about=about,
            row=row,
            icon=_ICON,
            status=status_name(row.status, about.language) if not settled else "",
            status_text=status_text(row.status, about.language) if not settled else "",
            todos=todos if row.status != NOT_HANDED_IN else [],
            notes=_said(for_the_student(row), about.language),
            corrected_total=next((c for c in row.corrections if c.item == TOTAL), None),
            computed_total=_sum(row.computed),
        )
    )


def class_page(
    rows: Sequence[Row],
    found: ClassStatistics,
    about: About,
    picture: bytes,
    notes: Iterable[Note] = (),
    lost: Sequence[Correction] = (),
    files: Sequence[tuple[str, str]] = (),
) -> str:
    """The whole class, for the teacher.

    Args:
        picture: a PNG.
        notes: about the class.
        lost: corrections that fit nobody.
        files: names of files beside the page, and what they are for.
    """
    language = about.language
    return (
        _environment()
        .get_template("class.html")
        .render(
            w=words(language),
            about=about,
            found=found,
            icon=_ICON,
            picture=data_uri(picture),
            rows=[
                (row, status_name(row.status, language), "feedback/" + _address(row))
                for row in rows
            ],
            statuses=[(status_name(key, language), n) for key, n in found.statuses.items()],
            mistakes=[
                (one, _in(one.rule.text, language), _in(one.rule.hint, language))
                for one in found.mistakes
            ],
            help=[_help(one, about) for one in found.help],
            look=[
                (
                    row,
                    status_name(row.status, language),
                    "feedback/" + _address(row),
                    _said(said, language),
                )
                for row, said in found.to_look_at
            ],
            notes=_said(notes, language),
            lost=[(one, item_name(one.item, language)) for one in lost],
            files=files,
        )
    )


def _address(row: Row) -> str:
    """The name of a student's page, as a link holds it."""
    from urllib.parse import quote

    return quote(f"{row.graded.student}.html")


# Reasons that say themselves what is wrong, whatever the rule.
_TELLING = {
    "case_raised", "case_nothing", "case_type", "case_keys", "case_not_plain", "case_unanswered",
    "case_timeout", "case_memory", "case_kernel_died", "case_output_limit", "case_not_defined",
    "case_source_raised", "case_syntax", "case_not_alone",
}  # fmt: skip


# Statuses without a notebook of the lesson in which anything could be missing.
_NO_LESSON = ("unreadable", "wrong_lesson")


def _todo(todo: TodoResult, about: About, row: Row, index: int) -> dict[str, Any]:
    rules = {rule.key: rule for rule in about.rules.get(todo.todo, ())}
    correction = next((c for c in row.corrections if c.item == str(todo.todo)), None)
    results = [_rule(result, todo, rules, about) for result in todo.rules]
    failing = rules.get(todo.failure.rule) if todo.failure else None
    if todo.failure and any(key == "case_changed_input" for key, _ in todo.failure.reasons):
        failing = _broken_input(todo, rules) or failing
    if todo.failure and _is_no_matter_of_rules(todo, rules):
        failing = None
    return {
        "todo": todo,
        "points": row.points[index],
        "computed": row.computed[index],
        "out_of": about.points[todo.todo],
        "correction": correction,
        "trouble": status_text(todo.trouble, about.language) if todo.trouble else "",
        "rules": results,
        "settled": _is_settled(row, index, about),
        "unread": row.status in _NO_LESSON,
        "failure": None if todo.trouble == "does_not_run" else todo.failure,
        "no_function": _no_function(todo, row, about.language),
        "failing": _in(failing.text, about.language) if failing else "",
        "hint": _in(failing.hint, about.language) if failing else "",
        "reasons": _said(todo.failure.reasons, about.language) if todo.failure else [],
        "check_differs": todo.check == "passed" and todo.failure is not None,
        "bar": _percent(row.points[index], about.points[todo.todo]),
    }


def _is_settled(row: Row, index: int, about: About) -> bool:
    """Whether a person gave all points: then what the program found wrong is not shown."""
    todo = row.graded.todos[index].todo
    points = {one.item: one.points for one in row.corrections}
    whole = points.get(TOTAL, 0.0) >= about.most
    return whole or points.get(str(todo), 0.0) >= about.points[todo]


def _no_function(todo: TodoResult, row: Row, language: str) -> list[str]:
    """Why there is nothing to call: what was found in the notebook, else what running it said."""
    notes = notes_of(row, todo.todo, NO_FUNCTION)
    if not notes and todo.trouble == "does_not_run" and todo.failure:
        notes = list(todo.failure.reasons)
    return _said(notes, language)


def _broken_input(todo: TodoResult, rules: Mapping[str, Rule]) -> Rule | None:
    """The rule about the input, where everything else that the case shows is right."""
    own = [result for result in todo.rules if not rules[result.key].about_input]
    if all(result.passed for result in own):
        return next((rule for rule in rules.values() if rule.about_input), None)
    return None


def _is_no_matter_of_rules(todo: TodoResult, rules: Mapping[str, Rule]) -> bool:
    """Whether the reasons say what is wrong and most rules fail: then no rule's hint fits."""
    told = todo.failure and any(key in _TELLING for key, _ in todo.failure.reasons)
    own = [result for result in todo.rules if not rules[result.key].about_input]
    failed = sum(not result.passed for result in own)
    return bool(told) and 2 * failed > len(own)


def _rule(
    result: RuleResult, todo: TodoResult, rules: Mapping[str, Rule], about: About
) -> dict[str, Any]:
    rule = rules.get(result.key)
    whole = sum(one.weight for one in todo.rules)
    word = words(about.language)
    why = word["not_counted" if rule and rule.about_input else "not_judged"]
    return {
        "text": _in(rule.text, about.language) if rule else result.key,
        "passed": result.passed,
        "waits": why if waits(result, todo.rules, rules) else "",
        "count": f"{result.right}/{result.total}",
        "points": f"{number(about.points[todo.todo] * result.weight / whole)} {word['points']}",
    }


def _help(one: Any, about: About) -> dict[str, Any]:
    return {
        "row": one.row,
        "address": "feedback/" + _address(one.row),
        "status": status_name(one.row.status, about.language),
        "rules": [f"TODO {todo}: {_in(rule.text, about.language)}" for todo, rule in one.rules],
    }


def _said(notes: Iterable[Note], language: str) -> list[str]:
    return [say(note, language) for note in notes]


def _in(texts: tuple[str, str], language: str) -> str:
    return texts[LANGUAGES.index(language)]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(sum(known), 2) if len(known) == len(values) else None


def _percent(value: float | None, most: float) -> int:
    return 0 if value is None or not most else max(0, min(100, round(100 * value / most)))


# A page without an icon asks the server for one.
_ICON = "data:image/svg+xml;base64," + base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><rect width="8" height="8" '
    b'rx="2" fill="#3a4a7b"/></svg>'
).decode("ascii")
