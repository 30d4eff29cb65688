"""What one submission may use."""

from dataclasses import dataclass

MB = 1024 * 1024


@dataclass(frozen=True)
class Limits:
    """Bounds of one sandbox; a notebook's run has one, and each TODO's calls have one.

    CPU time is what counts: wall time is generous, so that a loaded machine fails nobody.

    Attributes:
        cpu_seconds: of all its processes together.
        wall_seconds: from start to end.
        cell_seconds: wall time of one cell.
        case_seconds: wall time of one call.
        memory_mb: new memory of all its processes together, scratch files included; what the warm
            parent already holds does not count.
        processes: processes and threads.
        file_mb: the largest file.
        scratch_mb: all files together; they live in memory.
        output_mb: what a notebook may print and draw, or a TODO's calls may return, in all.
        message_mb: one message of a kernel.
        result_mb: one call's result.
    """

    cpu_seconds: float = 60
    wall_seconds: float = 240
    cell_seconds: float = 90
    case_seconds: float = 20
    memory_mb: int = 1024
    processes: int = 128
    file_mb: int = 32
    scratch_mb: int = 64
    output_mb: int = 16
    message_mb: int = 4
    result_mb: int = 1
