"""``parlab grade``: the warm processes start first, since all that is imported takes seconds."""

import argparse
import contextlib
from collections.abc import Callable

from parlab.grade.options import BadOption
from parlab.grade.request import Request, request_of
from parlab.grade.warm import NoSandbox, Warm


def main(arguments: argparse.Namespace, say: Callable[[str], None]) -> bool:
    """Grades a class.

    Returns:
        Whether every submission got its row without the grader failing.
    """
    with contextlib.ExitStack() as stack:
        try:
            request = request_of(arguments)
            first = _start(request, stack, say)
        except (BadOption, NoSandbox) as error:
            say(str(error))
            return False
        from parlab.grade import grading  # with torch: meanwhile the warm processes import theirs

        return grading.grade(request, lambda: _ready(first, request, stack, say), say)


def _start(request: Request, stack: contextlib.ExitStack, say: Callable[[str], None]) -> Warm:
    """The warm processes, with a sandbox where there can be one; they may not be ready yet.

    Raises:
        NoSandbox: there can be none, and nobody said to go on without.
    """
    warm = Warm(fork=not request.plain_kernels, course=request.root)
    stack.callback(warm.__exit__)
    try:
        warm.start()
    except NoSandbox as reason:
        return _trusting(request, stack, say, reason)
    return warm


def _ready(
    warm: Warm, request: Request, stack: contextlib.ExitStack, say: Callable[[str], None]
) -> Warm:
    try:
        warm.await_ready()
    except NoSandbox as reason:
        warm = _trusting(request, stack, say, reason)
        warm.await_ready()
    return warm


def _trusting(
    request: Request, stack: contextlib.ExitStack, say: Callable[[str], None], reason: NoSandbox
) -> Warm:
    if not request.trust:
        raise reason
    say(str(reason))
    warm = Warm(trust_every_student=True, fork=not request.plain_kernels, course=request.root)
    stack.callback(warm.__exit__)
    warm.start()
    return warm
