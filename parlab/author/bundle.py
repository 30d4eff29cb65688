"""Files that a twin carries besides readable modules: programs and data, packed into text.

A lesson's set-up cell names them in comments, ``# CARRY path path …``, from the repository's root:

- a file, a pattern such as ``folder/*.json``, or a folder, which stands for its ``.py`` and
  ``.json`` files;
- a lesson's source, of which only the set-up and TODO cells go along, for the loader. One that is
  named in full can be run from a learner's notebook: what its cells import goes along too.

The modules of ``parlab.lesson`` that carried programs import go along, and packages' own files.
The packed text is the same wherever it is made (bzip2 has one implementation), and it is no
readable text: a lesson's own answers are in it when its benchmark loads them.
"""

import ast
import base64
import bz2
import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from parlab.author.embed import imported
from parlab.author.problems import Problem, Refused

_CARRY = re.compile(r"# CARRY (.+)\n?")
_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)
_SUFFIXES = (".py", ".json")
_LINE = 96


def without_carried(source: str) -> str:
    """A set-up cell without its ``# CARRY`` lines."""
    return _CARRY.sub("", source)


def pack(source: str, root: Path, shown: str) -> tuple[str, str] | None:
    """What the set-up cell ``source`` carries: lines of base64, and their content's SHA-256.

    Args:
        root: the repository's root.
        shown: the lesson's source, for problems.

    Returns:
        None where it carries nothing.

    Raises:
        Refused: a path matches no file.
    """
    patterns = [word for line in _CARRY.findall(source) for word in line.split()]
    if not patterns:
        return None
    texts: dict[str, str] = {}
    waiting: list[str] = []
    for pattern in patterns:
        files = list(_files(root, pattern))
        if not files:
            raise Refused([Problem(shown, 1, f"# CARRY {pattern}: no such file; mend the path")])
        for file in files:
            path = file.relative_to(root).as_posix()
            texts[path], needed = _content(file, path, path == pattern)
            waiting += _modules(ast.parse(needed), path, root) if needed else []
    while waiting:
        path = waiting.pop()
        if path not in texts:
            text = (root / path).read_text(encoding="utf-8")
            texts[path] = text
            waiting += _modules(ast.parse(text), path, root)
    for path in list(texts):
        for folder in Path(path).parents:
            package = (folder / "__init__.py").as_posix()
            if path.endswith(".py") and (root / package).is_file():
                texts[package] = (root / package).read_text(encoding="utf-8")
    content = json.dumps(texts, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    data = bz2.compress(content.encode("utf-8"))
    packed = base64.b64encode(data).decode("ascii")
    lines = [packed[at : at + _LINE] for at in range(0, len(packed), _LINE)]
    return "\n".join(lines), hashlib.sha256(data).hexdigest()


def _files(root: Path, pattern: str) -> Iterator[Path]:
    folder = root / pattern
    if folder.is_dir():
        found = (file for file in folder.rglob("*") if file.suffix in _SUFFIXES)
        yield from sorted(file for file in found if "__pycache__" not in file.parts)
    else:
        yield from sorted(file for file in root.glob(pattern) if file.is_file())


def _content(file: Path, path: str, in_full: bool) -> tuple[str, str]:
    """A file's text as it is carried, and the program whose imports it needs (maybe none)."""
    text = file.read_text(encoding="utf-8")
    if path.startswith("solutions/"):
        every = list(_code_cells(text))
        cells = list(_kept(every))
        needed = "\n".join(every) if in_full else _used(cells)
        return "".join(f"# %%\n{cell}\n\n" for cell in cells), needed
    if path.startswith("parlab/bench/") and path.endswith(".py"):
        return text, text
    return text, ""


def _code_cells(text: str) -> Iterator[str]:
    """The code cells of a lesson's source."""
    heads = list(_CELL.finditer(text))
    ends = [head.start() for head in heads[1:]] + [len(text)]
    for head, end in zip(heads, ends, strict=True):
        if "[markdown]" not in head[1]:
            yield without_carried(text[head.end() : end].strip("\n"))


def _kept(cells: Iterable[str]) -> Iterator[str]:
    """The set-up cell and the TODO cells; of a language pair the first."""
    seen = set()
    for cell in cells:
        first = cell.split("\n", 1)[0]
        if first not in seen and first.startswith(("# SETUP", "# TODO ")):
            seen.add(first)
            yield cell


def _used(cells: Iterable[str]) -> str:
    """The imports of a set-up cell that the TODO cells beside it use."""
    setup, *tasks = map(ast.parse, cells)
    names = {n.id for tree in tasks for n in ast.walk(tree) if isinstance(n, ast.Name)}
    kept = [
        node
        for node in setup.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        and any((a.asname or a.name.split(".")[0]) in names for a in node.names)
    ]
    return "\n".join(ast.unparse(node) for node in kept)


def _modules(tree: ast.Module, path: str, root: Path) -> list[str]:
    """The files of the ``parlab.lesson`` modules that a program imports."""
    module = path.removesuffix(".py").replace("/", ".")
    names = {name for name, _ in imported(tree, module, root)}
    wanted = (name for name in names if name.startswith("parlab.lesson."))
    return sorted(name.replace(".", "/") + ".py" for name in wanted)
