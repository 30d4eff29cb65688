"""A whole run: every submission graded once, in parallel, whatever one of them does."""

import os
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from parlab.grade.exam import Exam
from parlab.grade.graded import Graded
from parlab.grade.progress import Progress, Say
from parlab.grade.state import State
from parlab.grade.types import Submission
from parlab.grade.work import Parts, digest_of, failed_row, grade_one
from parlab.lesson.files import write_whole

LOGS = "logs"
LONGEST_LOG = 200_000  # characters


def grade_class(
    exam: Exam,
    parts: Parts,
    submissions: Iterable[Submission],
    total: int,
    out: Path,
    limits: str,
    jobs: int,
    say: Say,
    language: str = "zh",
) -> list[Graded]:
    """Grades every submission; one row each, in the order given.

    At most ``2 × jobs`` submissions are held at a time beside what the caller holds. Each result
    is kept as soon as it is there, so that a run that was interrupted goes on where it stopped.

    Args:
        total: how many there are, for the progress shown.
        out: where state and logs go.
        limits: the sandbox's limits in words: results made under others are not taken again.
        jobs: how many run at a time.

    Raises:
        KeyboardInterrupt: after the submissions being graded were given up; the rest is kept.
    """
    state, progress = State(out, exam, limits), Progress(total, say, language)
    rows: dict[int, Graded] = {}
    given_up = threading.Event()  # what ends from then on was cut off: its result means nothing

    def one(submission: Submission) -> Graded:
        kept = state.load(submission.student, digest_of(submission))
        if kept is not None:
            return _as_found(kept, submission)
        try:
            graded = grade_one(exam, parts, submission)
            if not given_up.is_set():
                state.save(graded)
            return graded
        except Exception as error:
            log = "" if given_up.is_set() else _log(out, submission, error)
            return failed_row(exam, submission, log, error)

    pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="grade")
    try:
        for index, graded in _in_parallel(pool, one, _distinct(submissions), 2 * jobs):
            rows[index] = graded
            progress.count(graded.reused)
    except BaseException:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    pool.shutdown()
    return [rows[index] for index in sorted(rows)]


def _in_parallel(
    pool: ThreadPoolExecutor,
    work: Callable[[Submission], Graded],
    submissions: Iterable[Submission],
    most: int,
) -> Iterator[tuple[int, Graded]]:
    """Results as they come, with their submissions' positions; at most ``most`` under way."""
    pending: dict[Future[Graded], int] = {}
    source = enumerate(submissions)
    exhausted = False
    while pending or not exhausted:
        while not exhausted and len(pending) < most:
            item = next(source, None)
            if item is None:
                exhausted = True
            else:
                pending[pool.submit(work, item[1])] = item[0]
        if pending:
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                yield pending.pop(future), future.result()


def _distinct(submissions: Iterable[Submission]) -> Iterator[Submission]:
    """The submissions; a student key that comes twice gets a number, so that no row is lost."""
    seen: set[str] = set()
    for submission in submissions:
        key, number = submission.student, 1
        while key.casefold() in seen:
            number += 1
            key = f"{submission.student}-{number}"
        seen.add(key.casefold())
        if number == 1:
            yield submission
        else:
            notes = (*submission.notes, ("same_key", {"key": submission.student}))
            yield replace(submission, student=key, notes=notes)


def _as_found(kept: Graded, submission: Submission) -> Graded:
    """An earlier result under the name and the notes of this run's submission."""
    return replace(
        kept,
        student=submission.student,
        display=submission.display,
        path=submission.path,
        found=submission.notes,
        reused=True,
    )


def _log(out: Path, submission: Submission, error: BaseException) -> str:
    """Writes what went wrong; the log's name below ``out``."""
    name = f"{LOGS}/{submission.student}.log"
    text = "".join(traceback.format_exception(error))[-LONGEST_LOG:]
    try:
        (out / LOGS).mkdir(parents=True, exist_ok=True)
        write_whole(
            out / name,
            lambda path: path.write_text(
                f"{submission.path!r}\n{text}", encoding="utf-8", errors="backslashreplace"
            ),
        )
    except OSError as problem:
        return f"– ({os.strerror(problem.errno or 0)})"
    return name
