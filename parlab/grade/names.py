"""Which names a piece of a cell binds at module level, and which it takes from around it."""

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

_OWN_SCOPE = ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
BUILTINS = frozenset(dir(builtins))
ANY = "*"  # what `from module import *` binds
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Calls that set up a library for what follows: torch.manual_seed, np.random.seed, …
_SETTING = (
    "set", "seed", "manual_seed", "use_", "simplefilter", "filterwarnings", "enable", "disable",
)  # fmt: skip


@dataclass(frozen=True)
class Piece:
    """One or more whole lines of a cell: a top-level statement, or several that share a line.

    Attributes:
        source: the lines.
        binds: names that running it binds at module level (``ANY`` for a star import).
        takes: module-level names that it, or a function in it, reads, built-in ones too.
        at_once: those of ``takes`` that are read when the piece runs, not when a function in it is
            called.
        changes: names whose value it changes in place: ``x[...] = ``, ``x.y = ``, ``x.append()``,
            or may change: ``fill(x)``, ``@x.register``.
        is_setting: whether it sets up an imported module.
        is_import: whether it only imports.
    """

    source: str
    binds: frozenset[str] = frozenset()
    takes: frozenset[str] = frozenset()
    at_once: frozenset[str] = frozenset()
    changes: frozenset[str] = frozenset()
    is_setting: bool = False
    is_import: bool = False
    nodes: tuple[ast.stmt, ...] = field(default=(), repr=False, compare=False)


def pieces(source: str, tree: ast.Module) -> list[Piece]:
    """A cell cut at its top-level statements; comments go with the statement below them."""
    lines = source.split("\n")
    groups: list[list[ast.stmt]] = []
    end = 0
    for node in tree.body:
        if groups and _first_line(node) <= end:
            groups[-1].append(node)
        else:
            groups.append([node])
        end = max(end, node.end_lineno or node.lineno)
    found, start = [], 0
    for group in groups:
        stop = max(node.end_lineno or node.lineno for node in group)
        found.append(_piece("\n".join(lines[start:stop]).strip("\n"), group))
        start = stop
    return found


def joined(found: Sequence[Piece]) -> str:
    """Pieces as one source again, definitions set off by blank lines."""
    parts: list[str] = []
    for piece in found:
        wide = any(isinstance(node, Definition) for node in piece.nodes)
        parts.append(("\n" if wide and parts else "") + piece.source)
    return "\n".join(parts)


def from_outside(found: Sequence[Piece]) -> set[str]:
    """The names that pieces, run in order, take from what ran before them."""
    bound: set[str] = set()
    outside: set[str] = set()
    for piece in found:
        outside |= piece.at_once - bound
        bound |= piece.binds
    for piece in found:
        outside |= piece.takes - piece.at_once - bound
    return outside


def definitions(tree: ast.AST, name: str) -> Iterator[ast.stmt]:
    """Statements at module level, also inside ``if``, ``try`` and ``with``, that bind ``name``."""
    for node in _module_level(tree):
        if isinstance(node, Definition):
            if node.name == name:
                yield node
        elif name in _bound_by(node):
            yield node


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _piece(source: str, nodes: list[ast.stmt]) -> Piece:
    binds: set[str] = set()
    at_once: set[str] = set()
    changes: set[str] = set()
    for node in nodes:
        for inner in _module_level(node, include=True):
            binds |= _bound_by(inner)
            changes |= _changed_by(inner)
        at_once |= _read_now(node)
    return Piece(
        source,
        frozenset(binds),
        frozenset((_taken(source, nodes) | at_once) - {""}),
        frozenset(at_once - {""}),
        frozenset(changes),
        all(_is_setting(node) for node in nodes),
        all(isinstance(node, ast.Import | ast.ImportFrom) for node in nodes),
        tuple(nodes),
    )


def _module_level(tree: ast.AST, include: bool = False) -> Iterator[ast.stmt]:
    """The statements below ``tree`` that run in the module's own scope."""
    waiting: list[ast.AST] = [tree] if include else list(ast.iter_child_nodes(tree))
    waiting.reverse()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Definition | ast.expr):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _bound_by(node: ast.stmt) -> set[str]:
    """Names that this statement itself binds, not those of statements inside it."""
    if isinstance(node, Definition):
        return {node.name}
    if isinstance(node, ast.Import):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name for alias in node.names}
    found = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            found.add(part.id)
        elif (
            isinstance(part, ast.ExceptHandler)
            and part.name
            or isinstance(part, ast.MatchAs | ast.MatchStar)
            and part.name
        ):
            found.add(part.name)
        elif isinstance(part, ast.NamedExpr):
            found.add(part.target.id)
        if isinstance(part, _OWN_SCOPE):
            continue
        waiting += [c for c in ast.iter_child_nodes(part) if not isinstance(c, ast.stmt)]
    return found


def _changed_by(node: ast.stmt) -> set[str]:
    """Names whose value the statement changes: stores below them, or calls one of their methods."""
    found = {_root(decorator) for decorator in getattr(node, "decorator_list", ())}
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        found |= _handed_over(node.value)
    for part in _own_parts(node):
        if isinstance(part, ast.Attribute | ast.Subscript) and isinstance(
            part.ctx, ast.Store | ast.Del
        ):
            found.add(_root(part))
        elif isinstance(part, ast.AugAssign):
            found.add(_root(part.target))
        elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            found.add(_root(part.func))
    return found - {""}


def _handed_over(call: ast.Call) -> set[str]:
    """What a call whose result nobody keeps may have been made to change."""
    if _root(call.func) in BUILTINS - {"setattr", "delattr"}:
        return set()
    return {_root(part) for part in (*call.args, *(keyword.value for keyword in call.keywords))}


def effects(definition: ast.stmt) -> set[str]:
    """Names that running a function's or a class's body may bind or change at module level."""
    found: set[str] = set()
    for node in ast.walk(definition):
        if isinstance(node, ast.Global):
            found |= set(node.names)
        elif isinstance(node, ast.stmt):
            found |= _changed_by(node)
    return found


def _own_parts(node: ast.stmt) -> Iterator[ast.AST]:
    if isinstance(node, Definition):
        return
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += [
            child
            for child in ast.iter_child_nodes(part)
            if not isinstance(child, ast.stmt | ast.Lambda)
        ]


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _read_now(node: ast.stmt) -> set[str]:
    """Names read when the statement runs: all but those in the bodies of functions."""
    found = set()
    waiting: list[ast.AST] = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            found.add(part.id)
        if isinstance(part, ast.AugAssign):
            found.add(_root(part.target))
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [*part.decorator_list, *part.args.defaults]
            waiting += [default for default in part.args.kw_defaults if default]
        elif isinstance(part, ast.Lambda):
            waiting += [*part.args.defaults]
        else:
            waiting += ast.iter_child_nodes(part)
    return found


def _taken(source: str, nodes: list[ast.stmt]) -> set[str]:
    """Module-level names that the source reads, in functions too."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            waiting = [symtable.symtable(source, "<cell>", "exec")]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Cut out of its cell it does not stand alone (top-level await): every name that it reads.
        return {
            part.id
            for node in nodes
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)
        }
    found = set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        module = table.get_type() == "module"
        for symbol in table.get_symbols():
            # What a function declares global and changes, it may read first: `n += 1`.
            used = symbol.is_referenced() or (symbol.is_declared_global() and not module)
            if used and (module or symbol.is_global()):
                found.add(symbol.get_name())
    return found


def _is_setting(node: ast.stmt) -> bool:
    """``torch.manual_seed(0)``, ``torch.backends.x = y``: only what needs no other name's value."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Attribute) and _root(target) for target in node.targets)
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        function = node.value.func
        return (
            isinstance(function, ast.Attribute)
            and function.attr.startswith(_SETTING)
            and bool(_root(function))
        )
    return False
