"""What lesson 04's functions must answer: the form alone, no rule of theirs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from parlab.bench.decide import CHOICE, GATES, LAYOUT

Answer = dict[str, Any]
FORMS = {
    LAYOUT: "a dict with errors, a list of names, and valid, True where that is empty, else False",
    GATES: "a dict with gate_failures, a list of names, and eligible, True where that is empty, "
    "else False",
    CHOICE: "a dict with decision 'accept' and as candidate the name of an eligible one that it "
    "was given, or with decision 'reject' and candidate None",
}
_LIMITS = {"memory_mb": 1000.0, "bubble_ratio": 0.5, "communication_ratio": 0.5}
_RAN = {
    "name": "G1_pp", "peak_memory_mb": 352.5, "bubble_ratio": 0.25, "communication_ratio": 0.125,
    "throughput": 6512.5, "failure": None,
}  # fmt: skip
_FAILED = {
    "name": "G0_tp", "peak_memory_mb": 0, "bubble_ratio": 0, "communication_ratio": 0,
    "throughput": 0,
    "failure": {"kind": "killed", "rank": 2, "message": "rank 2 was ended", "log_tail": ["x"]},
}  # fmt: skip
_CONFIG = {
    "world_size": 8, "pp": 2, "tp": 2, "cp": 2, "num_layers": 8, "num_heads": 8,
    "num_kv_heads": 4, "sequence_length": 128,
}  # fmt: skip


class BadAnswer(Exception):
    """A learner's function gave no answer that can be used; one line says which, to what."""


def taken(name: str, given: Sequence[Any], got: object) -> Answer | None:
    """What the benchmark takes of an answer, as plain data; None where the form is wrong.

    Args:
        name: the function's.
        given: its arguments.
    """
    return _TAKE[name](given, got) if type(got) is dict else None


def rehearse(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Asks each function as a run will, so that what cannot answer is found before one starts.

    Raises:
        BadAnswer: a function cannot answer.
    """
    functions[LAYOUT](_CONFIG)
    judged = [functions[GATES](candidate, _LIMITS) for candidate in (_RAN, _FAILED)]
    functions[CHOICE](judged)
    functions[CHOICE]([])


def _layout(_given: Sequence[Any], got: Answer) -> Answer | None:
    errors = got.get("errors")
    if not _names(errors) or got.get("valid") is not (not errors):
        return None
    return {"valid": not errors, "errors": errors}


def _gates(given: Sequence[Any], got: Answer) -> Answer | None:
    failures = got.get("gate_failures")
    if not _names(failures) or got.get("eligible") is not (not failures):
        return None
    return {**given[0], "eligible": not failures, "gate_failures": failures}


def _choice(given: Sequence[Any], got: Answer) -> Answer | None:
    decision, candidate = got.get("decision"), got.get("candidate", "")
    eligible = [item["name"] for item in given[0] if item["eligible"]]
    accepts = decision == "accept" and candidate in eligible
    rejects = decision == "reject" and candidate is None
    return {"decision": decision, "candidate": candidate} if accepts or rejects else None


def _names(value: object) -> bool:
    return type(value) is list and all(type(item) is str for item in value)


_TAKE: dict[str, Callable[[Sequence[Any], Answer], Answer | None]] = {
    LAYOUT: _layout, GATES: _gates, CHOICE: _choice
}  # fmt: skip
