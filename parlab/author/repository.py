"""Which repository this is: its root, its name on GitHub, and the addresses that follow."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parlab.author.problems import Problem, Refused

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PYPROJECT = "pyproject.toml"
TABLE = "tool.parlab.repository"
COLAB = "https://colab.research.google.com/github"
GITHUB = "https://github.com"


@dataclass(frozen=True)
class Repository:
    """A checkout and where it is published."""

    root: Path
    owner: str
    name: str
    branch: str

    def blob(self, path: str) -> str:
        """GitHub's page of a file (or, for a folder, of its listing)."""
        kind = "tree" if (self.root / path.partition("#")[0]).is_dir() else "blob"
        return f"{GITHUB}/{self.owner}/{self.name}/{kind}/{self.branch}/{path}"

    def colab(self, path: str) -> str:
        """The address that opens a notebook in Colab."""
        return f"{COLAB}/{self.owner}/{self.name}/blob/{self.branch}/{path}"

    def kaggle(self, path: str) -> str:
        """The address that opens a notebook in Kaggle."""
        return f"https://kaggle.com/kernels/welcome?src={self.blob(path)}"

    def relative(self, path: Path) -> str:
        """``path`` from the root, with forward slashes."""
        return path.relative_to(self.root).as_posix()


def find_repository(start: Path) -> Repository:
    """The repository that holds ``start``.

    Raises:
        Refused: no folder above has a pyproject.toml with the table, or the table is incomplete.
    """
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / PYPROJECT).is_file():
            text = (folder / PYPROJECT).read_text(encoding="utf-8")
            return _read(folder, text)
    raise Refused([Problem(PYPROJECT, 1, f"not found in {start} or above; run this in the course")])


def _read(root: Path, text: str) -> Repository:
    try:
        table: Any = tomllib.loads(text)
        for key in TABLE.split("."):
            table = table.get(key, {})
    except tomllib.TOMLDecodeError as error:
        raise Refused([Problem(PYPROJECT, 1, f"not valid TOML: {error}")]) from None
    allowed = {"owner": r"[\w.-]+", "name": r"[\w.-]+", "branch": r"[\w./-]+"}
    bad = [key for key, form in allowed.items() if not re.fullmatch(form, str(table.get(key, "")))]
    if bad:
        lines = text.split("\n")
        line = lines.index(f"[{TABLE}]") + 1 if f"[{TABLE}]" in lines else 1
        raise Refused(
            Problem(PYPROJECT, line, f'{key} = {table.get(key)!r}: give [{TABLE}] a {key} = "..."')
            for key in bad
        )
    return Repository(root, *(str(table[key]) for key in allowed))
