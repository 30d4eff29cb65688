"""Links that a source writes as ``(repo:path/from/the/root#anchor)``."""

import posixpath
import re
from collections.abc import Collection

from parlab.author.prose import outline
from parlab.author.repository import Repository
from parlab.author.source import Cell, Report

# Code comes first, so that a link shown in a fence or between backticks is no link.
_LINK = re.compile(
    r"""^[ ]{0,3}(?P<fence>`{3,}|~{3,})(?:(?!^[ ]{0,3}(?P=fence)).)*(?:(?P=fence)|\Z)
    |(?<!`)(?P<ticks>`+)(?!`)(?:(?!\n\s*\n).)+?(?<!`)(?P=ticks)(?!`)
    |(?<=[("'<])(?P<link>repo:(?P<path>[^)\s"'>#]*)(?P<anchor>\#[^)\s"'>]*)?)""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)


def english_path(path: str) -> str:
    """Where the English version of a built notebook lies: one folder down, in ``en/``."""
    folder, name = posixpath.split(path)
    return f"{folder}/en/{name}"


def relative_link(path: str, notebook: str) -> str:
    """``path`` as a link in ``notebook``; both from the repository's root."""
    return posixpath.relpath(path, posixpath.dirname(notebook))


def check_repo_links(
    cell: Cell, repository: Repository, built: Collection[str], report: Report
) -> None:
    """Refuses a link whose target is neither in the repository nor built.

    Args:
        cell: a markdown cell.
        repository: where targets are looked for.
        built: paths that the build makes.
        report: takes each problem.
    """
    rewritten = set()
    for found in _LINK.finditer(cell.source):
        path = found["path"]
        if path is None:
            continue  # code
        rewritten.add(found.group())
        line = cell.line_with(found.group())
        if not _exists(path, repository, built):
            report(line, f"link {found.group()!r}: no such file in the repository; mend the path")
        elif cell.language == "en" and english_path(path) in built:
            wanted = f"repo:{english_path(path)}{found['anchor'] or ''}"
            report(line, f"link {found.group()!r} leads to Chinese: write {wanted!r}")
    for link in outline(cell.source).links:
        if link.startswith("repo:") and link not in rewritten:
            report(
                cell.line_with("repo:"), f"link {link!r} is not understood: write it as ({link})"
            )


def resolve_repo_links(text: str, repository: Repository, notebook: str, absolute: bool) -> str:
    """``text`` with its ``repo:`` links made relative to ``notebook``, or absolute on GitHub."""

    def replace(found: re.Match[str]) -> str:
        path = found["path"]
        if path is None:
            return found.group()  # code
        target = repository.blob(path) if absolute else relative_link(path, notebook)
        return target + (found["anchor"] or "")

    return _LINK.sub(replace, text)


def _exists(path: str, repository: Repository, built: Collection[str]) -> bool:
    if not path or path.startswith("/") or ".." in path.split("/"):
        return False
    return path in built or (repository.root / path).exists()
