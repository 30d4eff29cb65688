"""Compares the two languages of a markdown cell: structure, links, formulas and numbers agree."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from parlab.author.source import Cell, Report
from parlab.author.text import numbers, one_sided

_HTML_LINK = re.compile(r"""<[^>]*?\b(?:href|src)\s*=\s*["']([^"']*)""", re.IGNORECASE)


@dataclass
class Outline:
    """What of a text's structure must be the same in both languages."""

    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)


@cache
def outline(text: str) -> Outline:
    """The headings' levels, link targets and formulas of a markdown text, code left out."""
    found = Outline()
    for token in _parser().parse(text):
        _collect(token, found)
    return found


def compare_prose(zh: Cell, en: Cell, report: Report) -> None:
    """Refuses headings, links, formulas or numbers that differ between the languages."""
    here, there = outline(zh.source), outline(en.source)
    if here.headings != there.headings:
        report(
            en.line,
            f"headings differ from the Chinese cell (line {zh.line}): {_levels(here)} there, "
            f"{_levels(there)} here: give both the same levels in the same order",
        )
    _compare_bags("links", _bag(here.links), _bag(there.links), zh, en, report)
    _compare_bags("formulas", Counter(here.formulas), Counter(there.formulas), zh, en, report)
    _compare_bags("numbers", numbers(zh.source), numbers(en.source), zh, en, report)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)


def _collect(token: Token, found: Outline) -> None:
    if token.type == "heading_open":
        found.headings.append(token.tag)
    elif token.type.startswith("math"):
        found.formulas.append(token.content.strip())
    elif token.type in ("html_block", "html_inline"):
        found.links += _HTML_LINK.findall(token.content)
    for attribute in ("href", "src"):
        if attribute in token.attrs:
            found.links.append(str(token.attrs[attribute]))
    for child in token.children or []:
        _collect(child, found)


def _bag(links: list[str]) -> Counter[str]:
    return Counter(re.sub(r"(?<=[:/])en/", "", link) for link in links)


def _levels(found: Outline) -> str:
    return " ".join(found.headings) or "none"


def _compare_bags(
    what: str, here: Counter[str], there: Counter[str], zh: Cell, en: Cell, report: Report
) -> None:
    difference = one_sided(here, there)
    if not difference:
        return
    extra = min(there - here, default=None)
    line = en.line
    if extra is not None:
        # A number is looked for as a number: the 1 of "1F1B" is not the one in "16".
        for number, text in enumerate(en.source.split("\n"), en.line + 1):
            if extra in (numbers(text) if what == "numbers" else text):
                line = number
                break
    report(
        line,
        f"{what} differ from the Chinese cell (line {zh.line}); {difference}: make them equal",
    )
