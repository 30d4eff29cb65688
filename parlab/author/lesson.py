"""A lesson: its source read, judged by every rule, and put in order."""

import ast
import hashlib
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from parlab.author.anchors import (
    Anchor,
    anchor_of,
    check_anchor_lines,
    check_asserts,
    check_order,
    check_subject,
)
from parlab.author.code_pairs import compare_code
from parlab.author.code_rules import (
    check_comments,
    check_language,
    check_nbval_markers,
    check_plot_text,
    parse_cell,
)
from parlab.author.embed import check_imports
from parlab.author.markers import check_markers, check_stub, solution_blocks, stub
from parlab.author.problems import Problem, Refused
from parlab.author.prose import check_prose, compare_prose
from parlab.author.repo_links import check_repo_links
from parlab.author.repository import Repository
from parlab.author.source import Cell, Report, read_cells

LANGUAGES = ("zh", "en")
# Characters; a shorter block, such as `return x`, gives nothing away.
_SHORTEST_GIVEAWAY = 12


@dataclass(frozen=True)
class Unit:
    """What becomes one cell of a notebook: a shared cell, or a language pair.

    Attributes:
        zh: the Chinese cell, or the shared one.
        en: the English cell, or the shared one again.
        anchor: what a code cell is, if it is something.
        cell_id: the built cell's id, the same in both languages and all kinds of notebook.
    """

    zh: Cell
    en: Cell
    anchor: Anchor | None
    cell_id: str

    def cell(self, language: str) -> Cell:
        """The cell that readers of ``language`` see."""
        return self.zh if language == "zh" else self.en


@dataclass(frozen=True)
class Lesson:
    """A source that obeys every rule."""

    name: str
    source: Path
    units: tuple[Unit, ...]

    @property
    def setup(self) -> Unit:
        """The set-up cell."""
        return next(unit for unit in self.units if unit.cell_id == "setup")


def read_lesson(source: Path, repository: Repository, built: Collection[str]) -> Lesson:
    """Reads a lesson's source.

    Args:
        source: a ``solutions/NN_name.py``.
        repository: where it lies.
        built: paths that the build makes, which links may lead to.

    Raises:
        Refused: with every problem of the file.
    """
    file = repository.relative(source)
    cells, problems = read_cells(file, source.read_bytes())

    def report(line: int, message: str) -> None:
        problems.append(Problem(file, line, message))

    if not cells:
        raise Refused(problems)
    pairs = _pair(cells, report)
    for cell in cells:
        if not cell.source.strip():
            report(cell.line, "the cell is empty: drop it")
        check_language(cell, report)
        check_nbval_markers(cell, report)
        if cell.markdown:
            check_prose(cell, report)
            check_repo_links(cell, repository, built, report)
    anchors = [anchor_of(zh.source) for zh, _ in pairs if not zh.markdown]
    tasks = {anchor.cell_id: anchor for anchor in anchors if anchor and anchor.is_task}
    for zh, en in pairs:
        if zh.tags != en.tags:
            report(en.line, f"tags {list(en.tags)} differ from the Chinese cell's {list(zh.tags)}")
        if zh.markdown:
            compare_prose(zh, en, report)
        else:
            _check_code(zh, en, tasks, repository, report)
    check_order([(anchor_of(zh.source), zh.line + 1) for zh, _ in pairs if not zh.markdown], report)
    _check_hidden(pairs, report)
    if problems:
        raise Refused(problems)
    return Lesson(source.stem, source, _units(source.stem, pairs))


def _pair(cells: list[Cell], report: Report) -> list[tuple[Cell, Cell]]:
    """Partners in source order; a shared cell is its own partner."""
    pairs: list[tuple[Cell, Cell]] = []
    waiting = list(cells)
    while waiting:
        cell = waiting.pop(0)
        following = waiting[0] if waiting and waiting[0].markdown == cell.markdown else None
        if cell.language is None:
            if cell.markdown:
                report(cell.line, 'markdown without a language: add lang="zh" or lang="en"')
            else:
                pairs.append((cell, cell))
        elif following and (cell.language, following.language) == ("zh", "en"):
            pairs.append((cell, waiting.pop(0)))
        elif following and (cell.language, following.language) == ("en", "zh"):
            report(
                cell.line, f"English before its Chinese partner (line {following.line}): swap them"
            )
            pairs.append((waiting.pop(0), cell))
        else:
            other = "an English" if cell.language == "zh" else "a Chinese"
            place = "directly after it" if cell.language == "zh" else "directly before it"
            report(
                cell.line, f'lang="{cell.language}" cell without {other} partner {place}: add it'
            )
    return pairs


def _check_code(
    zh: Cell, en: Cell, tasks: dict[str, Anchor], repository: Repository, report: Report
) -> None:
    anchor = anchor_of(zh.source)
    trees: list[ast.Module] = []
    sound = True
    for cell in (zh, en) if zh is not en else (zh,):
        tree = parse_cell(cell, report)
        if not tree:
            sound = False
            continue
        trees.append(tree)
        check_anchor_lines(cell.source, cell.line + 1, report)
        check_comments(cell, report)
        check_plot_text(cell, tree, report)
        check_imports(cell, tree, repository.root, report)
        if check_markers(cell.source, anchor, cell.line + 1, report):
            if anchor and anchor.is_task:
                check_stub(cell.source, anchor, cell.line + 1, report)
        else:
            sound = False
        check_asserts(anchor, tree, cell.line + 1, report)
        if anchor and anchor.is_check:
            check_subject(anchor, tasks.get(anchor.task_id), tree, cell.line + 1, report)
    if zh is not en:
        if anchor_of(en.source) != anchor:
            first = zh.source.split("\n")[0]
            report(en.line + 1, f"the Chinese cell starts {first!r}: start this one the same way")
        if sound:
            _compare_pair(zh, en, anchor, trees, report)


def _compare_pair(
    zh: Cell, en: Cell, anchor: Anchor | None, trees: list[ast.Module], report: Report
) -> None:
    differences = compare_code(*trees)
    for difference in differences:
        report(
            en.line + difference.en_line,
            f"{difference.message} (line {zh.line + difference.zh_line}): only docstrings, "
            "comments and messages may differ",
        )
    if anchor and anchor.is_task and not differences:
        stubs = [_parse_stub(cell.source, anchor) for cell in (zh, en)]
        if stubs[0] and stubs[1] and compare_code(stubs[0], stubs[1]):
            report(en.line + 1, "the solution markers enclose other code than in the Chinese cell")


def _parse_stub(source: str, anchor: Anchor) -> ast.Module | None:
    try:
        return ast.parse(stub(source, anchor.label))
    except SyntaxError:
        return None  # already reported by check_stub


def _check_hidden(pairs: list[tuple[Cell, Cell]], report: Report) -> None:
    """Refuses an exercise that shows somewhere, line for line, what a solution block hides."""
    shown: list[tuple[Cell, str]] = []
    blocks: dict[str, str] = {}
    for cell in dict.fromkeys(cell for pair in pairs for cell in pair):
        anchor = None if cell.markdown else anchor_of(cell.source)
        task = anchor if anchor and anchor.is_task else None
        visible = stub(cell.source, task.label) if task else cell.source
        shown.append((cell, "\n".join(line.strip() for line in f"\n{visible}\n".split("\n"))))
        for block in solution_blocks(cell.source) if task else ():
            blocks[block] = task.label if task else ""
    for block, label in blocks.items():
        for cell, visible in shown:
            if len(block) >= _SHORTEST_GIVEAWAY and f"\n{block}\n" in visible:
                report(
                    cell.line_with(block.split("\n")[0]),
                    f"the solution of {label} stands here too: exercises would show it; reword it",
                )


def _units(lesson: str, pairs: list[tuple[Cell, Cell]]) -> tuple[Unit, ...]:
    seen: Counter[str] = Counter()
    units = []
    for zh, en in pairs:
        anchor = None if zh.markdown else anchor_of(zh.source)
        cell_id = anchor.cell_id if anchor else _hash(lesson, zh.source, seen[zh.source])
        seen[zh.source] += 1
        units.append(Unit(zh, en, anchor, cell_id))
    return tuple(units)


def _hash(lesson: str, source: str, occurrence: int) -> str:
    """An id that stays when other cells come or go."""
    return hashlib.sha256(f"{lesson}\0{source}\0{occurrence}".encode()).hexdigest()[:12]
