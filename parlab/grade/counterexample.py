"""Words a case that came out wrong: the call, what was expected, what came back, and why."""

import pprint
import re
from collections.abc import Mapping
from typing import Any

import torch

from parlab.grade import ranks_words
from parlab.grade.cases import MARK, Case
from parlab.grade.graded import Counterexample
from parlab.grade.relations_plain import FOCUS
from parlab.grade.types import Note, Result
from parlab.lesson.compare import cut, differing, other_type, plain_keys, safe_repr, same

WIDTH, LONGEST = 66, 3000  # characters of a call's line, and of a call


def word(
    function: str, source: str, case: Case, expected: Result, got: Result | None
) -> Counterexample:
    """One case for the feedback page.

    Args:
        function: the function's name.
        source: the answer's source, for the line that raised.
        case: what was called.
        expected: the solution's result.
        got: the student's.
    """
    return Counterexample(
        rule=case.rule,
        call=_calls_text(function, case, expected, got),
        expected=_expected(case, expected, got),
        actual=_actual(case, expected, got),
        reasons=tuple(_reasons(case, expected, got, source)),
    )


class Verbatim:
    """Source text as an argument of a call that is shown."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __repr__(self) -> str:
        return self._source


def _calls_text(function: str, case: Case, expected: Result, got: Result | None) -> str:
    """The call; of several that are looked at afterwards, a line each, and the list of results."""
    if case.call == "judged":
        *given, failures = case.arguments
        said = f"lambda metrics, limits: {{**metrics, 'gate_failures': {failures!r}}}"
        return call_text(function, (*given, Verbatim(said)))
    if case.call == "run_ranks":
        return ranks_words.call(function, case, expected[1], got)
    if case.call == "backward":
        made = call_text("backward", (Verbatim(function), *case.arguments))
        return f"from parlab.grade.inside.gradients import backward\n{made}"
    if case.call != "kept":
        return call_text(function, case.arguments)
    names = [f"result_{number}" for number in range(1, len(case.arguments) + 1)]
    lines = [
        f"{name} = {call_text(function, given)}"
        for name, given in zip(names, case.arguments, strict=True)
    ]
    return "\n".join([*lines, f"[{', '.join(names)}]"])


def call_text(function: str, arguments: tuple[Any, ...]) -> str:
    """The call as Python, a line or several, at most `LONGEST` characters."""
    shown = [_with_tensors(item) for item in arguments]
    parts = [pprint.pformat(item, width=WIDTH, sort_dicts=False) for item in shown]
    text = f"{function}({', '.join(parts)})"
    if "\n" in text or len(text) > WIDTH:
        inner = ",\n".join(parts).replace("\n", "\n    ")
        text = f"{function}(\n    {inner},\n)"
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n…"


def _with_tensors(item: Any) -> Any:
    """The argument with every tensor as the source that makes it."""
    if isinstance(item, torch.Tensor):
        return Verbatim(ranks_words.as_source(item))
    return tuple(map(_with_tensors, item)) if type(item) is tuple else item


def _expected(case: Case, expected: Result, got: Result | None) -> str:
    if expected[0] == "raised":
        return str(expected[1])
    if case.call == "run_ranks":
        return ranks_words.sides(case, expected[1], got[1] if got and got[0] == "value" else [])[0]
    value, other = _focused(case, expected[1]), _value(case, got)
    return differing(value, other) if other is not None else cut(safe_repr(value))


def _actual(case: Case, expected: Result, got: Result | None) -> str:
    if got is None or not got:
        return ""
    if got[0] == "raised":
        return cut(f"{got[1]}: {got[2]}" if got[2] else str(got[1]))
    if got[0] == "not_plain":
        return cut(str(got[1]))
    if got[0] == "missing":
        return cut(" · ".join(str(part) for part in got[1:]))
    if got[0] == "broken":
        return cut(str(got[2]))
    if case.call == "run_ranks":
        return ranks_words.sides(case, expected[1], got[1])[1]
    if expected[0] == "raised":
        return cut(safe_repr(got[1]))
    return differing(_focused(case, got[1]), _focused(case, expected[1]))


def _value(case: Case, got: Result | None) -> Any:
    returned = got is not None and bool(got) and got[0] in ("value", "changed_input")
    return _focused(case, got[1]) if returned and got is not None else None


def _focused(case: Case, value: Any) -> Any:
    """Of a dict that is compared by some of its entries, or paths, only these."""
    if case.compare in FOCUS:
        return FOCUS[case.compare](value, case.options)
    if case.compare not in ("entries", "all_but") or not plain_keys(value):
        return value
    keys = case.options["keys"]
    inside = case.compare == "entries"
    return {key: item for key, item in value.items() if (key in keys) is inside}


def _reasons(case: Case, expected: Result, got: Result | None, source: str) -> list[Note]:
    if got is None or not got:
        return [("case_unanswered", {})]
    if got[0] == "raised":
        return _raised(got, source)
    if got[0] == "not_plain":
        return [("case_not_plain", {"type": got[1]})]
    if got[0] == "missing":
        return [(f"case_{got[1]}", {"said": _without_file(got[2]) if len(got) > 2 else ""})]
    if got[0] == "broken":
        return [(f"case_ranks_{got[1]}", {})]
    notes: list[Note] = []
    if got[0] == "changed_input":
        notes.append(("case_changed_input", _changes(case, got)))
    if case.call == "detached" and MARK in safe_repr(got[1]):
        notes.append(("case_shares_input", {}))
    elif expected[0] == "value" and case.call != "run_ranks":
        notes += _looks(_focused(case, got[1]), _focused(case, expected[1]))
    return notes


def _without_file(said: str) -> str:
    """An error's text with the line alone, where Python names a file that the student never saw."""
    return re.sub(r"\(<[^<>]*>, line (\d+)\)", r"(line \1)", said)


def _raised(got: Result, source: str) -> list[Note]:
    notes: list[Note] = [("case_raised", {"type": got[1]})]
    line = got[3] if len(got) > 3 else None
    lines = source.splitlines()
    if isinstance(line, int) and 0 < line <= len(lines):
        notes.append(("case_line", {"line": line, "text": cut(lines[line - 1].strip())}))
    return notes


def _changes(case: Case, got: Result) -> Mapping[str, Any]:
    """What the arguments were and became, where that came back."""
    after = got[2] if len(got) > 2 else None
    if not isinstance(after, tuple | list) or len(after) != len(case.arguments):
        return {"was": "", "now": ""}
    for was, now in zip(case.arguments, after, strict=True):
        if not same(now, was):
            return {"was": differing(was, now), "now": differing(now, was)}
    return {"was": "", "now": ""}


def _looks(got: Any, expected: Any) -> list[Note]:
    """What types and keys alone say."""
    if got is None and expected is not None:
        return [("case_nothing", {})]
    kind = other_type(got, expected)
    if kind:
        place, found, wanted = kind
        return [("case_type", {"place": place, "got": found, "wanted": wanted})]
    if isinstance(got, dict) and isinstance(expected, dict) and plain_keys(got):
        extra = [safe_repr(key) for key in got if key not in expected]
        missing = [safe_repr(key) for key in expected if key not in got]
        if extra or missing:
            said = {"extra": ", ".join(extra) or "–", "missing": ", ".join(missing) or "–"}
            return [("case_keys", said)]
    return []
