"""The options of ``parlab grade`` and what their values mean."""

import argparse
import math
from dataclasses import fields, replace

from parlab.grade.limits import Limits

FULL = 100.0
_LEAST = {False: 0.1, True: 1}  # of a limit in seconds, and of one that is a whole number
_MOST = 1e6


class BadOption(Exception):
    """An option's value cannot be used; names it and the remedy."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``parlab grade``."""
    add = parser.add_argument
    add("submissions", metavar="SUBMISSIONS", help="folder, or the platform's zip as it comes")
    add("--lesson", required=True, metavar="NAME", help="as 04 or 04_model_internal_parallel")
    add("--out", required=True, metavar="GRADES", help="folder for grades, pages and state")
    add("--roster", metavar="FILE", help="the platform's own list of students (CSV)")
    add("--seed", default="0", metavar="N", help="of the generated cases (default: 0)")
    add("--points", default="", metavar="40,30,30", help="per TODO (default: equal parts of 100)")
    add("--language", choices=("zh", "en"), default="zh", help="of pages and notes (default: zh)")
    add("--jobs", default="", metavar="N", help="at a time (default: as many as cores)")
    names = ", ".join(f"{field.name}={field.default}" for field in fields(Limits))
    add("--limits", default="", metavar="NAME=N,...", help=f"of one submission: {names}")
    add("--corrections", metavar="FILE", help="hand corrections (default: GRADES/corrections.csv)")
    add("--plain-kernels", action="store_true", help="start every kernel anew: slower")
    add(
        "--trust-every-student",
        action="store_true",
        help="where no sandbox is possible, run the submissions on this machine all the same: "
        "whatever they hold can then read and delete your files",
    )


def points_for(given: tuple[float, ...], todos: list[int]) -> dict[int, float]:
    """Points per TODO: as given, else equal parts of 100 (the last takes what rounding leaves).

    Raises:
        BadOption: their number is not that of the TODOs.
    """
    if given and len(given) != len(todos):
        raise BadOption(
            f"--points has {len(given)} numbers, the lesson has {len(todos)} TODOs: give one each"
        )
    if given:
        return dict(zip(todos, given, strict=True))
    part = round(FULL / len(todos), 2)
    points = dict.fromkeys(todos, part)
    points[todos[-1]] = round(FULL - part * (len(todos) - 1), 2)
    return points


def parse_points(text: str) -> tuple[float, ...]:
    """``40,30,30`` as numbers.

    Raises:
        BadOption: one is no positive number.
    """
    parts = [part.strip() for part in text.split(",")] if text else []
    found = []
    for part in parts:
        try:
            value = float(part)
        except ValueError:
            value = math.nan
        if not 0 < value <= 1e6:
            raise BadOption(f"--points {text}: {part!r} is no positive number: write 40,30,30")
        found.append(value)
    return tuple(found)


def parse_whole(option: str, text: str, least: int) -> int:
    """A whole number that is not too small.

    Raises:
        BadOption: it is none.
    """
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise BadOption(f"{option} {text}: write a whole number, {least} or more")
    return value


def parse_limits(text: str) -> Limits:
    """``memory_mb=2048,cpu_seconds=90`` over the defaults.

    Raises:
        BadOption: a name or number cannot be used.
    """
    limits = Limits()
    known = {field.name: field.type for field in fields(Limits)}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, _, number = part.partition("=")
        try:
            value = float(number)
        except ValueError:
            value = math.nan
        if name not in known or math.isnan(value):
            raise BadOption(f"--limits {part}: write NAME=NUMBER with a NAME of {', '.join(known)}")
        whole = known[name] is int
        if not _LEAST[whole] <= value <= _MOST or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise BadOption(f"--limits {part}: {kind} from {_LEAST[whole]} to {_MOST:.0f}")
        limits = replace(limits, **{name: int(value) if whole else value})  # type: ignore[arg-type]
    return limits
