"""The parts that do the work: rebuilding, the sandboxed run, the sandboxed calls."""

import re
from collections.abc import Sequence

from parlab.grade.calling import Answer
from parlab.grade.calls import call_answer
from parlab.grade.cases import Case
from parlab.grade.course import Course
from parlab.grade.needed_cells import skippable
from parlab.grade.rebuild import rebuild
from parlab.grade.runner import run_notebook
from parlab.grade.sources import call_sources, solution_sources
from parlab.grade.types import CallOutcome, Rebuilt, RunOutcome
from parlab.grade.warm import RunContext

_WORD = re.compile(r"[^\W\d]\w*")


class RealParts:
    """`work.Parts` on the lesson's own course, in the sandboxes of a warm parent.

    Args:
        course: the lesson.
        context: where to run, with the limits.
    """

    def __init__(self, course: Course, context: RunContext) -> None:
        self._course, self._context = course, context
        self._solution = {
            todo.function: Answer(*solution_sources(course, todo.number)) for todo in course.todos
        }
        self._functions = {todo.number: todo.function for todo in course.todos}

    def rebuild(self, content: bytes) -> Rebuilt:
        """The exercise with the student's answers."""
        return rebuild(content, self._course)

    def run(self, rebuilt: Rebuilt) -> RunOutcome:
        """Runs what the answers and their checks need of the rebuilt notebook."""
        assert rebuilt.notebook is not None
        return run_notebook(rebuilt.notebook, self._context, skip=skippable(rebuilt.notebook))

    def call(self, rebuilt: Rebuilt, todo: int, cases: Sequence[Case]) -> CallOutcome:
        """Calls one answer; other TODOs' functions that it names come from the solution."""
        source, helpers = call_sources(rebuilt, self._course, todo)
        named = set(_WORD.findall("\n".join([source, *helpers])))
        others = {
            name: answer
            for name, answer in self._solution.items()
            if name != self._functions[todo] and name in named
        }
        return call_answer(
            todo, self._functions[todo], source, helpers, cases, self._context, others=others
        )

    def source(self, rebuilt: Rebuilt, todo: int) -> str:
        """The answer's source."""
        return call_sources(rebuilt, self._course, todo)[0]

    def healthy(self) -> bool:
        """Whether the warm processes are alive."""
        processes = self._context.warm._processes
        return bool(processes) and all(process.poll() is None for process in processes)
