"""Compares the two languages of a code cell: only docstrings, comments and messages may differ.

A message is a string that on the Chinese side holds Chinese and on the English side none, and that
stands in an assert's message, a call's argument (an exception's included), a dict's value or a
list's or tuple's element. Never in a dict's key, a subscript, a comparison or what is looked up or
opened: there the program itself would differ. Docstrings stand in both languages or in none.
"""

import ast
import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from parlab.author.text import cjk_run, numbers, one_sided


class Place(enum.Enum):
    """Whether a string may be a message where it stands."""

    CODE = enum.auto()
    MESSAGE = enum.auto()
    KEY = enum.auto()  # no message here, nor anywhere within


@dataclass(frozen=True)
class Difference:
    """What differs, and its line in each cell (from 1; 0 where the whole cell differs)."""

    zh_line: int
    en_line: int
    message: str

    def inside(self, zh: ast.AST, en: ast.AST) -> "Difference":
        """The difference with the lines of the nodes around it, where it has none: operators."""
        return replace(self, zh_line=self.zh_line or _line(zh), en_line=self.en_line or _line(en))


_MESSAGE_FIELDS = {
    (ast.Assert, "msg"),
    (ast.Call, "args"),
    (ast.Call, "keywords"),
    (ast.Dict, "values"),
    (ast.DictComp, "value"),
    (ast.List, "elts"),
    (ast.ListComp, "elt"),
    (ast.Tuple, "elts"),
}
_KEY_FIELDS = {
    (ast.Compare, "left"),
    (ast.Compare, "comparators"),
    (ast.Dict, "keys"),
    (ast.DictComp, "key"),
    (ast.Subscript, "slice"),
}
# Where an expression's value is passed through, what holds for it holds for its parts.
_PASSING_FIELDS = {
    (ast.Attribute, "value"),
    (ast.BinOp, "left"),
    (ast.BinOp, "right"),
    (ast.BoolOp, "values"),
    (ast.Call, "func"),
    (ast.FormattedValue, "value"),
    (ast.GeneratorExp, "elt"),
    (ast.IfExp, "body"),
    (ast.IfExp, "orelse"),
    (ast.NamedExpr, "value"),
    (ast.Starred, "value"),
    (ast.Subscript, "value"),
    (ast.keyword, "value"),
}
# Calls whose first argument is a key, a name or a pattern.
_LOOKUP = re.compile(
    r"get|pop|setdefault|startswith|endswith|removeprefix|removesuffix|r?split|r?partition"
    r"|[lr]?strip|r?find|r?index|count|replace|open|Path|(?:get|set|has|del)attr|int|float|eval|exec"
)
_NOT_A_MESSAGE = (
    "a translated string that is not a message (put it straight into an assert's message, a "
    "call's argument, a dict's value or a list's element)"
)
_PERCENT_FIELD = re.compile(r"%(?:\(\w*\))?[-+ #0]*[\d*]*(?:\.[\d*]+)?[a-zA-Z]")
_BRACE_FIELD = re.compile(r"(?<!\{)(?:\{\{)*(\{[^{}]*\})")
_DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def compare_code(zh: ast.Module, en: ast.Module) -> list[Difference]:
    """Every place where the two cells differ in more than docstrings, comments and messages."""
    return list(_compare(zh, en, Place.CODE))


def _compare(zh: ast.AST, en: ast.AST, place: Place) -> Iterator[Difference]:
    if _is_text(zh) and _is_text(en):
        yield from _compare_text(zh, en, place)
        return
    if type(zh) is not type(en):
        yield _differ(zh, en)
        return
    if _documented(zh) != _documented(en):
        yield _differ(zh, en, "a docstring on one side only")
    if _fields_of_format(zh) != _fields_of_format(en):
        yield _differ(zh, en, "the placeholders of a message")
    for field in zh._fields:
        here, there = _children(zh, field), _children(en, field)
        for position, (one, other) in enumerate(zip(here, there, strict=False)):
            within = _place(zh, field, position, place)
            if isinstance(one, ast.AST) and isinstance(other, ast.AST):
                yield from (found.inside(zh, en) for found in _compare(one, other, within))
            elif type(one) is not type(other) or one != other:
                yield _differ(zh, en)
        if len(here) != len(there):
            yield _differ_in_length(zh, en, here, there)


def _children(node: ast.AST, field: str) -> list[object]:
    value = getattr(node, field, None)
    if not isinstance(value, list):
        return [value]
    return value[1:] if field == "body" and _documented(node) else value


def _documented(node: ast.AST) -> bool:
    return isinstance(node, _DOCUMENTED) and ast.get_docstring(node) is not None


def _place(node: ast.AST, field: str, position: int, outside: Place) -> Place:
    key = (type(node), field)
    looked_up = key == (ast.Call, "args") and position == 0 and _looks_up(node)
    if outside is Place.KEY or key in _KEY_FIELDS or looked_up:
        return Place.KEY
    if key in _MESSAGE_FIELDS:
        return Place.MESSAGE
    return outside if key in _PASSING_FIELDS else Place.CODE


def _looks_up(call: ast.AST) -> bool:
    function = getattr(call, "func", None)
    name = getattr(function, "attr", None) or getattr(function, "id", None)
    return isinstance(name, str) and bool(_LOOKUP.fullmatch(name))


def _fields_of_format(node: ast.AST) -> list[str]:
    """What ``"…" % values`` and ``"…".format(values)`` put in, where ``node`` is one of these.

    The order of plain ``%`` fields counts, that of all others is free.
    """
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        text, form = node.left, _PERCENT_FIELD
    elif isinstance(node, ast.Attribute) and node.attr == "format":
        text, form = node.value, _BRACE_FIELD
    else:
        return []
    if not (isinstance(text, ast.Constant) and isinstance(text.value, str)):
        return []
    fields = form.findall(text.value)
    plain = form is _PERCENT_FIELD and not any("(" in field for field in fields)
    return fields if plain else sorted(fields)


def _is_text(node: ast.AST) -> bool:
    plain = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return plain or isinstance(node, ast.JoinedStr)


def _compare_text(zh: ast.AST, en: ast.AST, place: Place) -> Iterator[Difference]:
    if ast.dump(zh) == ast.dump(en):
        return
    here, there = _literal(zh), _literal(en)
    if not cjk_run(_literal(zh, nested=True)) or cjk_run(_literal(en, nested=True)):
        yield _differ(zh, en)
    elif place is not Place.MESSAGE:
        yield _differ(zh, en, _NOT_A_MESSAGE)
    elif one_sided(numbers(here), numbers(there)):
        yield _differ(zh, en, f"numbers ({one_sided(numbers(here), numbers(there))})")
    elif not _same_placeholders(zh, en):
        yield _differ(zh, en, "the placeholders of a message")


def _literal(node: ast.AST, nested: bool = False) -> str:
    """A string's text without its placeholders, or with the strings inside them too."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.JoinedStr)
    parts = ast.walk(node) if nested else iter(node.values)
    return "\0".join(
        part.value
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )


def _same_placeholders(zh: ast.AST, en: ast.AST) -> bool:
    """Whether both hold the same placeholders, in any order."""
    left = _placeholders(en)
    for one in _placeholders(zh):
        match = next((other for other in left if _same_placeholder(one, other)), None)
        if match is None:
            return False
        left.remove(match)
    return not left


def _placeholders(node: ast.AST) -> list[ast.FormattedValue]:
    values = node.values if isinstance(node, ast.JoinedStr) else []
    return [value for value in values if isinstance(value, ast.FormattedValue)]


def _same_placeholder(zh: ast.FormattedValue, en: ast.FormattedValue) -> bool:
    return not any(_compare(zh, en, Place.MESSAGE))


def _differ(zh: ast.AST, en: ast.AST, what: str = "the code") -> Difference:
    return Difference(
        _line(zh), _line(en), f"{what}: {_show(zh)} in Chinese, {_show(en)} in English"
    )


def _differ_in_length(
    zh: ast.AST, en: ast.AST, here: list[object], there: list[object]
) -> Difference:
    longer, shorter = (here, there) if len(here) > len(there) else (there, here)
    extra = longer[len(shorter)]
    side, other = ("Chinese", "English") if longer is here else ("English", "Chinese")
    shown = _show(extra) if isinstance(extra, ast.AST) else repr(extra)
    line = _line(extra) if isinstance(extra, ast.AST) else 0
    return Difference(
        (line if longer is here else 0) or _line(zh),
        (line if longer is there else 0) or _line(en),
        f"the code: {shown} in {side} has nothing opposite in {other}",
    )


def _line(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 0))


def _show(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split()) or type(node).__name__
    return f"`{text[:80]}…`" if len(text) > 80 else f"`{text}`"
