"""Compares the two languages of a markdown cell: structure, links, formulas and numbers agree."""

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

from parlab.author.source import Cell, Report
from parlab.author.text import cjk_run, numbers, one_sided

_HTML_LINK = re.compile(r"""<[^>]*?\b(?:href|src)\s*=\s*["']([^"']*)""", re.IGNORECASE)
# ASCII only: Chinese may follow an address without a space.
_BARE_LINK = re.compile(r"https?://[^\s()<>\"'\x80-\U0010ffff]+")
_FOLD, _FOLD_END = "<details>", "</details>"
_FOLD_TAG = re.compile(r"</?details\b", re.IGNORECASE)


@dataclass
class Outline:
    """What of a text's structure must be the same in both languages."""

    headings: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    formulas: list[str] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    folded_formulas: list[str] = field(default_factory=list)


@cache
def outline(text: str) -> Outline:
    """The structure of a markdown text, and its words, code left out."""
    found = Outline()
    for token in _parser().parse(text):
        _collect(token, found)
    return found


def check_prose(cell: Cell, report: Report) -> None:
    """Refuses a fold that stays open or hides a formula, and Chinese prose without Chinese."""
    found = outline(cell.source)
    if found.blocks.count(_FOLD) != found.blocks.count(_FOLD_END):
        report(cell.line_with("details>"), "<details> and </details> are not in pairs: mend that")
    for formula in found.folded_formulas:
        report(
            cell.line_with(formula),
            f"formula {formula!r} inside <details>, where viewers may not set it: say it in words",
        )
    if cell.language == "zh" and len(found.words) > 2 and not cjk_run(cell.source):
        report(cell.line, f"no Chinese in the Chinese cell ({found.words[0]} …): translate it")


def compare_prose(zh: Cell, en: Cell, report: Report) -> None:
    """Refuses structure or numbers that differ between the languages."""
    here, there = outline(zh.source), outline(en.source)
    if here.headings != there.headings:
        report(
            en.line,
            f"headings differ from the Chinese cell (line {zh.line}): {_levels(here)} there, "
            f"{_levels(there)} here: give both the same levels in the same order",
        )
    _compare_bags("links", _bag(here.links), _bag(there.links), zh, en, report)
    _compare_bags("formulas", Counter(here.formulas), Counter(there.formulas), zh, en, report)
    _compare_bags(
        "folds and table rows", Counter(here.blocks), Counter(there.blocks), zh, en, report
    )
    _compare_bags("numbers", numbers(zh.source), numbers(en.source), zh, en, report)


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)


def _collect(token: Token, found: Outline) -> None:
    if token.type == "heading_open":
        found.headings.append(token.tag)
    elif token.type.startswith("math"):
        found.formulas.append(token.content.strip())
        if found.blocks.count(_FOLD) > found.blocks.count(_FOLD_END):
            found.folded_formulas.append(found.formulas[-1])
    elif token.type in ("html_block", "html_inline"):
        found.links += _HTML_LINK.findall(token.content)
        found.blocks += [tag.lower() + ">" for tag in _FOLD_TAG.findall(token.content)]
    elif token.type == "tr_open":
        found.blocks.append("table row")
    elif token.type == "text":
        found.links += [url.rstrip(".,;:!?") for url in _BARE_LINK.findall(token.content)]
        found.words += re.findall("[A-Za-z]{2,}", token.content)
    for attribute in ("href", "src"):
        if attribute in token.attrs:
            found.links.append(str(token.attrs[attribute]))
    automatic = False  # whether the next text is the address of a <link>, collected as such
    for child in token.children or []:
        if not automatic:
            _collect(child, found)
        automatic = child.type == "link_open" and child.info == "auto"


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
