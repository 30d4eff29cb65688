"""Runs another notebook's cells without a trace in this one."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from parlab.lesson import language


@contextmanager
def undisturbed() -> Iterator[None]:
    """Afterwards the language and the modules of ``parlab`` are what they were before.

    A single-file twin puts the modules that it carries in the place of those that are there, and
    every set-up cell chooses a language.
    """
    spoken = language.spoken()
    before = {name: module for name, module in sys.modules.items() if _ours(name)}
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _ours(name) and name not in before]:
            del sys.modules[name]
        sys.modules.update(before)
        language.speak(spoken)


def _ours(name: str) -> bool:
    return name.partition(".")[0] == "parlab"
