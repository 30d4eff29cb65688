"""``parlab grade``: from arguments to a class's grades."""

import argparse
import contextlib
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from parlab.grade import corrections, rows
from parlab.grade.cases import NoCases
from parlab.grade.collect import Collection, NothingToCollect, collect
from parlab.grade.course import Course, NoLesson, load_course
from parlab.grade.exam import Exam, prepare
from parlab.grade.graded import Graded
from parlab.grade.limits import Limits
from parlab.grade.options import BadOption, parse_limits, parse_points, points_for
from parlab.grade.real import RealParts
from parlab.grade.report import pages
from parlab.grade.report.lms import Student
from parlab.grade.report.write import Handout, write
from parlab.grade.roster import RosterUnreadable
from parlab.grade.session import grade_class
from parlab.grade.warm import NoSandbox, RunContext, Warm
from parlab.lesson.files import write_whole
from parlab.lesson.loader import LessonUnusable

Say = Callable[[str], None]


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


def main(arguments: argparse.Namespace, say: Say) -> bool:
    """Grades a class.

    Returns:
        Whether every submission got its row without the grader failing.
    """
    try:
        return run(_request(arguments), say)
    except (
        BadOption, NoLesson, NoCases, NoSandbox, NothingToCollect, RosterUnreadable,
        LessonUnusable, corrections.BadCorrections,
    ) as error:  # fmt: skip
        say(str(error))
        return False


def run(request: Request, say: Say) -> bool:
    """Grades what a request asks for and writes everything."""
    chinese = request.language == "zh"
    course = load_course(request.root, request.lesson)
    functions = {todo.number: todo.function for todo in course.todos}
    points = points_for(request.points, list(functions))
    manual = corrections.read(request.corrections, points)
    exam = prepare(request.root, course.name, functions, request.seed)
    collection = collect(request.submissions, course, request.roster)
    request.out.mkdir(parents=True, exist_ok=True)
    count = len(collection.submissions)
    say(f"{count} 份提交 · {course.name}" if chinese else f"{count} submissions · {course.name}")
    try:
        results = _grade(request, course, exam, collection, say)
    except KeyboardInterrupt:
        say(
            "已中断。评好的结果都留着：再运行同样的命令，就从这里继续。"
            if chinese
            else "interrupted. Finished results are kept: run the same command again to go on."
        )
        raise
    page = _report(request, course, exam, collection, results, points, manual)
    failed = [row for row in results if row.status == "grader_error"]
    for row in failed:
        say(f"grader_error: {row.display}: {request.out}/logs/{row.student}.log")
    say(f"成绩：{page}" if chinese else f"grades: {page}")
    return not failed


def _grade(
    request: Request, course: Course, exam: Exam, collection: Collection, say: Say
) -> list[Graded]:
    with _warm(request, say) as warm:
        context = RunContext(warm, limits=request.limits)
        return grade_class(
            exam,
            RealParts(course, context),
            collection.submissions,
            len(collection.submissions),
            request.out,
            repr(request.limits),
            request.jobs,
            say,
            request.language,
        )


@contextlib.contextmanager
def _warm(request: Request, say: Say) -> Iterator[Warm]:
    """The warm processes, with a sandbox where there can be one.

    Raises:
        NoSandbox: there can be none, and nobody said to go on without.
    """
    fork = not request.plain_kernels
    with contextlib.ExitStack() as stack:
        try:
            warm = stack.enter_context(Warm(fork=fork, course=request.root))
        except NoSandbox as reason:
            if not request.trust:
                raise
            say(str(reason))
            trusting = Warm(trust_every_student=True, fork=fork, course=request.root)
            warm = stack.enter_context(trusting)
        yield warm


def _report(
    request: Request,
    course: Course,
    exam: Exam,
    collection: Collection,
    results: list[Graded],
    points: Mapping[int, float],
    manual: list[corrections.Correction],
) -> Path:
    names = {result.student: result.display for result in results}
    by_student, lost = corrections.by_student(manual, names)
    if not request.corrections.exists():
        write_whole(
            request.corrections,
            lambda path: path.write_text(corrections.template(), encoding="utf-8-sig", newline=""),
        )
    about = pages.About(
        lesson=course.name,
        title=title_of(course, request.language),
        language=request.language,
        seed=request.seed,
        when=time.strftime("%Y-%m-%d %H:%M"),
        points=points,
        rules=exam.rules,
    )
    handout = Handout(
        about=about,
        rows=rows.make_rows(results, points, by_student),
        students={
            key: Student(person.number, person.row) for key, person in collection.people.items()
        },
        roster=collection.roster,
        notes=collection.notes,
        lost=lost,
    )
    return write(handout, request.out)


def title_of(course: Course, language: str) -> str:
    """The exercise's first heading; the lesson's name where there is none."""
    for cell in course.exercise[language].cells:
        if cell.cell_type == "markdown" and (found := re.search(r"(?m)^# (.+)$", cell.source)):
            return found[1].strip()
    return course.name


def _request(arguments: argparse.Namespace) -> Request:
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
