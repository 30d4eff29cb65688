"""``parlab bench``: from arguments to a run, a table or a report."""

import argparse
import contextlib
import os
import signal
import threading
from pathlib import Path

from parlab.bench import machine, options, preflight
from parlab.bench.answers import BadAnswer
from parlab.bench.experiment import bench
from parlab.bench.lock import Locked
from parlab.bench.plan import find_workload
from parlab.bench.request import Refused, Request, problems
from parlab.bench.storage import explain
from parlab.bench.watch import Say
from parlab.bench.workload import BadWorkload, load
from parlab.lesson.loader import LessonUnusable
from parlab.lesson.record_files import BadRecord


def main(arguments: argparse.Namespace, say: Say) -> bool:
    """Does what the command line asks for.

    Returns:
        Whether everything asked for was done.
    """
    if arguments.stop_with_stdin:
        stop_with_stdin()
    try:
        request = options.read(arguments)
        if arguments.preflight or arguments.report is not None:
            if reasons := problems(request):
                raise Refused(reasons)
            if arguments.report is not None:
                return _report(Path(arguments.report), say)
            return _preflight(request, say)
        good = bench(request, say)
        if request.nodes.rank == 0 and not arguments.no_report:
            _report(request.folder, say)
        return good
    except (Refused, BadWorkload, LessonUnusable, BadAnswer, BadRecord, Locked) as error:
        say(str(error))
        return False
    except OSError as error:
        raise OSError(explain(error)) from None


def stop_with_stdin() -> None:
    """From here on this process gets SIGTERM when its standard input ends.

    Whoever started it holds the other end of a pipe, and so stops it also by dying.
    """

    def watch() -> None:
        with contextlib.suppress(OSError):
            while os.read(0, 4096):
                pass
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def _preflight(request: Request, say: Say) -> bool:
    workload = load(find_workload(request.root, request.workload))
    found = machine.look()
    rows = preflight.rows(found, workload.run.world_size)
    say(preflight.table(rows))
    return not any(verdict == preflight.MISSING for _, _, verdict, _ in rows)


def _report(folder: Path, say: Say) -> bool:
    import matplotlib

    matplotlib.use("Agg")  # pictures go to files: no window, whatever the desktop
    from parlab.bench.report import report

    return report(folder, say)
