"""Pipeline schedules written down as text, one line a rank, for pictures and for comparison.

A word is a chunk of work: ``F3`` the forward of microbatch 3, ``B3`` its backward, ``W3`` its
weight gradient where the backward is split in two; small letters belong to the rank's second
stage. A dot is one unit of waiting.
"""

from collections.abc import Mapping, Sequence

Op = tuple[str, int, int]
Span = tuple[float, float]
Orders = list[list[Op]]
Spans = list[list[Span]]

# Four stages, forward 1, backward 2 units: one batch as a whole, then as 4 microbatches.
WHOLE = """
F0 . . . . . . . . . B0
. F0 . . . . . . B0
. . F0 . . . B0
. . . F0 B0
"""
GPIPE_4 = """
F0 F1 F2 F3 . . . . . . . . . B0 B1 B2 B3
. F0 F1 F2 F3 . . . . . . B0 B1 B2 B3
. . F0 F1 F2 F3 . . . B0 B1 B2 B3
. . . F0 F1 F2 F3 B0 B1 B2 B3
"""
# The same stages and 8 microbatches under the two schedules.
GPIPE_8 = """
F0 F1 F2 F3 F4 F5 F6 F7 . . . . . . . . . B0 B1 B2 B3 B4 B5 B6 B7
. F0 F1 F2 F3 F4 F5 F6 F7 . . . . . . B0 B1 B2 B3 B4 B5 B6 B7
. . F0 F1 F2 F3 F4 F5 F6 F7 . . . B0 B1 B2 B3 B4 B5 B6 B7
. . . F0 F1 F2 F3 F4 F5 F6 F7 B0 B1 B2 B3 B4 B5 B6 B7
"""
ONE_F_ONE_B_8 = """
F0 F1 F2 F3 . . . . . . B0 F4 B1 F5 B2 F6 B3 F7 B4 . B5 . B6 . B7
. F0 F1 F2 . . . . B0 F3 B1 F4 B2 F5 B3 F6 B4 F7 B5 . B6 . B7
. . F0 F1 . . B0 F2 B1 F3 B2 F4 B3 F5 B4 F6 B5 F7 B6 . B7
. . . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 F6 B6 F7 B7
"""
# Interleaved 1F1B (arXiv 2104.04473, section 2.2.2), 4 ranks with 2 stages each, 8 microbatches.
INTERLEAVED_8 = """
F0 F1 F2 F3 f0 f1 f2 f3 F4 F5 F6 b0 F7 b1 f4 b2 f5 b3 f6 B0 f7 B1 B2 B3 b4 b5 b6 b7 B4 B5 B6 B7
F0 F1 F2 F3 f0 f1 f2 f3 F4 b0 F5 b1 F6 b2 F7 b3 f4 B0 f5 B1 f6 B2 f7 B3 b4 b5 b6 b7 B4 B5 B6 B7
F0 F1 F2 F3 f0 f1 f2 b0 f3 b1 F4 b2 F5 b3 F6 B0 F7 B1 f4 B2 f5 B3 f6 b4 f7 b5 b6 b7 B4 B5 B6 B7
F0 F1 F2 F3 f0 b0 f1 b1 f2 b2 f3 b3 F4 B0 F5 B1 F6 B2 F7 B3 f4 b4 f5 b5 f6 b6 f7 b7 B4 B5 B6 B7
"""
# Zero bubble H1 (arXiv 2401.10241, section 2): W waits, and fills what was the bubble.
ZERO_BUBBLE_8 = """
F0 F1 F2 F3 B0 W0 F4 B1 W1 F5 B2 W2 F6 B3 W3 F7 B4 W4 B5 W5 B6 W6 B7 W7
F0 F1 F2 B0 F3 B1 W0 F4 B2 W1 F5 B3 W2 F6 B4 W3 F7 B5 W4 B6 W5 B7 W6 W7
F0 F1 B0 F2 B1 F3 B2 W0 F4 B3 W1 F5 B4 W2 F6 B5 W3 F7 B6 W4 B7 W5 W6 W7
F0 B0 F1 B1 F2 B2 F3 B3 W0 F4 B4 W1 F5 B5 W2 F6 B6 W3 F7 B7 W4 W5 W6 W7
"""


def orders_of(chart: str) -> Orders:
    """Each rank's chunks ``(kind, stage, microbatch)`` in order, the dots left out.

    The stage is the rank, or, for a small letter, the rank plus the number of ranks.
    """
    lines = [line.split() for line in chart.strip().split("\n")]
    return [
        [op_of(word, rank, len(lines)) for word in words if word != "."]
        for rank, words in enumerate(lines)
    ]


def op_of(word: str, rank: int, ranks: int) -> Op:
    """``F3`` on rank 1 → ``("F", 1, 3)``; a small letter is the rank's second stage."""
    return word[0].upper(), rank + (ranks if word[0].islower() else 0), int(word[1:])


def word_of(op: Sequence[object]) -> str:
    """``("F", 1, 3)`` → ``F3``."""
    return f"{op[0]}{op[2]}"


def spans_of(chart: str, times: Mapping[str, float], unit: float = 1) -> Spans:
    """When each chunk of a chart begins and ends.

    Args:
        times: units by kind, the same for all stages; a dot is one unit.
        unit: how long a unit is.
    """
    spans: Spans = []
    for line in chart.strip().split("\n"):
        now, rank = 0.0, list[Span]()
        for word in line.split():
            length = 1 if word == "." else times[word[0]]
            if word != ".":
                rank.append((now * unit, (now + length) * unit))
            now += length
        spans.append(rank)
    return spans
