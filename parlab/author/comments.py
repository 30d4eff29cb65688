"""The comments of a code cell, told from text that only looks like one."""

import io
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Comment:
    """A comment: its line in the cell (from 1), its text, and whether it has the line to itself."""

    line: int
    text: str
    alone: bool


def comments(source: str) -> Iterator[Comment]:
    """Every comment of a cell that is valid Python."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = token.string.rstrip()
            yield Comment(token.start[0], text, token.line.strip() == text)
