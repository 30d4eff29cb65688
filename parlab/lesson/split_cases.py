"""Splits of a sequence that were written by hand, and what must be true of any head-tail split."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

Split = dict[str, Any]

SMALL: list[tuple[int, int, Split]] = [
    (8, 2, {
        "positions": [[0, 1, 6, 7], [2, 3, 4, 5]],
        "inverse": [0, 1, 4, 5, 6, 7, 2, 3],
        "work": [18, 18],
    }),
    (12, 3, {
        "positions": [[0, 1, 10, 11], [2, 3, 8, 9], [4, 5, 6, 7]],
        "inverse": [0, 1, 4, 5, 8, 9, 10, 11, 6, 7, 2, 3],
        "work": [26, 26, 26],
    }),
    (4, 1, {"positions": [[0, 1, 2, 3]], "inverse": [0, 1, 2, 3], "work": [10]}),
]  # fmt: skip


def sizes() -> Iterator[tuple[int, int]]:
    """Sequence lengths and cp, chunks of 1, 3 and 5 tokens."""
    for cp in (1, 2, 3, 4, 5, 8):
        for chunk in (1, 3, 5):
            yield 2 * cp * chunk, cp


def plain(got: Any) -> bool:
    """Whether this is a dict of the three entries, made of lists and ints alone."""
    return not _types(got)


def _types(got: Any, *_: int) -> str:
    if type(got) is not dict or set(got) != {"positions", "inverse", "work"}:
        return f"{type(got).__name__} {sorted(map(str, got)) if isinstance(got, dict) else ''}"
    rows = got["positions"] if type(got["positions"]) is list else [got["positions"]]
    for name, values in (
        *(("positions", row) for row in rows), *((key, got[key]) for key in ("inverse", "work"))
    ):  # fmt: skip
        if type(values) is not list:
            return f"{name}: {type(values).__name__}"
        for value in values:
            if type(value) is not int:
                return f"{name}: {type(value).__name__}"
    return ""


def _tokens(got: Split, sequence: int, cp: int) -> str:
    held = got["positions"]
    if len(held) != cp or any(len(mine) * cp != sequence for mine in held):
        return f"len(positions) = {len(held)}, {[len(mine) for mine in held]}"
    for rank, mine in enumerate(held):
        if mine != sorted(mine):
            return f"rank {rank}: {mine}"
    everyone = sorted(token for mine in held for token in mine)
    return "" if everyone == list(range(sequence)) else f"{held}"


def _heads(got: Split, sequence: int, cp: int) -> str:
    chunk = sequence // cp // 2
    for rank, mine in enumerate(got["positions"]):
        if mine[0] != rank * chunk or mine[chunk - 1] - mine[0] != chunk - 1:
            return f"rank {rank}: {mine[:chunk]}"
    return ""


def _mirror(got: Split, sequence: int, cp: int) -> str:
    for rank, mine in enumerate(got["positions"]):
        for token in mine:
            if sequence - 1 - token not in mine:
                return f"rank {rank}: {mine}"
    return ""


def _inverse(got: Split, sequence: int, cp: int) -> str:
    order = [token for mine in got["positions"] for token in mine]
    inverse = got["inverse"]
    if len(inverse) != sequence:
        return f"len(inverse) = {len(inverse)}"
    for token, place in enumerate(inverse):
        if not 0 <= place < sequence or order[place] != token:
            there = order[place] if 0 <= place < sequence else "–"
            return f"inverse[{token}] = {place}, order[{place}] = {there}"
    return ""


def _work(got: Split, sequence: int, cp: int) -> str:
    """Counts the cells of the causal matrix."""
    seen = torch.ones(sequence, sequence, dtype=torch.long).tril()
    counted = [int(seen[mine].sum()) for mine in got["positions"]]
    return "" if got["work"] == counted else f"{got['work']}, not {counted}"


# Each looks at (got, sequence, cp) and says what is wrong; empty where nothing is.
faults = SimpleNamespace(
    types=_types, tokens=_tokens, heads=_heads, mirror=_mirror, inverse=_inverse, work=_work
)
