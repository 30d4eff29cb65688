"""Which rank failed, and how: from what the ranks wrote and what torchrun said."""

import re
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PHASES = ("start", "build", "warmup", "measure", "trace", "done")
TAIL = 20
# What a healthy rank says when another one is gone or late.
_ECHO = re.compile(
    r"connection (?:closed|reset|refused)|closed by peer|broken pipe|timed? ?out|socket closed"
    r"|read error|write error|peer .*(?:down|died|disconnect)|remote process (?:exited|has)"
    r"|aborted",
    re.IGNORECASE,
)
# In whose words it says so: torch's. An error that merely has one behind it, as torch's pipelining
# wraps them, is an echo too. The same words in another library's mouth are no echo.
_TORCHS = re.compile(r"^(?:\w+\.)*(?:RuntimeError|Dist\w*Error): .*", re.MULTILINE)
_LATE = re.compile(r"timed? ?out", re.IGNORECASE)
_MEMORY = re.compile(r"out of memory|can(?:'t|not) allocate memory|MemoryError|bad_alloc", re.I)
_EXIT = re.compile(
    r"rank\s*: (?P<rank>\d+) \(local_rank: \d+\)\s*\n\s*exitcode\s*: (?P<code>-?\d+)"
    r" \(pid: (?P<pid>\d+)\)"
)
_PUT_DOWN = re.compile(r"Unable to shutdown process (?P<pid>\d+) ")
# Python's fault handler, and the frames in which a rank waits for others.
_THREAD = re.compile(r"^(?:(?P<current>Current )t|T)hread 0x\w+.*:$", re.MULTILINE)
_FRAME = re.compile(r'^  File "(?P<file>.+)", line (?P<line>\d+) in (?P<name>\S+)', re.MULTILINE)
_WAITS = re.compile(r"distributed_c10d|_functional_collectives|wait|recv|collectives\.py|barrier")


@dataclass(frozen=True)
class Evidence:
    """What is left of a run.

    Attributes:
        world_size: how many ranks there should have been.
        returncode: torchrun's; None where it had to be stopped.
        stopped: why the driver stopped it (``"timeout"``, ``"interrupted"``), or None.
        seconds: how long it ran.
        failures: rank → ``failure-<rank>.json``.
        progress: rank → ``progress-<rank>.json``.
        finished: the ranks that wrote ``rank-<rank>.json``.
        log: what torchrun printed.
        rank_logs: rank → what it printed; its stacks where the time was up.
        now: the time at the end, on the clock of ``progress``'s ``time``.
        trouble: what keeps files from being written to the job folder; empty where nothing does.
    """

    world_size: int
    returncode: int | None
    stopped: str | None
    seconds: float
    failures: Mapping[int, Mapping[str, Any]]
    progress: Mapping[int, Mapping[str, Any]]
    finished: frozenset[int]
    log: str
    rank_logs: Mapping[int, str]
    now: float
    trouble: str = ""


def blame(evidence: Evidence) -> dict[str, Any] | None:
    """A record's ``failure``: kind, rank, message and the log's tail; None where all went well."""
    found = _verdict(evidence)
    if found is None:
        return None
    kind, rank, message = found
    own = evidence.failures.get(-1 if rank is None else rank, {})
    said = "" if rank is None else evidence.rank_logs.get(rank, "")
    text = str(own.get("traceback") or said or evidence.log)
    return {"kind": kind, "rank": rank, "message": message, "log_tail": tail(text)}


def tail(text: str) -> list[str]:
    """The last lines that say something."""
    return [line[:300] for line in text.splitlines() if line.strip()][-TAIL:]


def _verdict(e: Evidence) -> tuple[str, int | None, str] | None:
    missing = sorted(set(range(e.world_size)) - e.finished)
    if e.returncode == 0 and not missing and not e.stopped:
        return None
    if e.stopped == "interrupted":
        return "interrupted", None, f"stopped after {e.seconds:.1f} s; {where(e)}"
    if e.stopped == "timeout":
        return _own(e) or _late(e)
    killed = _signals(e)
    crashed = {rank: n for rank, n in killed.items() if n != signal.SIGABRT}
    if found := _ended(crashed, e) or _own(e) or _ended(killed, e):
        return found
    died = {int(m["rank"]): int(m["code"]) for m in _EXIT.finditer(e.log)}
    broken = sorted(r for r, c in died.items() if c > 0 and r not in e.failures)
    if broken:
        rank = broken[0]
        return "exception", rank, _and(f"rank {rank} ended with code {died[rank]}", e)
    if any(_LATE.search(said) for d in e.failures.values() for said in _echoes(d)):
        return _late(e)
    if e.failures:
        gone = _last(e, set(range(e.world_size)) - set(e.failures))
        what = f"rank {gone} vanished" if gone is not None else "a connection broke"
        return "killed", gone, _and(f"{what} and the others lost the connection", e)
    if e.returncode == 0:
        return (
            "output",
            missing[0],
            _and(f"rank {missing[0]} ended well but left no readable result", e),
        )
    return (
        "launch",
        None,
        _and(f"torchrun ended with code {e.returncode} after {e.seconds:.1f} s", e),
    )


def _and(what: str, e: Evidence) -> str:
    """With what keeps files from being written: of that, a rank's own words are often lost."""
    return "; ".join(filter(None, [what, e.trouble, where(e)]))


def _own(e: Evidence) -> tuple[str, int, str] | None:
    """The first error that some rank made itself."""
    own = {rank: failure for rank, failure in e.failures.items() if not _echoes(failure)}
    if not own:
        return None
    rank = min(own, key=lambda r: (own[r].get("time", 0), r))
    message = str(own[rank].get("message") or "no message")
    memory = own[rank].get("kind") == "memory" or _MEMORY.search(message)
    return ("memory" if memory else "exception"), rank, f"rank {rank}: {message[:2000]}"


def _echoes(failure: Mapping[str, Any]) -> list[str]:
    """What an error, or one that led to it, says of a peer that is gone or late."""
    text = f"{failure.get('message', '')}\n{failure.get('traceback', '')}"
    return [said for said in _TORCHS.findall(text) if _ECHO.search(said)]


def _signals(e: Evidence) -> dict[int, int]:
    """Rank → the signal that ended it, unless it is torchrun's own, with which it ends the rest."""
    put_down = {m["pid"] for m in _PUT_DOWN.finditer(e.log)}
    return {
        int(m["rank"]): -int(m["code"])
        for m in _EXIT.finditer(e.log)
        if int(m["code"]) < 0
        and -int(m["code"]) != signal.SIGTERM
        and not (-int(m["code"]) == signal.SIGKILL and m["pid"] in put_down)
    }


def _ended(killed: Mapping[int, int], e: Evidence) -> tuple[str, int, str] | None:
    """The rank that a signal ended; one that aborts since a peer is gone comes last."""
    if not killed:
        return None
    rank = min(killed, key=lambda r: (killed[r] == signal.SIGABRT, r))
    return "killed", rank, _killed(rank, killed[rank], e)


def _killed(rank: int, number: int, e: Evidence) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "unknown"
    cause = "kill -9, or the system had no memory left" if number == signal.SIGKILL else "a crash"
    return f"rank {rank} was ended by signal {number} ({name}: {cause}); {where(e)}"


def _late(e: Evidence) -> tuple[str, int | None, str]:
    """The time is up. A rank that stands still while others wait for it hangs."""
    silent = set(range(e.world_size)) - set(e.failures) - e.finished or set(range(e.world_size))
    stacks = {rank: stack for rank in silent if (stack := innermost(e.rank_logs.get(rank, "")))}
    waiting = {rank for rank, stack in stacks.items() if _WAITS.search("\n".join(stack))}
    # A rank whose stack did not arrive in time may be waiting too: one that is known comes first.
    alone = (set(stacks) - waiting) or (silent - waiting) if waiting else set()
    rank = _last(e, alone or silent)
    if rank is None:
        return "timeout", None, f"no rank reported within {e.seconds:.1f} s"
    still = e.now - float(e.progress.get(rank, {}).get("time", e.now - e.seconds))
    if e.failures or still > max(5.0, e.seconds / (10 if alone else 4)):
        at = f" in {stacks[rank][0]}" if rank in stacks else ""
        return "hang", rank, f"rank {rank} stood still for {still:.1f} s{at}; {where(e)}"
    return "timeout", None, f"not done after {e.seconds:.1f} s, still at work; {where(e)}"


def innermost(log: str) -> list[str]:
    """The deepest three frames of the main thread in a dump of Python's fault handler."""
    heads = list(_THREAD.finditer(log))
    if not heads:
        return []
    main = next((head for head in heads if head["current"]), heads[-1])
    frames = _FRAME.finditer(log, main.end())
    return [f"{Path(f['file']).name}:{f['line']} {f['name']} ({f['file']})" for f in frames][:3]


def _last(e: Evidence, ranks: set[int]) -> int | None:
    """The rank that is furthest behind; of equals the one that has been silent longest."""
    if not e.progress or not ranks:
        return None

    def reached(rank: int) -> tuple[int, int, float, int]:
        one = e.progress.get(rank)
        if one is None:
            return (-1, 0, 0.0, rank)
        phase = str(one.get("phase"))
        at = PHASES.index(phase) if phase in PHASES else 0
        return (at, int(one.get("step") or 0), float(one.get("time") or 0.0), rank)

    return min(ranks, key=reached)


def where(e: Evidence) -> str:
    """Where each rank stood, ranks with the same state together."""
    return positions(e.progress, range(e.world_size))


def positions(progress: Mapping[int, Mapping[str, Any]], ranks: Sequence[int]) -> str:
    """As in ``ranks 0-2: measure 2/3, rank 3: build``."""
    states: dict[str, list[int]] = {}
    for rank in ranks:
        one = progress.get(rank)
        state = "not started" if one is None else str(one.get("phase"))
        if one is not None and one.get("of"):
            state += f" {one.get('step')}/{one.get('of')}"
        states.setdefault(state, []).append(rank)
    return ", ".join(f"{_ranks(members)}: {state}" for state, members in states.items())


def _ranks(members: list[int]) -> str:
    if len(members) == 1:
        return f"rank {members[0]}"
    if members == list(range(members[0], members[-1] + 1)):
        return f"ranks {members[0]}-{members[-1]}"
    return "ranks " + ",".join(map(str, members))
