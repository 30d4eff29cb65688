"""Whose three functions decide: the learner's from lesson 04 where finished, else the answer's."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from parlab.lesson.language import say
from parlab.lesson.loader import LessonUnusable, Loaded, load_notebook, load_solution
from parlab.lesson.records import course_folder

LESSON = "04_model_internal_parallel"
_OPEN = re.compile(r"(.+) is not finished: TODO (\d+) is open")


@dataclass(frozen=True)
class Deciders:
    """Lesson 04's functions, by name, and the notebook that they come from.

    Attributes:
        notebook: the learner's file; None where the answer decides.
    """

    loaded: Loaded
    notebook: Path | None

    def __getitem__(self, name: str) -> Callable[..., Any]:
        return self.loaded[name]


def load_deciders(notebook: str | None = None) -> Deciders:
    """The functions of ``notebook``, else of a lesson-04 notebook that lies here or in the course.

    Prints which functions decide, and why it is not the learner's where it is not.

    Args:
        notebook: a path, such as that of an uploaded file.

    Raises:
        LessonUnusable: not even the answer can be loaded.
    """
    reasons = []
    for place, shown in _places(notebook):
        try:
            found = load_notebook(place, shown)
        except LessonUnusable as reason:
            reasons.append(str(reason))
            continue
        print(say("deciders_learner", source=found.source))
        return Deciders(found, place.resolve())
    answer_of = f"solutions/{LESSON}.py"
    note = "; ".join(reasons) or "no notebook"
    answer = load_solution(course_folder() / answer_of, answer_of, note)
    print(say("deciders_solution", source=answer.source))
    for line in reasons or [say("deciders_none", lesson=LESSON)]:
        print("  " + _worded(line))
    return Deciders(answer, None)


def _worded(reason: str) -> str:
    """A reason of the loader for learners; the most frequent one in the notebook's language."""
    found = _OPEN.fullmatch(reason)
    return say("deciders_open", source=found[1], number=found[2]) if found else reason


def _places(notebook: str | None) -> list[tuple[Path, str]]:
    """Where a learner's notebook may lie, each with the name to show.

    Beside this notebook also the copies that browsers name ``… (1).ipynb``.
    """
    if notebook:
        return [(Path(notebook), Path(notebook).name)]
    course = course_folder()
    names = [f"notebooks/{LESSON}.ipynb", f"notebooks/en/{LESSON}.ipynb"]
    places = [(course / name, name) for name in names if (course / name).is_file()]
    known = {place.resolve() for place, _ in places}
    built = {course / "solutions", course / "solutions" / "en"}
    for file in sorted(Path.cwd().resolve().glob(f"{LESSON}*.ipynb")):
        if file not in known and file.parent not in built:
            places.append((file, file.name))
    return places
