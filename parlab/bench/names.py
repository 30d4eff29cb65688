"""The names that files, folders and pictures carry: what they may look like."""

import re
from collections.abc import Iterable

from parlab.bench.fields import key
from parlab.lesson.soundness import DECISION

LONGEST_GROUP, LONGEST_WORKLOAD = 24, 32  # what the pictures have room for
_GROUP = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORKLOAD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def group_problem(name: str, taken: Iterable[str] = (DECISION,)) -> str | None:
    """Why a group cannot be called ``name``, or None where it can.

    Args:
        taken: names of other files beside the records; on some systems case makes no difference.
    """
    if not _GROUP.fullmatch(name) or len(name) > LONGEST_GROUP:
        return (
            f"a group's name is ASCII letters, digits and _, no digit first, at most "
            f"{LONGEST_GROUP} characters; this has {len(name)}"
        )
    if name.casefold() in taken:
        return f"no group may be called {' or '.join(taken)}: take another name"
    return None


def workload_problem(name: str) -> str | None:
    """Why a workload's file cannot be called ``name``.toml, or None where it can."""
    if _WORKLOAD.fullmatch(name) and len(name) <= LONGEST_WORKLOAD:
        return None
    return (
        f"the file's name {key(name)} stands in records and pictures: rename it to at most "
        f"{LONGEST_WORKLOAD} ASCII letters, digits, _, - and ."
    )


def alike(names: Iterable[str]) -> list[str]:
    """Groups whose files would be one and the same where case makes no difference."""
    first: dict[str, str] = {}
    found = []
    for name in names:
        other = first.setdefault(name.casefold(), name)
        if other != name:
            found.append(f"{key(name)} and {key(other)} differ in case alone: rename one of them")
    return found
