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
# What GitHub allows (a managed user has an underscore), and what an address can hold of git's.
OWNER_FORM = r"[A-Za-z0-9_-]+"
NAME_FORM = r"[A-Za-z0-9_.-]*[A-Za-z0-9_-]"
_PART = r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9_-])?"
_FORMS = {
    "owner": (OWNER_FORM, "letters, digits, - and _"),
    "name": (
        rf"(?!.*\.git$){NAME_FORM}",
        "letters, digits, -, _ and ., with no . or .git at the end",
    ),
    "branch": (
        rf"(?!.*(?:\.\.|\.lock(?:/|$))){_PART}(?:/{_PART})*",
        "names of letters, digits, -, _ and ., with / between them",
    ),
}
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
            return _read(folder, (folder / PYPROJECT).read_bytes())
    raise Refused([Problem(PYPROJECT, 1, f"not found in {start} or above; run this in the course")])


def _read(root: Path, data: bytes) -> Repository:
    try:
        text = data.decode("utf-8")
        table: Any = tomllib.loads(text)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        problem = Problem(PYPROJECT, line, f"{error.reason}: save the file as UTF-8")
        raise Refused([problem]) from None
    except tomllib.TOMLDecodeError as error:
        raise Refused([Problem(PYPROJECT, 1, f"not valid TOML: {error}; mend it")]) from None
    for key in TABLE.split("."):
        table = table.get(key) if isinstance(table, dict) else None
    given = table if isinstance(table, dict) else {}
    lines = text.splitlines()
    line = lines.index(f"[{TABLE}]") + 1 if f"[{TABLE}]" in lines else 1
    problems = [
        Problem(
            PYPROJECT,
            line,
            f'{key} = {given.get(key)!r}: write {key} = "..." ({allowed}) under [{TABLE}]',
        )
        for key, (form, allowed) in _FORMS.items()
        if not (isinstance(given.get(key), str) and re.fullmatch(form, given[key]))
    ]
    if problems:
        raise Refused(problems)
    return Repository(root, *(given[key] for key in _FORMS))
