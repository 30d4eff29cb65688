"""TODO 3: runs to be recorded, with a baseline to compare with or without, and a judge's word."""

import random
from collections.abc import Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_05.rules import EACH
from parlab.lesson.record_cases import Record, a_baseline, a_run

# Reasons that a run may bring along; whatever else explains a gap is the answer's own sentence.
GIVEN = ("ran on CPU", "no counter on this device", "peak unknown")
GATES = ("throughput", "peak_memory_mb", "bubble_ratio", "communication_ratio")
MEASURED = (*GATES, "correctness", "mfu")
PLACES: dict[str, tuple[str | None, int | None]] = {
    "cpu_gloo": ("cpu", 1),
    "gpu_single_node": ("cuda", 1),
    "gpu_multi_node": ("cuda", 3),
    "analytic": (None, None),
}
PATHS = {
    "level": ("evidence_level",),
    "crowded": ("oversubscribed",),
    "efficiency": ("metrics.scaling_efficiency",),
    "comparable": ("metrics.scaling_efficiency",),
    "kept": (
        "name", "workload", "hardware", "mesh", "artifact", "failure",
        *(f"metrics.{name}" for name in MEASURED),
    ),
    "gates": tuple(f"decision.gates.{name}" for name in GATES),
    "unmeasured": ("decision.gate_failures", "decision.accepted"),
    "judge": ("decision.gate_failures", "decision.accepted"),
}  # fmt: skip
_CROWDED = ("cpu_gloo", "cpu_gloo", "cpu_gloo", "gpu_single_node", "gpu_multi_node", "analytic")


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    for rule, names in PATHS.items():
        paths = tuple(f"record.{name}" for name in names)
        for number in range(EACH):
            given = _given(rule, dice, number)
            asked = rule == "judge" or (rule == "unmeasured" and _unmeasured(number))
            look = {"paths": (*paths, "handed") if asked else paths}
            yield Case(rule, given, "paths", look, "judged")
    for number in range(EACH):
        given = _given("reasons", dice, number)
        yield Case("reasons", given, "explained", {"given": GIVEN}, "judged")


def _unmeasured(number: int) -> bool:
    """Which cases of that rule lack a number; the others must not be taken for such."""
    return number % 3 > 0


def _given(rule: str, dice: random.Random, number: int) -> tuple[Any, ...]:
    """A run, a baseline and what the judge says."""
    level = dice.choice(["cpu_gloo", "gpu_single_node"])
    change: dict[str, Any] = {}
    if rule == "level":
        level = sorted(PLACES)[number % len(PLACES)]
    elif rule == "crowded":
        level = _CROWDED[number % len(_CROWDED)]
    device, nodes = PLACES[level]
    if device == "cpu" and rule in ("level", "crowded"):
        nodes = 1 + number // len(PLACES) if rule == "level" else (1, 1, 2, 3)[number % 4]
    machine = {"device": device, "nodes": nodes, "cores": dice.choice([2, 4, 8])}
    if device is None:
        machine["cores"] = None
    if rule == "crowded" and device:
        change["world_size"] = _ranks_near(dice, machine, number)
    elif "world_size" not in change:
        change["world_size"] = dice.choice([2, 3, 4, 6])
    change = {**machine, **change, **_measured(dice), "fingerprint": _fingerprint(dice)}
    change |= _missing(rule, dice, number)
    run = a_run(**change)
    failures = dice.sample(["memory", "bubble", "communication"], number % 3)
    if run["failure"]:
        failures = ["runtime"]
    if rule == "unmeasured":
        failures = []
    if rule == "judge" and number % 4 == 3:  # whatever it says is taken down
        failures = ["communication"]
    return run, _baseline(rule, dice, number, run, level), failures


def _ranks_near(dice: random.Random, machine: dict[str, Any], number: int) -> int:
    """As many ranks as cores in all, one more or less, or more; GPUs have more than cores."""
    full = int(machine["cores"] * machine["nodes"])
    if machine["device"] == "cuda":
        return full + dice.randint(1, 5)
    return full + (0, 1, -1)[number % 3]


def _measured(dice: random.Random) -> dict[str, Any]:
    """What was measured; 0 is a number too."""
    median = float(dice.randrange(500, 9000))
    peak = dice.randrange(1000, 9000) / 10
    return {
        "throughput": {"median": median, "min": median - 100, "max": median + 250},
        "peak_memory_mb": {"max": peak, "ranks": [peak, peak - 5]},
        "bubble_ratio": dice.choice([0.0, dice.randrange(1, 60) / 100]),
        "communication_ratio": dice.choice([0.0, dice.randrange(1, 60) / 100]),
    }


def _missing(rule: str, dice: random.Random, number: int) -> dict[str, Any]:
    """What was not measured, and why, by what the rule is about."""
    failed = {"failure": dice.choice(["killed", "hang", "memory", "diverged"])}
    nothing: dict[str, Any] = dict.fromkeys(GATES)
    if rule in ("reasons", "kept"):
        reasons = {"metrics.mfu": dice.choice(GIVEN)} if number % 3 else {}
        if number % 4 == 1:  # one of those that are missing has its reason
            reasons["metrics.peak_memory_mb"] = GIVEN[2]
        few = dict.fromkeys(dice.sample(GATES, dice.randint(1, 3)))
        few |= {"peak_memory_mb": None} if number % 4 == 1 else {}
        return {"reasons": reasons, **({**failed, **nothing} if number % 2 else few)}
    if rule == "gates":
        some = dict.fromkeys(dice.sample(GATES, dice.randint(1, 3)))
        return ({**failed, **some}, {**failed, **nothing}, some, {})[number % 4]
    if rule == "unmeasured":
        some = dict.fromkeys(dice.sample(GATES, dice.randint(1, 2)))
        return some if _unmeasured(number) else {}
    if rule == "judge":
        return {**failed, **nothing} if number % 4 == 0 else {}
    return {}


def _fingerprint(dice: random.Random) -> str:
    return f"{dice.randrange(16**8):08x}"


def _baseline(
    rule: str, dice: random.Random, number: int, run: Record, level: str
) -> Record | None:
    """The run of one process on the same machine; none, or one that says nothing about this run."""
    same = {
        "evidence_level": level,
        "fingerprint": run["workload"]["fingerprint"],
        "median": float(dice.randrange(500, 4000)),
    }
    if rule == "comparable":
        others = [name for name in PLACES if name != level]
        spoilt = (
            {"evidence_level": dice.choice(others)}, {"fingerprint": _fingerprint(dice)},
            {"failure": "killed"}, None, {},
        )[number % 5]  # fmt: skip
        if spoilt is None:
            return None
        return a_baseline(**{**same, **spoilt})
    if rule in ("reasons", "efficiency"):
        return a_baseline(**same)
    return dice.choice([a_baseline(**same), None])


def keeps(rule: str, arguments: tuple[Any, ...], expected: Any) -> bool:
    run, baseline, failures = arguments
    if type(failures) is not list or not all(type(name) is str and name for name in failures):
        return False
    if not _sound_run(run) or not (baseline is None or _sound_baseline(baseline)):
        return False
    if rule == "efficiency":
        return expected["record"]["metrics"]["scaling_efficiency"] is not None
    if rule == "judge":
        return bool(expected["handed"])
    return True


def _sound_run(run: Record) -> bool:
    machine, work, metrics = run["hardware"], run["workload"], run["metrics"]
    device, nodes, cores = (machine[key] for key in ("device", "nodes", "cores"))
    if (device, nodes, cores) != (None, None, None):
        counts = [nodes, cores, work["world_size"]]
        if device not in ("cpu", "cuda") or not all(type(n) is int and n > 0 for n in counts):
            return False
    failure = run["failure"]
    return (
        {"name", "mesh", "artifact", "reasons"} <= set(run)
        and bool(run["name"] and work["fingerprint"])
        and {"memory_mb", "bubble_ratio", "communication_ratio"} == set(work["limits"])
        and all(_positive(limit) for limit in work["limits"].values())
        and set(metrics) == {*MEASURED, "scaling_efficiency"}
        and metrics["scaling_efficiency"] is None
        and all(metrics[key] is None or _positive(metrics[key][of]) for key, of in _NESTED)
        and all(metrics[key] is None or type(metrics[key]) is float for key in GATES[2:])
        and all(reason in GIVEN for reason in run["reasons"].values())
        and all(metrics[key.removeprefix("metrics.")] is None for key in run["reasons"])
        and (failure is None or len(failure["kind"]) > 3)
    )


_NESTED = (("throughput", "median"), ("peak_memory_mb", "max"))


def _positive(value: Any) -> bool:
    return type(value) is float and value > 0


def _sound_baseline(baseline: Record) -> bool:
    speed = baseline["metrics"]["throughput"]
    return (
        bool(baseline["workload"]["fingerprint"])
        and baseline["evidence_level"] in PLACES
        and {"name", "failure"} <= set(baseline)
        and (speed is None) is (baseline["failure"] is not None)
        and (speed is None or _positive(speed["median"]))
    )


def smaller(
    run: Record, baseline: Record | None, failures: list[str]
) -> Iterator[tuple[Record, Record | None, list[str]]]:
    """No baseline, plain numbers, nothing that the rules do not read."""
    yield run, None, failures
    yield run, baseline, []
    metrics = dict(run["metrics"])
    plain = {"throughput": {"median": 100.0}, "peak_memory_mb": {"max": 10.0}}
    plain |= {"bubble_ratio": 0.5, "communication_ratio": 0.5, "correctness": {}}  # type: ignore[dict-item]
    for key, value in plain.items():
        if metrics[key] is not None:
            metrics[key] = value
    small = {**run, "metrics": metrics, "mesh": {}, "artifact": {}, "name": "a"}
    yield small, baseline, failures
    work = {**run["workload"], "fingerprint": "a"}
    if baseline is None:
        yield {**small, "workload": work}, None, failures
        return
    equal = baseline["workload"]["fingerprint"] == run["workload"]["fingerprint"]
    others = {**baseline, "workload": {"fingerprint": "a" if equal else "b"}}
    if others["metrics"]["throughput"]:
        others["metrics"] = {"throughput": {"median": 100.0}}
    yield {**small, "workload": work}, others, failures
