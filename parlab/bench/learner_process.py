"""A learner's notebook in a process of its own: ``python -m parlab.bench.learner_process``.

Reads a request a line and answers each with a line, both JSON: first the notebook to load, then
calls of its functions. Each has a time limit, after which the system ends this process (SIGALRM),
in the middle of whatever it does.
"""

import json
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

from parlab.lesson.loader import LessonUnusable, Loaded, load_notebook


def main() -> None:
    """Answers until the requests end."""
    requests, answers = _channels()
    loaded: Loaded | None = None
    for line in requests:
        request = json.loads(line)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # whatever a cell has made of it
        signal.setitimer(signal.ITIMER_REAL, request["limit_s"])
        if loaded:
            answer = _call(loaded, request)
        else:
            loaded, answer = _load(request)
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(answer + "\n")
        answers.flush()


def _channels() -> tuple[IO[str], IO[str]]:
    """Requests and answers, out of reach of a cell that prints or asks for input."""
    requests = os.fdopen(os.dup(0), encoding="utf-8")
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    return requests, answers


def _load(request: Mapping[str, Any]) -> tuple[Loaded | None, str]:
    try:
        loaded = load_notebook(Path(request["notebook"]), request["shown"])
    except LessonUnusable as reason:
        return None, json.dumps({"unusable": str(reason)})
    except BaseException as error:
        why = f"{request['shown']} is not finished: running its cells raised {_named(error)}"
        return None, json.dumps({"unusable": why})
    return loaded, json.dumps({"names": list(loaded.functions), "sha256": loaded.sha256})


def _call(loaded: Loaded, request: Mapping[str, Any]) -> str:
    try:
        got = loaded[request["function"]](*request["arguments"])
    except BaseException as error:
        return json.dumps({"raised": _named(error)})
    try:
        return json.dumps({"returned": got})
    except (TypeError, ValueError, RecursionError):  # it holds what is no plain data
        return json.dumps({"odd": _safe(repr, got)})


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {_safe(str, error)}"


def _safe(word: Callable[[object], str], value: object) -> str:
    """A learner's object in words, where it can be put in any."""
    try:
        return word(value)[:500]
    except BaseException as error:
        return f"<{type(value).__name__}: {word.__name__}() raised {type(error).__name__}>"


if __name__ == "__main__":
    main()
