"""The commands ``parlab build``, ``parlab build --check`` and ``parlab links``."""

# mypy: untyped-calls-exclude=nbformat

import json
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from nbformat import NotebookNode

from parlab.author.check import compare_notebook, stray_files, with_outputs
from parlab.author.execute import ExecutionFailed, execute
from parlab.author.files import leftovers, write_together
from parlab.author.lesson import read_lesson
from parlab.author.notebooks import (
    SOLUTION,
    TWIN,
    compose,
    notebook_paths,
    serialize,
)
from parlab.author.own_links import PAGES, identities, rewrite
from parlab.author.problems import Problem, Refused
from parlab.author.repository import Repository

Say = Callable[[str], None]
Notebooks = dict[str, NotebookNode]
_NAME = re.compile(r"\d\d_[a-z0-9_]+")


def build(repository: Repository, names: Sequence[str], say: Say) -> bool:
    """Builds the named lessons, or all; a lesson that fails is left as it was.

    Args:
        repository: what to build.
        names: lessons, as ``04_name``, ``04`` or a path; none means all.
        say: takes each line of progress.

    Returns:
        Whether every lesson was built.

    Raises:
        Refused: a name is unknown.
    """
    done = True
    sources = _sources(repository, names)
    for path in _leftovers(repository):
        path.unlink()
        say(f"{repository.relative(path)}: removed, left by a build that was cut short")
    for source in sources:
        try:
            made = _compose(source, repository)
            _build_lesson(source.stem, made, repository, say)
        except (Refused, ExecutionFailed) as failure:
            say(f"{failure}\n{source.stem}: not built, its notebooks are as they were")
            done = False
    return done


def check(repository: Repository, names: Sequence[str], say: Say) -> bool:
    """Says where what is committed differs from what the sources build, without executing.

    Args:
        repository: what to check.
        names: lessons; none means all, and then stray notebooks and the pages' links too.
        say: takes each difference.

    Returns:
        Whether nothing differs.

    Raises:
        Refused: a name is unknown.
    """
    found: list[str] = []
    sources = _sources(repository, names)
    for source in sources:
        try:
            made = _compose(source, repository)
        except Refused as refused:
            found += map(str, refused.problems)
            continue
        for path, notebook in made.items():
            shown = repository.relative(source)
            found += compare_notebook(path, notebook, repository.root, shown)
    if not names:
        found += stray_files(repository.root, _built(repository))
        found += [
            f"{repository.relative(path)}: left by a build that was cut short; run parlab build"
            for path in _leftovers(repository)
        ]
        found += [
            f"{page}: missing; restore it (git checkout {page})"
            for page in PAGES
            if not (repository.root / page).is_file()
        ]
        for page in _moved_pages(repository)[0]:
            found.append(f"{repository.relative(page)}: links lead elsewhere; run parlab links")
    for difference in _grouped(found):
        say(difference)
    say(f"lessons checked: {len(sources)}, differences: {len(found)}")
    return not found


def rewrite_links(repository: Repository, say: Say) -> bool:
    """Rewrites badges and links to the repository's own files from its present address.

    Args:
        repository: the present address.
        say: takes each line of progress.

    Returns:
        Whether everything could be brought up to date.

    Raises:
        Refused: a source has problems; nothing has been written.
    """
    made: Notebooks = {}
    for source in _sources(repository, ()):
        made.update(_compose(source, repository))
    contents, astray = _moved_pages(repository)
    done = not astray
    for link in astray:
        say(f"{link}: left alone, for it leads to no file of this repository")
    for path, notebook in made.items():
        file = repository.root / path
        kept = _with_outputs(file, notebook) if path.startswith(f"{SOLUTION}/") else notebook
        if kept:
            contents[file] = serialize(kept)
        else:
            say(f"{path}: left alone, for its code has changed; run parlab build")
            done = False
    _write(contents, repository, say)
    return done


def _grouped(differences: list[str]) -> list[str]:
    """The differences, those with one diff in several notebooks said once for all of them."""
    titles: dict[str, list[str]] = {}  # by diff; a difference without one is its own
    for difference in differences:
        title, line_end, diff = difference.partition("\n")
        titles.setdefault(line_end + diff or title, []).append(title)
    return [
        "\n".join(group) + key if key.startswith("\n") else key for key, group in titles.items()
    ]


def _sources(repository: Repository, names: Sequence[str]) -> list[Path]:
    every = sorted((repository.root / SOLUTION).glob("*.py"))
    problems = [
        Problem(repository.relative(source), 1, "name the lesson like 04_some_name.py")
        for source in every
        if not _NAME.fullmatch(source.stem)
    ]
    chosen = set()
    for name in names:
        stem = Path(name).stem
        matches = [source for source in every if source.stem == stem or source.stem[:2] == stem]
        if len(matches) != 1:
            known = ", ".join(source.stem for source in every) or "none"
            problems.append(Problem(SOLUTION, 1, f"no lesson {name!r}; there are: {known}"))
        chosen.update(matches)
    if not every:
        problems.append(Problem(SOLUTION, 1, "no lesson: add a source like 04_some_name.py"))
    if problems:
        raise Refused(problems)
    return [source for source in every if source in chosen] if names else every


def _built(repository: Repository) -> set[str]:
    """The paths of all notebooks that the sources make."""
    return {path for source in _sources(repository, ()) for path in notebook_paths(source.stem)}


def _leftovers(repository: Repository) -> list[Path]:
    paths = {*PAGES, *_built(repository)}
    return list(leftovers(sorted({(repository.root / path).parent for path in paths})))


def _compose(source: Path, repository: Repository) -> Notebooks:
    return compose(read_lesson(source, repository, _built(repository)), repository)


def _build_lesson(name: str, made: Notebooks, repository: Repository, say: Say) -> None:
    solutions = {path: made[path] for path in made if path.startswith(f"{SOLUTION}/")}
    for path in solutions:
        say(f"{path}: executing")
        (repository.root / path).parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    execute(solutions, repository.root)
    say(f"{name}: executed in {time.monotonic() - started:.1f} s")
    contents = {repository.root / path: serialize(notebook) for path, notebook in made.items()}
    _write(contents, repository, say)


def _write(contents: dict[Path, bytes], repository: Repository, say: Say) -> None:
    changed = write_together(contents)
    for path in contents:
        say(f"{repository.relative(path)}: {'written' if path in changed else 'unchanged'}")


def _moved_pages(repository: Repository) -> tuple[dict[Path, bytes], list[str]]:
    """The pages whose links must change, with their new content; and links that lead nowhere."""
    built = _built(repository)
    paths = [repository.root / page for page in PAGES]
    # Bytes, so that a page keeps the line ends it has.
    pages = {path: path.read_bytes().decode("utf-8") for path in paths if path.is_file()}
    twins = [
        repository.root / path
        for path in sorted(built)
        if path.startswith(f"{TWIN}/") and (repository.root / path).is_file()
    ]
    texts = [*pages.values(), *(twin.read_text(encoding="utf-8") for twin in twins)]
    own = identities(texts, built) | {(repository.owner, repository.name)}

    def exists(path: str) -> bool:
        return path in built or (repository.root / path).exists()

    moved: dict[Path, bytes] = {}
    astray: list[str] = []
    for path, text in pages.items():
        new, nowhere = rewrite(text, repository, own, exists)
        astray += [f"{repository.relative(path)}: {link}" for link in nowhere]
        if new != text:
            moved[path] = new.encode("utf-8")
    return moved, astray


def _with_outputs(file: Path, notebook: NotebookNode) -> NotebookNode | None:
    try:
        return with_outputs(notebook, json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # missing or damaged, so there are no outputs to keep
