"""What a single code cell may hold."""

import ast
import io
import re
import token
import tokenize
import warnings
from collections.abc import Iterator

from parlab.author.comments import comments
from parlab.author.source import Cell, Report
from parlab.author.text import cjk_run

_OLDEST = (3, 10)
_MAGIC = re.compile(r"\s*[%!]")
_NBVAL_COMMENT = re.compile(r"#\s*((?:NBVAL|PYTEST_VALIDATE)_\w+)")
_NBVAL_TAG = re.compile(r"raises-exception|nbval-.*", re.IGNORECASE)
_PLOT_CALL = re.compile(
    r"annotate|arrow|axhline|axhspan|axvline|axvspan|bar|bar_label|barh|boxplot|broken_barh"
    r"|clabel|colorbar|contour|contourf|errorbar|eventplot|figtext|fill|fill_between"
    r"|fill_betweenx|hist|hlines|imshow|label_outer|legend|loglog|matshow|pcolormesh|pie"
    r"|plot|quiver|scatter|semilogx|semilogy|set|set_label|set_text|set_title"
    r"|set_window_title|set_[xyz](?:label|ticks|ticklabels)|stackplot|stairs|stem|step|suptitle|supxlabel|supylabel|table|text|title|violinplot|vlines"
    r"|xlabel|xticks|ylabel|yticks"
)
_DRAWING = re.compile(r"(?:draw|plot)(?:_\w+)?")
# matplotlib's classes that write their first arguments.
_TEXT_CLASS = re.compile(r"Text|TextArea|Annotation|AnchoredText")
# Whatever takes one of these writes it into a figure.
_LABELS = {"label", "labels", "title", "suptitle", "xlabel", "ylabel", "zlabel"}


def parse_python(source: str) -> ast.Module:
    """The syntax tree of a cell that every supported Python can run.

    Raises:
        SyntaxError: where the oldest supported Python cannot.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            tree = ast.parse(source, feature_version=_OLDEST)
            # Compiling finds what parsing does not, such as a return outside a function.
            compile(source, "cell", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except (ValueError, RecursionError) as error:
            raise SyntaxError(str(error)) from None
    if hasattr(token, "FSTRING_START"):
        _refuse_new_f_strings(source)
    return tree


def parse_cell(cell: Cell, report: Report) -> ast.Module | None:
    """The cell's syntax tree; None, and a problem, where it is not Python."""
    try:
        return parse_python(cell.source)
    except SyntaxError as error:
        line = cell.line + (error.lineno or 1)
        text = (error.text or "").strip("\n")[:80]
        if _MAGIC.match(text):
            report(
                line, f"{text.strip()!r} is a notebook magic, not Python: lessons use none, drop it"
            )
        else:
            report(
                line, f"not valid Python {_OLDEST[0]}.{_OLDEST[1]}: {error.msg}: {text.strip()!r}"
            )
        return None


def check_language(cell: Cell, report: Report) -> None:
    """Refuses Chinese in a cell that English readers see."""
    if cell.language == "zh":
        return
    for number, text in enumerate(cell.source.split("\n"), cell.line + 1):
        run = cjk_run(text)
        if run and cell.language == "en":
            report(number, f"{run!r} in an English cell: translate it")
        elif run and not cell.markdown:
            report(number, f'{run!r} in a shared cell: make it a lang="zh" / lang="en" pair')


def check_nbval_markers(cell: Cell, report: Report) -> None:
    """Refuses whatever would let plain nbval, or Run All, pass a wrong answer."""
    for tag in cell.tags:
        if _NBVAL_TAG.fullmatch(tag):
            report(cell.line, f"tag {tag!r} lets wrong answers pass: drop it")
    if cell.markdown:
        return
    for number, text in enumerate(cell.source.split("\n"), cell.line + 1):
        for marker in _NBVAL_COMMENT.findall(text):
            report(number, f"comment {marker!r} lets wrong answers pass: drop it")


def check_comments(cell: Cell, report: Report) -> None:
    """Refuses a comment that looks like a cell's header, but that jupytext takes for a comment."""
    for comment in comments(cell.source):
        if re.match(r"#\s*%%", comment.text):
            report(
                cell.line + comment.line,
                f"{comment.text!r} starts no cell: write '# %%', or another comment",
            )


def check_plot_text(cell: Cell, tree: ast.Module, report: Report) -> None:
    """Refuses Chinese in a plot call: hosted runtimes have no font for it."""
    found: set[tuple[int, str, str]] = set()
    imported = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("matplotlib")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = _called(node)
        bare = isinstance(node.func, ast.Name)
        drawn: list[ast.AST] = [word for word in node.keywords if word.arg in _LABELS]
        if (
            _DRAWING.fullmatch(name)
            or _TEXT_CLASS.fullmatch(name)
            or (name in imported if bare else _PLOT_CALL.fullmatch(name))
        ):
            drawn = [*node.args, *node.keywords]
        found |= {(line, run, name) for line, run in _cjk_strings(drawn)}
    for line, run, name in sorted(found):
        report(
            cell.line + line,
            f"{run!r} in the plot call {name}(): no hosted runtime has a Chinese font, "
            "so label figures in English or with symbols",
        )


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _cjk_strings(arguments: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for argument in arguments:
        for node in ast.walk(argument):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                run = cjk_run(node.value)
                if run:
                    yield node.lineno, run


def _refuse_new_f_strings(source: str) -> None:
    """Raises where an f-string needs Python 3.12, whose parser no longer tells."""
    open_quotes: list[str] = []
    for part in tokenize.generate_tokens(io.StringIO(source).readline):
        kind = token.tok_name[part.type]
        if kind == "FSTRING_END":
            open_quotes.pop()
        outer = open_quotes[:-1] if kind == "FSTRING_MIDDLE" else open_quotes
        if outer and (
            kind == "COMMENT"
            or "\\" in part.string
            or any(quote in part.string for quote in outer)
            or ("\n" in part.string and any(len(quote) == 1 for quote in outer))
        ):
            raise SyntaxError(
                "an f-string that needs Python 3.12 (quote, backslash, # or line break in {})",
                ("cell", part.start[0], part.start[1] + 1, part.line),
            )
        if kind == "FSTRING_START":
            open_quotes.append(part.string.lstrip("fFrR"))
