"""What a run remembers, one file a student, so that it can be interrupted and taken up again."""

import contextlib
import hashlib
import json
from pathlib import Path

from parlab.grade.exam import Exam
from parlab.grade.graded import Graded, from_plain, to_plain
from parlab.lesson.files import write_whole

FOLDER = ".state"
# Raise it where a stored result means something else than before.
FORMAT = 1
LARGEST = 4 * 1024 * 1024  # bytes of one stored result that are read


_LESSON = "lesson"  # in the folder of results


def lesson_in(out: Path) -> str:
    """The lesson whose grades lie in a folder; empty where none do."""
    with contextlib.suppress(OSError, ValueError):
        return (out / FOLDER / _LESSON).read_text(encoding="utf-8").strip()
    return ""


def keep_lesson(out: Path, lesson: str) -> None:
    """Remembers whose grades and corrections a folder holds."""
    (out / FOLDER).mkdir(parents=True, exist_ok=True)
    write_whole(out / FOLDER / _LESSON, lambda path: path.write_text(lesson, encoding="utf-8"))


class State:
    """The results kept in ``<out>/.state``.

    A result is taken again only for the same bytes, lesson, grader, cases' seed and limits.

    Args:
        out: the run's output folder.
        exam: the lesson and its cases.
        limits: the sandbox's limits, in words.
    """

    def __init__(self, out: Path, exam: Exam, limits: str) -> None:
        self.folder = out / FOLDER
        self.folder.mkdir(parents=True, exist_ok=True)
        self._base = f"{FORMAT}\n{exam.digest}\n{limits}\n"

    def key(self, digest: str) -> str:
        """What a submission's result is kept under; it holds all that decides the result."""
        return hashlib.sha256((self._base + digest).encode()).hexdigest()

    def load(self, student: str, digest: str) -> Graded | None:
        """The student's result, if it is of these bytes; None where it is not or is unreadable."""
        path = self._path(student)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, RecursionError):
            if path.stat().st_size > LARGEST:
                return None
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["key"] == self.key(digest):
                return from_plain(kept["graded"])
        return None

    def save(self, graded: Graded) -> None:
        """Keeps a result, at once and whole. The grader's own failures are not kept."""
        if graded.status == "grader_error" or not graded.digest:
            return
        kept = {"key": self.key(graded.digest), "graded": to_plain(graded)}
        text = json.dumps(kept, ensure_ascii=True, default=str)
        write_whole(
            self._path(graded.student), lambda path: path.write_text(text, encoding="utf-8")
        )

    def _path(self, student: str) -> Path:
        name = hashlib.sha256(student.encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return self.folder / f"{name}.json"
