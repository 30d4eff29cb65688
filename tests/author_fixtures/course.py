"""A course in a temporary folder: one small lesson, and the modules that it imports."""

from pathlib import Path

from parlab.author.lesson import Lesson, read_lesson
from parlab.author.notebooks import notebook_paths
from parlab.author.own_links import PAGES
from parlab.author.problems import Refused
from parlab.author.repository import Repository, find_repository

NAME = "01_small"
SOURCE = f"solutions/{NAME}.py"
HEADER = """\
# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
# ---

"""
BODY = '''\
# %% [markdown] lang="zh"
# # 小课
#
# 有 3 个数和 $a+b$，见[答案](repo:solutions/01_small.ipynb#top)。

# %% [markdown] lang="en"
# # A small lesson
#
# There are 3 numbers and $a+b$, see [the answer](repo:solutions/en/01_small.ipynb#top).

# %%
# SETUP
from parlab.lesson.checks import check, fail

# %% lang="zh"
# TODO 1 · double
def double(x):
    """两倍。"""
    # 提示：乘以 2
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION

# %% lang="en"
# TODO 1 · double
def double(x):
    """Twice as much."""
    # Hint: multiply by 2
    # BEGIN SOLUTION
    return 2 * x
    # END SOLUTION

# %% lang="zh"
# CHECK 1
check(1)
assert double(3) == 6, f"double({3}) 应为 {6}"

# %% lang="en"
# CHECK 1
check(1)
assert double(3) == 6, f"{6} is what double({3}) gives"

# %% tags=["demo"]
print(double(21))
'''
_PYPROJECT = """\
[project]
name = "small-course"

[tool.parlab.repository]
owner = "OWNER"
name = "small-course"
branch = "main"
"""
_MODULES = {
    "parlab/__init__.py": '__version__ = "0"\n',
    "parlab/lesson/__init__.py": '"""What a lesson imports."""\n',
    "parlab/lesson/language.py": '''\
"""Speaks."""

spoken = "?"


def speak(language):
    global spoken
    spoken = language
''',
    "parlab/lesson/checks.py": '''\
r"""Checks; a raw docstring with \\d in it."""

from dataclasses import dataclass

from . import language


@dataclass
class Result:
    number: int


def check(number):
    print(f"{language.spoken} check {number}")
    return Result(number)


def fail():
    raise RuntimeError("from a carried module")
''',
    "parlab/lesson/unused.py": "",
}


def make_course(root: Path, body: str = BODY) -> Repository:
    """Writes the course under ``root``."""
    files = {"pyproject.toml": _PYPROJECT, **dict.fromkeys(PAGES, ""), **_MODULES}
    for path, text in {**files, SOURCE: HEADER + body}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return find_repository(root)


def read(repository: Repository) -> Lesson:
    """The course's lesson."""
    return read_lesson(repository.root / SOURCE, repository, set(notebook_paths(NAME)))


def refusals(root: Path, source: str | bytes) -> list[str]:
    """The problems of a source, each as ``line: message``; empty if it is accepted."""
    repository = make_course(root)
    data = source if isinstance(source, bytes) else source.encode("utf-8")
    (root / SOURCE).write_bytes(data)
    try:
        read(repository)
    except Refused as refused:
        found = [str(problem) for problem in refused.problems]
        assert all(problem.startswith(f"{SOURCE}:") for problem in found)
        return [problem.removeprefix(f"{SOURCE}:") for problem in found]
    return []


def changed(old: str, new: str, body: str = BODY) -> str:
    """The lesson's source with one passage replaced."""
    assert body.count(old) == 1, f"{old!r} stands {body.count(old)} times in the lesson"
    return HEADER + body.replace(old, new)


def assert_refused(root: Path, marked: str, *passages: str) -> None:
    """The line that starts with » (the mark itself is dropped) is refused in these words."""
    line = marked[: marked.index("»")].count("\n") + 1
    found = refusals(root, marked.replace("»", ""))
    assert any(
        problem.startswith(f"{line}: ") and all(passage in problem for passage in passages)
        for problem in found
    ), f"line {line}, {passages}: {found}"
