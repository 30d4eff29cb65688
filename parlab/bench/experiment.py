"""A whole run: refusals first, then group after group, each with its record, then the choice."""

import errno
import os
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from parlab.bench import decide, driver, record, storage
from parlab.bench.answers import BadAnswer
from parlab.bench.artifacts import cleaner, save_artifacts, withdraw_report
from parlab.bench.assemble import UNDECIDED_WHY, Context, begin, finish_soundly
from parlab.bench.driver import Job, Nodes
from parlab.bench.lock import NAME as LOCK
from parlab.bench.lock import locked
from parlab.bench.mesh import Mesh
from parlab.bench.plan import Request, plan
from parlab.bench.watch import Say
from parlab.bench.workload import BASELINE
from parlab.interrupts import stops_held_back, stops_interrupt
from parlab.lesson.agreement import disagreement
from parlab.lesson.record_files import BadRecord, read, read_folder

JOBS = "jobs"


def bench(request: Request, say: Say) -> bool:
    """Runs the groups; every run that started leaves a record.

    Returns:
        Whether all of them ended well and were decided on (what the gates say is another matter).

    Raises:
        Refused, BadAnswer, Locked, OSError: before anything is started.
        KeyboardInterrupt: stopped by a signal, after the record is written.
    """
    context, groups = plan(request)
    say(context.functions.describe())
    if request.nodes.rank > 0:
        return _follow(request, context, groups, say)
    jobs = request.folder / JOBS
    jobs.mkdir(parents=True, exist_ok=True)
    record.write_file(jobs / ".gitignore", "*\n")
    # A stop is looked for where a run can end well: no second one cuts its record off.
    with stops_interrupt(), locked(jobs), stops_held_back() as stops:
        return _run_all(request, context, groups, say, stops)


def _run_all(
    request: Request,
    context: Context,
    groups: Mapping[str, Mesh],
    say: Say,
    stops: Sequence[int],
) -> bool:
    good, began, startups = True, time.monotonic(), 0.0
    for number, (name, mesh) in enumerate(groups.items(), 1):
        if stops:
            return False
        say(f"--- {name} ({number} of {len(groups)}): {mesh.name} on {context.device}")
        done = _run_group(request, context, name, mesh, say, stops)
        good &= done["failure"] is None and UNDECIDED_WHY not in done["reasons"]
        startups += done["metrics"]["startup_s"] or 0.0
    if stops:
        return False
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
    request: Request, context: Context, name: str, mesh: Mesh, say: Say, stops: Sequence[int]
) -> dict[str, Any]:
    """One group from its beginning to its record, which comes back."""
    _check_folder(request)
    job, started = _job(request, context, name, mesh), record.now_utc()
    try:
        driver.prepare(job)
        content = begin(context, job, f"{started}-{secrets.token_hex(3)}", started)
        withdraw_report(request.folder)
        record.write(request.folder, content)
        outcome = driver.run(job, say, stops)
        _check_folder(request)
        baseline = None if name == BASELINE else _baseline(request.folder)
        clean = cleaner(request.root)
        done, outcome = finish_soundly(content, outcome, context.functions, baseline, clean)
        done = save_artifacts(done, outcome, request.folder, request.root)
    finally:
        storage.release(job.folder)  # room for the record, if the disk is full
    record.write(request.folder, done)
    say(summary(done))
    if UNDECIDED_WHY in done["reasons"]:
        say(done["reasons"][UNDECIDED_WHY])
    if outcome.interrupted:
        raise outcome.interrupted
    return done


def _check_folder(request: Request) -> None:
    """The results folder must still be there: it is not made again behind its owner's back.

    Raises:
        FileNotFoundError: it is gone.
    """
    lock = request.folder / JOBS / LOCK
    if not lock.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(lock))


def _baseline(folder: Path) -> dict[str, Any] | None:
    try:
        return read(folder / f"{BASELINE}.json")
    except BadRecord:
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
    wrong = disagreement(content)
    gates = f"gates failed: {failed}" if failed else "passes the gates"
    return "; ".join([line, gates, *([f"but {wrong}"] if wrong else [])])


def _choose(request: Request, context: Context, last: str, say: Say) -> bool:
    """Whether the gates and the choice gave an answer, where there was anything to choose from."""
    records, complaints = read_folder(request.folder)
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
    with stops_interrupt():
        for name, mesh in groups.items():
            if name == BASELINE:
                continue
            job = replace(_job(request, context, name, mesh), inject=None)
            driver.await_prepared(job, say)
            with stops_held_back() as stops:
                outcome = driver.run(job, say, stops)
            if outcome.interrupted:
                raise outcome.interrupted
            good &= outcome.failure is None
    return good
