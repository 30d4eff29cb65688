"""Rules that a lesson teaches and the benchmark follows, loaded from that lesson: no copy here."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from parlab.lesson.loader import Loaded, load_solution


def find_root(start: Path) -> Path:
    """The course's folder: the nearest above ``start`` with lessons in it, else where parlab is."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / "solutions").is_dir() and (folder / "pyproject.toml").is_file():
            return folder
    home = Path(__file__).resolve().parents[2]
    return home if (home / "solutions").is_dir() else start.resolve()


@cache
def lesson_rule(lesson: str, name: str) -> Callable[..., Any]:
    """The function ``name`` of the solution of ``lesson``, in the driver and in every rank.

    Args:
        lesson: as in ``solutions/<lesson>.py``; it is read once a process, in milliseconds.
        name: what one of the lesson's TODOs asks for.

    Raises:
        LessonUnusable: there is no such lesson, or it cannot be run; says why.
        KeyError: no TODO of the lesson asks for ``name``.
    """
    return _solution(lesson)[name]


@cache
def _solution(lesson: str) -> Loaded:
    root = find_root(Path.cwd())
    return load_solution(root / "solutions" / f"{lesson}.py", f"solutions/{lesson}.py")
