"""What is wrong with a source, said so that an author can mend it."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One reason to refuse a file.

    Attributes:
        file: path from the repository's root.
        line: line in that file, from 1.
        message: names the offending value and the remedy.
    """

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class Refused(Exception):
    """Raised with every problem found, so that an author mends a file in one go."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))
