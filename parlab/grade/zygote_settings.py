"""What the warm parent is told; a light module, so that it can be told before torch is there."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the warm parent is told.

    Attributes:
        folder: private to the grader: the sockets of clients and kernels.
        course: the folder that holds ``parlab/``.
        shut_in: False where every student is trusted.
        fork: False makes children start Python anew.
        fonts: matplotlib's list of fonts; empty where there is none.
    """

    folder: str
    course: str
    shut_in: bool = True
    fork: bool = True
    fonts: str = ""
