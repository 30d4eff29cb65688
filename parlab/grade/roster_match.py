"""Which student's number or name stands within the name of a file or folder."""

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from parlab.grade.person_names import plain


class Named(Protocol):
    """What is needed of a roster's entry."""

    @property
    def exact(self) -> frozenset[str]:
        """Logins, numbers and addresses, in plain form."""

    @property
    def names(self) -> frozenset[str]:
        """The name in every order, in plain form."""


def match_words(entries: Sequence[Named], name: str) -> tuple[int, ...]:
    """Indices of those whose login, number or name stands there as words of its own.

    Where a number and a name are not one student's: of both.
    """
    words = {plain(word) for word in re.split(r"[^\w@.]+|_", name)} - {""}
    words = {word for word in words if len(word) > 3 or not word.isdigit()}
    by_number = {i for i, e in enumerate(entries) if any(w in e.exact for w in words)}
    joined = _joined_words(name)
    by_name = _longest(
        (len(own), i)
        for i, entry in enumerate(entries)
        for own in entry.names & joined
        if len(own) >= (3 if own.isascii() else 2)
    )
    if by_number and by_name:
        return tuple(sorted(by_number & by_name or by_number | by_name))
    return tuple(sorted(by_number or by_name))


def guess(entries: Sequence[Named], name: str) -> tuple[int, ...]:
    """Indices of those whose name, in a script without blanks, is part of a word there."""
    whole = plain(name)
    hits = (
        (len(own), i)
        for i, entry in enumerate(entries)
        for own in entry.names
        if own in whole and len(own) >= 2 and not own.isascii()
    )
    return tuple(sorted(_longest(hits)))


def _joined_words(name: str) -> set[str]:
    """Each word in plain form, and up to four that follow one another as one.

    A word ends where another script or a number begins.
    """
    words = [
        part
        for word in re.split(r"\W+|_", name)
        for part in re.findall(r"[a-z]+|\d+|[^a-z\d]+", plain(word))
    ]
    return {"".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, i + 5)}


def _longest(hits: Iterable[tuple[int, int]]) -> set[int]:
    kept = list(hits)
    longest = max((length for length, _ in kept), default=0)
    return {i for length, i in kept if length == longest}
