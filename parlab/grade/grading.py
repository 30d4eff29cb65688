"""From a request to a class's grades: collected, run, called, decided, reported."""

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
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
from parlab.grade.roster import Roster, RosterUnreadable
from parlab.grade.session import grade_class
from parlab.grade.state import keep_lesson, lesson_in
from parlab.grade.students import show_name
from parlab.grade.warm import NoSandbox, RunContext, Warm
from parlab.lesson.files import write_whole
from parlab.lesson.loader import LessonUnusable

Say = Callable[[str], None]
_SHOWN = 5  # corrections that a line names at most


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
    _check_lesson(request.out, course.name)
    functions = {todo.number: todo.function for todo in course.todos}
    points = points_for(request.points, list(functions))
    manual = corrections.read(request.corrections, points, course.name)
    exam = prepare(request.root, course.name, functions, request.seed)
    collection = collect(request.submissions, course, request.roster)
    request.out.mkdir(parents=True, exist_ok=True)
    keep_lesson(request.out, course.name)
    count = sum(
        one.problem is None or one.problem[0] != rows.NOT_HANDED_IN
        for one in collection.submissions
    )
    if collection.roster and collection.roster.kind == "list":
        say(_list_of(request.roster, collection.roster, chinese))
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
    names = {result.student: result.display for result in results}
    others = {key: person.others for key, person in collection.people.items()}
    by_student, lost = corrections.by_student(manual, names, others)
    graded = rows.make_rows(results, points, by_student)
    page = _report(request, course, exam, collection, graded, points, lost)
    for line in (*_of_other_lessons(results, chinese), *_lost(request.corrections, lost, chinese)):
        say(line)
    failed = [row for row in results if row.status == "grader_error"]
    for row in failed:
        say(f"grader_error: {row.display}: {request.out}/logs/{row.student}.log")
    say(f"成绩：{page}" if chinese else f"grades: {page}")
    return not failed


def _check_lesson(out: Path, lesson: str) -> None:
    """Refuses a folder with another lesson's grades, whose corrections would count here.

    Raises:
        BadOption: it is one.
    """
    held = lesson_in(out)
    if held and held != lesson:
        fresh = f"{out}-{lesson.partition('_')[0]}"
        raise BadOption(
            f"--out {out} 里是 {held} 的成绩和改分：请换一个文件夹，例如 --out {fresh}"
            f" | holds the grades and corrections of {held}: choose another, as --out {fresh}"
        )


def _list_of(path: Path | None, roster: Roster, chinese: bool) -> str:
    """What a roster without column names was taken for."""
    people, first = len(roster.entries), show_name(roster.entries[0].display)
    return (
        f"名单 {path} 没有列名，按每行一位学生读：{people} 位，第一位是 {first}"
        if chinese
        else f"roster {path} has no column names, a line was taken for a student: {people}, the "
        f"first is {first}"
    )


def _of_other_lessons(results: Sequence[Graded], chinese: bool) -> list[str]:
    """A line where half of what was handed in, or more, is one other lesson's."""
    handed_in = [result for result in results if result.status != rows.NOT_HANDED_IN]
    found = Counter(
        str(values.get("found"))
        for result in handed_in
        for key, values in result.notes
        if key == "other_lesson"
    )
    for lesson, count in found.most_common(1):
        if 2 * count >= len(handed_in):
            return [
                f"{len(handed_in)} 份里有 {count} 份是 {lesson} 的：--lesson 写对了吗？"
                if chinese
                else f"{count} of {len(handed_in)} are {lesson}: is --lesson right?"
            ]
    return []


def _lost(path: Path, lost: Sequence[corrections.Correction], chinese: bool) -> list[str]:
    """A line where corrections fit nobody, or several."""
    if not lost:
        return []
    shown = ", ".join(f"{show_name(one.student)} ({one.line})" for one in lost[:_SHOWN])
    shown += " …" if len(lost) > _SHOWN else ""
    return [
        f"{path}：{len(lost)} 条改分没有用上：找不到这个学生，或者有几个，或者后面又改了一次"
        f"（括号里是行号）：{shown}"
        if chinese
        else f"{path}: {len(lost)} not applied, since the student (line) fits nobody or several, "
        f"or a later line says otherwise: {shown}"
    ]


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
    graded: Sequence[rows.Row],
    points: Mapping[int, float],
    lost: Sequence[corrections.Correction],
) -> Path:
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
        rows=graded,
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
