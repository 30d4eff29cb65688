"""Rewrites a page's links to this repository, wherever it has moved to.

A link is the repository's own if its owner and name are the present ones, or if some page links a
built notebook under that owner and name: that is how a former address is recognised.
"""

import re
from collections.abc import Callable, Collection, Iterable

from parlab.author.repository import NAME_FORM, OWNER_FORM, Repository

PAGES = ("README.md", "CONTRIBUTING.md", "colab/README.md")
_ADDRESS = re.compile(
    r"(?P<host>(?:colab\.research\.google\.com/github|github\.com|raw\.githubusercontent\.com"
    r"|mybinder\.org/v2/gh)/|git@github\.com:)"
    rf"(?P<owner>{OWNER_FORM})/(?P<name>{NAME_FORM})(?P<rest>/[^\s()<>\"'\]`]*)?"
)
_FILE = re.compile(r"(?P<kind>/(?:blob|tree|raw))/(?P<where>[^#?]+)(?P<tail>[#?].*)?")
_WORKFLOW = re.compile(r"/actions/workflows/(?P<file>[^/?#]+)")
Identity = tuple[str, str]
Exists = Callable[[str], bool]


def identities(texts: Iterable[str], built: Collection[str]) -> set[Identity]:
    """The owners and names under which the texts link the repository's built notebooks."""
    found = set()
    for text in texts:
        for address in _ADDRESS.finditer(text):
            rest = address["rest"] or ""
            if any(rest.partition("#")[0].endswith(f"/{path}") for path in built):
                found.add((address["owner"], address["name"]))
    return found


def rewrite(
    text: str, repository: Repository, own: Collection[Identity], exists: Exists
) -> tuple[str, list[str]]:
    """``text`` with every link to the repository's own files under its present address.

    Args:
        text: a page.
        repository: the present address.
        own: present and former owners and names.
        exists: whether a path from the root is a file or folder, or will be built.

    Returns:
        The new text, and the own links left alone because they lead to no file.
    """
    astray: list[str] = []

    def replace(found: re.Match[str]) -> str:
        name, suffix = re.fullmatch(r"(.*?)(\.git)?", found["name"]).groups("")  # type: ignore[union-attr]
        if (found["owner"], name) not in own:
            return found.group()
        rest = _moved(found["host"], found["rest"] or "", repository.branch, exists)
        if rest is None:
            astray.append(found.group())
            return found.group()
        return f"{found['host']}{repository.owner}/{repository.name}{suffix}{rest}"

    return _ADDRESS.sub(replace, text), astray


def _moved(host: str, rest: str, branch: str, exists: Exists) -> str | None:
    """What follows owner and name, on ``branch``; None where it leads to no file."""
    if host.startswith("mybinder"):
        return re.sub(r"^/[^/?#]+", f"/{branch.replace('/', '%2F')}", rest)
    if host.startswith("raw"):
        path = _path(rest.lstrip("/"), exists)
        return path and f"/{branch}/{path}"
    file = _FILE.fullmatch(rest)
    if file:
        path = _path(file["where"], exists)
        return path and f"{file['kind']}/{branch}/{path}{file['tail'] or ''}"
    workflow = _WORKFLOW.match(rest)
    return None if workflow and not exists(f".github/workflows/{workflow['file']}") else rest


def _path(where: str, exists: Exists) -> str | None:
    """The path in ``BRANCH/PATH``; a branch may hold slashes, so the path is what exists."""
    parts = where.split("/")
    candidates = ("/".join(parts[start:]) for start in range(1, len(parts)))
    return next((path for path in candidates if path and exists(path.rstrip("/.,;:"))), None)
