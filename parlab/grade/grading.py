"""From a request to a class's grades: collected, run, called, decided, reported."""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from parlab.grade import corrections, rows
from parlab.grade.cases import NoCases
from parlab.grade.collect import Collection, NothingToCollect, collect
from parlab.grade.course import Course, NoLesson, load_course
from parlab.grade.exam import Exam, prepare
from parlab.grade.graded import Graded
from parlab.grade.options import BadOption, points_for
from parlab.grade.real import RealParts
from parlab.grade.report import pages
from parlab.grade.report.lms import Student
from parlab.grade.report.write import Handout, write
from parlab.grade.request import Request
from parlab.grade.roster import RosterUnreadable
from parlab.grade.session import grade_class
from parlab.grade.warm import NoSandbox, RunContext, Warm
from parlab.lesson.files import write_whole
from parlab.lesson.loader import LessonUnusable

Say = Callable[[str], None]


def grade(request: Request, warm: Callable[[], Warm], say: Say) -> bool:
    """Grades what a request asks for and writes everything.

    Args:
        warm: waits for the warm processes.

    Returns:
        Whether every submission got its row without the grader failing.
    """
    try:
        return _run(request, warm, say)
    except (
        BadOption, NoLesson, NoCases, NoSandbox, NothingToCollect, RosterUnreadable,
        LessonUnusable, corrections.BadCorrections,
    ) as error:  # fmt: skip
        say(str(error))
        return False


def _run(request: Request, warm: Callable[[], Warm], say: Say) -> bool:
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
        results = _grade(request, warm(), course, exam, collection, say)
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
    request: Request, warm: Warm, course: Course, exam: Exam, collection: Collection, say: Say
) -> list[Graded]:
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
            key: Student(person.number, person.row, person.platform, person.fields)
            for key, person in collection.people.items()
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
