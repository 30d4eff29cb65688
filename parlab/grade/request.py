"""What ``parlab grade`` is asked for; a light module, read before anything heavy is imported."""

import argparse
import os
from dataclasses import dataclass
from pathlib import Path

from parlab.grade import corrections
from parlab.grade.limits import Limits
from parlab.grade.options import BadOption, parse_limits, parse_points, parse_whole


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
    seed = parse_whole("--seed", arguments.seed, 0)
    jobs = parse_whole("--jobs", arguments.jobs, 1) if arguments.jobs else _cores()
    if submissions.is_dir() and out.resolve().is_relative_to(submissions.resolve()):
        raise BadOption(
            f"--out {out} lies in {submissions}, which nothing may change: choose another folder"
        )
    _check_folder(out)
    return Request(
        root=find_root(Path.cwd()),
        submissions=submissions,
        lesson=arguments.lesson,
        out=out,
        roster=Path(arguments.roster) if arguments.roster else None,
        seed=seed,
        points=parse_points(arguments.points),
        language=arguments.language,
        jobs=jobs,
        limits=parse_limits(arguments.limits),
        corrections=(
            Path(arguments.corrections) if arguments.corrections else out / corrections.NAME
        ),
        trust=arguments.trust_every_student,
        plain_kernels=arguments.plain_kernels,
    )


def _check_folder(out: Path) -> None:
    """Refuses a place where no folder can be made or written to.

    Raises:
        BadOption: it is one.
    """
    place = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    if not place.is_dir():
        raise BadOption(f"--out {out}: {place} is a file: give a folder, as --out grades")
    if not os.access(place, os.W_OK | os.X_OK):
        raise BadOption(f"--out {out}: nothing may be written in {place}: give another folder")


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
