"""What ``parlab grade`` is asked for; a light module, read before anything heavy is imported."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from parlab.grade import corrections
from parlab.grade.limits import Limits
from parlab.grade.options import BadOption, parse_limits, parse_points


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        root: the course's folder.
        submissions: folder, zip or notebook.
        lesson: its name or number.
        out: where everything goes.
        roster: the platform's own list, where there is one.
        seed: of the cases.
        points: as given, by TODO; empty for equal parts of 100.
        language: of pages and notes.
        jobs: how many submissions run at a time.
        limits: of one sandbox.
        corrections: the file of hand corrections.
        trust: run without a sandbox where there is none.
        plain_kernels: do not fork from a warm parent.
    """

    root: Path
    submissions: Path
    lesson: str
    out: Path
    roster: Path | None
    seed: int
    points: tuple[float, ...]
    language: str
    jobs: int
    limits: Limits
    corrections: Path
    trust: bool
    plain_kernels: bool


def request_of(arguments: argparse.Namespace) -> Request:
    """The command line's arguments, checked as far as they go without the lesson.

    Raises:
        BadOption: one of them cannot be used.
    """
    out = Path(arguments.out)
    submissions = Path(arguments.submissions)
    if arguments.jobs < 0:
        raise BadOption(f"--jobs {arguments.jobs}: write a number above 0")
    if submissions.is_dir() and out.resolve().is_relative_to(submissions.resolve()):
        raise BadOption(
            f"--out {out} lies in {submissions}, which nothing may change: choose another folder"
        )
    return Request(
        root=find_root(Path.cwd()),
        submissions=submissions,
        lesson=arguments.lesson,
        out=out,
        roster=Path(arguments.roster) if arguments.roster else None,
        seed=arguments.seed,
        points=parse_points(arguments.points),
        language=arguments.language,
        jobs=arguments.jobs or _cores(),
        limits=parse_limits(arguments.limits),
        corrections=(
            Path(arguments.corrections) if arguments.corrections else out / corrections.NAME
        ),
        trust=arguments.trust_every_student,
        plain_kernels=arguments.plain_kernels,
    )


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def find_root(start: Path) -> Path:
    """The course's folder, at or above ``start``; else the one that this package lies in.

    Raises:
        BadOption: there is none.
    """
    package = Path(__file__).resolve().parents[2]
    for folder in (start.resolve(), *start.resolve().parents, package):
        if (folder / "solutions").is_dir() and (folder / "notebooks").is_dir():
            return folder
    raise BadOption(f"no course (solutions/, notebooks/) at or above {start}: run this in one")
