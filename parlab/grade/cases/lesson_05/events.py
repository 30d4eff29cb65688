"""TODO 1: events of one rank, of the kinds that a rule is about."""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_05.rules import EACH
from parlab.lesson.trace_cases import Event, collective, compute, p2p, traces

Step = tuple[float, float]
KINDS = {"compute": {"start", "end"}, "collective": {"blocked"}, "ring": {"blocked"}}
KINDS["p2p"] = {"start", "peer_start", "blocked"}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases, events in any order."""
    makers = {
        "chunks": _chunks, "gaps": _gaps, "exposed": _exposed, "transfer": _transfer,
        "waiting": _waiting, "step": _beyond, "no_work": _no_work,
    }  # fmt: skip
    for rule, make in makers.items():
        for _ in range(EACH):
            at = dice.choice([0, 0, 20, -15])
            step = (at, at + dice.randint(20, 60))
            made = make(dice, *step)
            dice.shuffle(made)
            yield Case(rule, (made, step), "parts")
    for made, step, _ in traces(dice.randrange(10**9), 2 * EACH):
        yield Case("together", (made, step), "parts")


def _cut(dice: random.Random, start: int, end: int, count: int) -> list[int]:
    """So many moments, rising, from ``start`` to ``end``."""
    return sorted(dice.sample(range(start, end + 1), count))


def _full(start: int, end: int) -> Event:
    return compute(start, end)


def _chunks(dice: random.Random, start: int, end: int) -> list[Event]:
    """Chunks that nest, overlap, touch or have no length; together they fill the step."""
    a, b, c = _cut(dice, start + 2, end - 2, 3)
    found = [compute(start, b), compute(b, end, "B"), compute(c, c)]
    found.append(compute(a, c, "W"))
    if dice.random() < 0.5:
        found.append(compute(start + 1, a))
    return found


def _gaps(dice: random.Random, start: int, end: int) -> list[Event]:
    """Work with nothing before, between and after."""
    count = dice.choice([2, 4, 6])
    cuts = _cut(dice, start, end, count)
    pairs = zip(cuts[::2], cuts[1::2], strict=True)
    found = [compute(a, b) for a, b in pairs]
    if count > 2 and dice.random() < 0.5:  # exposed communication is work too
        index = dice.choice([0, len(found) - 1])
        a, b = found[index]["start"], found[index]["end"]
        found[index] = collective(a, b, [a, b])
    return found


def _exposed(dice: random.Random, start: int, end: int) -> list[Event]:
    """Compute all over, and communication that blocks it now and then, or never."""
    found = [_full(start, end)]
    for kind in ("collective", "ring", dice.choice(["collective", "ring"])):
        count = 2 * dice.choice([0, 1, 2, 2, 3])
        cuts = _cut(dice, start, end, count + 2)
        blocked: list[list[float]] = [
            [a, b] for a, b in zip(cuts[1:-1:2], cuts[2:-1:2], strict=True)
        ]
        found.append({**collective(cuts[0], cuts[-1], *blocked), "kind": kind})
    return found


def _transfer(dice: random.Random, start: int, end: int) -> list[Event]:
    """Transfers between chunks of compute; the peer is early, late or neither."""
    a, b, c, d = _cut(dice, start + 1, end - 1, 4)
    found = [compute(start, a), compute(b, c), compute(d, end)]
    for post, done in ((a, b), (c, d)):
        peer = dice.choice([post - dice.randint(1, 30), post, dice.randint(post, done), done])
        found.append(p2p(post, done, peer, [post, done]))
    return found


def _waiting(dice: random.Random, start: int, end: int) -> list[Event]:
    """Waiting within a chunk, now and then while other communication is exposed."""
    a, b, c, d = _cut(dice, start + 1, end - 1, 4)
    found = [_full(start, end), p2p(a, d, d, [a, d])]
    if dice.random() < 0.7:
        found.append(collective(b, c, [b, c]))
    if dice.random() < 0.3:
        found.append(p2p(start, b, start - 1, [start, a]))
    return found


def _beyond(dice: random.Random, start: int, end: int) -> list[Event]:
    """Events of the steps before and after, some of which reach into this one."""
    a, b = _cut(dice, start + 2, end - 2, 2)
    over, under = dice.randint(1, 9), dice.randint(1, 9)
    found = [compute(start - under, a), compute(start - 30, start - 20), compute(a, b)]
    found.append(collective(b, end + over, [b + 1, end + over]))
    found.append(collective(end + 10, end + 20, [end + 12, end + 20]))
    if dice.random() < 0.5:
        found.append(p2p(end + 20, end + 30, end + 25, [end + 20, end + 30]))
    return found


def _no_work(dice: random.Random, start: int, end: int) -> list[Event]:
    """Nothing but waiting, or not even that; or a single piece of work."""
    found: list[Event] = []
    if dice.random() < 0.6:
        a, b = _cut(dice, start, end, 2)
        found.append(p2p(a, b, b, [a, b]))
    if dice.random() < 0.3:
        found.append(collective(start, end))
    if dice.random() < 0.3:
        found.append(compute(start - 9, start - 2))
    return found


def keeps(rule: str, events: list[Event], step: Step) -> bool:
    if type(step) is not tuple or len(step) != 2 or not all(map(_number, step)):
        return False
    if step[1] - step[0] < 1 or not all(map(_sound, events)):
        return False
    kinds = {event["kind"] for event in events}
    if rule in ("chunks", "gaps", "exposed"):
        allowed = {
            "chunks": {"compute"}, "gaps": {"compute", "collective"},
            "exposed": {"compute", "collective", "ring"},
        }[rule]  # fmt: skip
        return kinds <= allowed and _within(events, step)
    if rule in ("transfer", "waiting"):
        return "p2p" in kinds and _within(events, step) and (rule == "waiting" or _apart(events))
    if rule == "no_work":
        return not any(_reaches(event, step) for event in events)
    return True


def _number(value: Any) -> bool:
    return type(value) in (int, float)


def _sound(event: Event) -> bool:
    """Whether it is an event that a rank may report."""
    if not KINDS[event["kind"]] | {"kind", "start", "end"} <= set(event):
        return False
    times = [event["start"], event["end"], event.get("peer_start", 0)]
    if not all(map(_number, times)) or times[0] > times[1]:
        return False
    if event["kind"] == "p2p" and event["peer_start"] > event["end"] and event["blocked"]:
        return False
    at = event["start"]
    for span in event.get("blocked", []):
        a, b = span
        if type(span) is not list or not _number(a) or not _number(b) or not at <= a <= b:
            return False
        at = b
    return bool(at <= event["end"])


def _within(events: list[Event], step: Step) -> bool:
    return all(step[0] <= event["start"] and event["end"] <= step[1] for event in events)


def _apart(events: list[Event]) -> bool:
    """Whether compute and transfers take turns."""
    spans = sorted((event["start"], event["end"]) for event in events)
    return all(one[1] <= two[0] for one, two in zip(spans, spans[1:], strict=False))


def _reaches(event: Event, step: Step) -> bool:
    """Whether it is work in the step."""
    if event["kind"] == "p2p":
        begin = max(event["start"], event["peer_start"])
        spans = [(max(a, begin), b) for a, b in event["blocked"]]
    else:
        spans = event.get("blocked", [(event["start"], event["end"])])
    return any(min(b, step[1]) > max(a, step[0]) for a, b in spans)
