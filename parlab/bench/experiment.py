"""A whole run: refusals first, then group after group, each with its record, then the choice."""

import secrets
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from parlab.bench import decide, driver, record
from parlab.bench.answers import BadAnswer
from parlab.bench.artifacts import cleaner, save_artifacts
from parlab.bench.assemble import UNDECIDED_WHY, Context, begin, finish
from parlab.bench.driver import Job, Nodes, Outcome, Say
from parlab.bench.lock import locked
from parlab.bench.mesh import Mesh
from parlab.bench.plan import Request, plan
from parlab.bench.workload import BASELINE

JOBS = "jobs"


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, handled as Ctrl-C is."""


def bench(request: Request, say: Say) -> bool:
    """Runs the groups; every run that started leaves a record.

    Returns:
        Whether all of them ended well and were decided on (what the gates say is another matter).

    Raises:
        Refused, BadWorkload, LessonUnusable, BadAnswer, Locked, OSError: before anything is
            started.
        KeyboardInterrupt: stopped by a signal, after the record is written.
    """
    context, groups = plan(request)
    say(context.functions.describe())
    if request.nodes.rank > 0:
        return _follow(request, context, groups, say)
    good, began, startups = True, time.monotonic(), 0.0
    jobs = request.folder / JOBS
    jobs.mkdir(parents=True, exist_ok=True)
    record.write_file(jobs / ".gitignore", "*\n")
    with locked(jobs), _signals():
        for number, (name, mesh) in enumerate(groups.items(), 1):
            say(f"--- {name} ({number} of {len(groups)}): {mesh.name} on {context.device}")
            outcome, done = _run_group(request, context, name, mesh, say)
            good &= outcome.failure is None and UNDECIDED_WHY not in done["reasons"]
            startups += outcome.startup_s or 0.0
        say(f"in all {time.monotonic() - began:.1f} s, of which {startups:.1f} s start-up")
        return _choose(request, context, list(groups)[-1], say) and good


def _job(request: Request, context: Context, name: str, mesh: Mesh) -> Job:
    nodes = request.nodes if name != BASELINE else Nodes()
    yardstick = request.folder / JOBS / BASELINE
    baseline = _baseline(request.folder)
    usable = (
        name != BASELINE
        and baseline is not None
        and not baseline["failure"]
        and baseline["workload"]["fingerprint"] == context.workload.fingerprint()
        and (yardstick / "reference.pt").is_file()
    )
    return Job(
        name=name,
        folder=request.folder / JOBS / name,
        root=request.root,
        workload=context.workload.as_dict(),
        mesh=mesh,
        device=context.device,
        timeout_s=request.timeout_s or context.workload.run.timeout_s,
        reference=yardstick.resolve() if usable else None,
        nodes=nodes,
        inject=request.inject.get(name),
        launcher=request.launcher,
        program=request.program,
    )


def _run_group(
    request: Request, context: Context, name: str, mesh: Mesh, say: Say
) -> tuple[Outcome, record.Record]:
    job, started = _job(request, context, name, mesh), record.now_utc()
    driver.prepare(job)
    run_id = f"{started}-{secrets.token_hex(3)}"
    content = begin(context, job, run_id, started)
    record.write(request.folder, content)
    outcome = driver.run(job, say)
    content = save_artifacts(content, outcome, request.folder, request.root)
    baseline = None if name == BASELINE else _baseline(request.folder)
    done = finish(content, outcome, context.functions, baseline, cleaner(request.root))
    record.write(request.folder, done)
    say(summary(done))
    if UNDECIDED_WHY in done["reasons"]:
        say(done["reasons"][UNDECIDED_WHY])
    if outcome.interrupted:
        raise outcome.interrupted
    return outcome, done


def _baseline(folder: Path) -> dict[str, Any] | None:
    try:
        return record.read(folder / f"{BASELINE}.json")
    except record.BadRecord:
        return None


def summary(content: Mapping[str, Any]) -> str:
    """One line about a run."""
    name, failure = content["name"], content["failure"]
    if failure:
        return f"{name}: FAILED ({failure['kind']}): {failure['message']}"
    metrics = content["metrics"]
    line = (
        f"{name}: {metrics['throughput']['median']:.0f} tokens/s, "
        f"bubble {metrics['bubble_ratio']:.3f}, "
        f"communication {metrics['communication_ratio']:.3f}, "
        f"{metrics['peak_memory_mb']['max']:.0f} MB a rank"
    )
    if metrics["startup_s"] is not None:
        line += f", start-up {metrics['startup_s']:.1f} s"
    failed = ", ".join(content["decision"]["gate_failures"])
    return f"{line}; {'gates failed: ' + failed if failed else 'passes the gates'}"


def _choose(request: Request, context: Context, last: str, say: Say) -> bool:
    """Whether the gates and the choice gave an answer, where there was anything to choose from."""
    records, complaints = record.read_folder(request.folder)
    for line in complaints:
        say(f"left out of the decision: {line}")
    try:
        choice = decide.choose(records, context.workload.fingerprint(), context.functions, last)
    except BadAnswer as error:
        say(f"no decision, every record is kept: {error}")
        return False
    if choice is None:
        say("no decision: only the baseline has run")
        return True
    record.write(request.folder, choice)
    say(f"decision: {choice['decision']} {choice['candidate'] or ''}".rstrip())
    say(choice["meaning"])
    return True


def _follow(request: Request, context: Context, groups: Mapping[str, Mesh], say: Say) -> bool:
    """Node 1 and up: joins each group that node 0 has prepared; writes no record.

    The results folder must be one that all nodes see.
    """
    good = True
    with _signals():
        for name, mesh in groups.items():
            if name == BASELINE:
                continue
            job = replace(_job(request, context, name, mesh), inject=None)
            driver.await_prepared(job, say)
            outcome: Outcome = driver.run(job, say)
            if outcome.interrupted:
                raise outcome.interrupted
            good &= outcome.failure is None
    return good


@contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does, where this is the main thread."""

    def stop(number: int, _frame: Any) -> None:
        raise Terminated(f"signal {number}")

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    wanted = (signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
