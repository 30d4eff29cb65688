"""Finds the modules of ``parlab.lesson`` that a lesson needs, for a twin to carry."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from parlab.author.problems import Problem, Refused
from parlab.author.source import Cell, Report

# The quotes around a carried source: ruff never writes them, so sources stay readable as they are.
QUOTE = "'''"
_PACKAGE = "parlab.lesson"
_ALWAYS = ("parlab", _PACKAGE, f"{_PACKAGE}.language")


def check_imports(cell: Cell, tree: ast.Module, root: Path, report: Report) -> None:
    """Refuses an import from parlab that a single-file twin could not carry."""
    for name, line in imported(tree, "", root):
        fault = _fault(name, root)
        if fault:
            report(cell.line + line, fault)


def carried_modules(trees: Iterable[ast.Module], root: Path) -> dict[str, str]:
    """The sources that a lesson's cells need, each after those that it imports.

    Args:
        trees: the lesson's code cells.
        root: the repository's root.

    Raises:
        Refused: a module cannot be read, holds the quotes, leaves ``parlab.lesson`` or imports
            itself in a circle.
    """
    carried: dict[str, str] = {}
    for name in _ALWAYS:
        _carry(name, root, carried, ())
    for tree in trees:
        for name, _ in imported(tree, "", root):
            _carry(name, root, carried, ())
    return carried


def _carry(name: str, root: Path, carried: dict[str, str], importing: tuple[str, ...]) -> None:
    if name in carried:
        return
    parent = name.rpartition(".")[0]
    if parent not in ("", *_ALWAYS):
        _carry(parent, root, carried, importing)
    file = _file(name, root)
    shown = file.relative_to(root).as_posix() if file else name.replace(".", "/") + ".py"
    if name in importing:
        circle = " → ".join([*importing[importing.index(name) :], name])
        raise Refused([Problem(shown, 1, f"modules import each other in a circle: {circle}")])
    if not file:
        raise Refused([Problem(shown, 1, "no such module, but lessons need it")])
    text = file.read_text(encoding="utf-8")
    if QUOTE in text:
        line = text[: text.index(QUOTE)].count("\n") + 1
        raise Refused([Problem(shown, line, f'{QUOTE} would end the copy in a twin: use """')])
    module = f"{name}.__init__" if file.name == "__init__.py" else name
    for needed, line in imported(ast.parse(text), module, root):
        fault = _fault(needed, root)
        if fault:
            raise Refused([Problem(shown, line, fault)])
        if needed != name and needed not in _ALWAYS[:2]:
            _carry(needed, root, carried, (*importing, name))
    carried[name] = text if text.endswith("\n") else text + "\n"


def imported(tree: ast.Module, module: str, root: Path) -> Iterator[tuple[str, int]]:
    """The parlab modules that a file or cell imports, also within functions, and where."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = module.rsplit(".", node.level)[0] + "." if node.level else ""
            base = (package + (node.module or "")).rstrip(".")
            names = [f"{base}.{alias.name}" for alias in node.names]
            # `from package import module` against `from module import name`
            names = [name if _file(name, root) else base for name in names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "parlab":
                yield name, node.lineno


def _fault(name: str, root: Path) -> str | None:
    """Why an import of a parlab module cannot be carried, if it cannot."""
    if name not in _ALWAYS and not name.startswith(_PACKAGE + "."):
        return f"import of {name}: lessons and their modules import only from {_PACKAGE}"
    return None if _file(name, root) else f"import of {name}: there is no such module; mend it"


def _file(name: str, root: Path) -> Path | None:
    path = root.joinpath(*name.split("."))
    candidates = (path.with_name(path.name + ".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)
