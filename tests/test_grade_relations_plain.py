"""Relations that leave some freedom: what counts as equal, and what never does."""

import pytest

from parlab.grade.relations import RELATIONS

ORDER = [("F", 0, 0), ("B", 0, 0), ("F", 0, 1), ("B", 0, 1)]
RECORD = {"reasons": {"metrics.mfu": "ran on CPU", "metrics.x": "failed: hang"}}
RECORD = {"record": {**RECORD, "failure": {"kind": "hang"}}}
SPANS = {"spans": [[(0, 1.0)]], "bubble": 0.5}
HUGE = 10**400


def reasons(**change: object) -> dict[str, object]:
    own = {"metrics.mfu": "ran on CPU", "metrics.x": "it came to a hang"}
    return {"record": {"reasons": own | {f"metrics.{k}": v for k, v in change.items()}}}


@pytest.mark.parametrize(
    ("relation", "got", "expected", "options", "equal"),
    [
        ("measured", {"spans": [[[0.0, 1]]]}, SPANS, {"keys": ("spans",)}, True),
        ("measured", {"spans": ([[0.0, 1]],)}, SPANS, {"keys": ("spans",)}, False),
        ("measured", {"spans": [[[0.0]]]}, SPANS, {"keys": ("spans",)}, False),
        ("measured", {"spans": []}, SPANS, {"keys": ("bubble",)}, False),
        ("measured", {"bubble": 0.5 + 1e-12}, SPANS, {"keys": ("bubble",)}, True),
        ("measured", {"bubble": 0.501}, SPANS, {"keys": ("bubble",)}, False),
        ("measured", {"bubble": HUGE}, SPANS, {"keys": ("bubble",)}, False),
        ("measured", {"bubble": float("nan")}, SPANS, {"keys": ("bubble",)}, False),
        ("measured", {"bubble": True}, {"bubble": 1}, {"keys": ("bubble",)}, False),
        ("measured", [], SPANS, {"keys": ("bubble",)}, False),
        ("steps", ORDER[:3], ORDER, {"look": "first"}, True),
        ("steps", ORDER[::2], ORDER, {"look": "first"}, False),
        ("steps", sorted(ORDER, reverse=True), ORDER, {"look": "each"}, False),
        ("steps", [ORDER[i] for i in (0, 2, 1, 3)], ORDER, {"look": "each"}, True),
        ("steps", [ORDER[i] for i in (0, 2, 1, 3)], ORDER, {"look": "all"}, False),
        ("steps", [list(step) for step in ORDER], ORDER, {"look": "all"}, False),
        ("steps", [("F", False, 0)], [("F", 0, 0)], {"look": "all"}, False),
        ("steps", None, ORDER, {"look": "first"}, False),
        ("paths", {"record": {"a": 1}}, {"record": {"a": 1.0}}, {"paths": ("record.a",)}, True),
        ("paths", {"record": {}}, {"record": {"a": 1.0}}, {"paths": ("record.a",)}, False),
        ("paths", {"record": {"a": HUGE}}, {"record": {"a": 1.0}}, {"paths": ("record.a",)}, False),
        ("paths", None, {"record": {"a": 1.0}}, {"paths": ("record.a",)}, False),
        ("explained", reasons(), RECORD, {"given": ("ran on CPU",)}, True),
        ("explained", reasons(mfu="other"), RECORD, {"given": ("ran on CPU",)}, False),
        ("explained", reasons(x="why"), RECORD, {"given": ("ran on CPU",)}, False),
        ("explained", reasons(x=None), RECORD, {"given": ("ran on CPU",)}, False),
        ("explained", reasons(y="hang"), RECORD, {"given": ("ran on CPU",)}, False),
        ("explained", {"record": []}, RECORD, {"given": ("ran on CPU",)}, False),
    ],
)
def test_relations(
    relation: str, got: object, expected: object, options: dict[str, object], equal: bool
) -> None:
    assert RELATIONS[relation](got, expected, options) is equal


def test_parts_may_be_cut_anywhere_but_not_overlap() -> None:
    whole: dict[str, object] = {"compute": [(0, 2), (2, 4)], "exposed": [], "idle": [], "other": []}
    for compute, equal in (
        ([[2, 4], [0.0, 2.0]], True),
        ([(0, 4), (1, 2)], False),
        ([(0, 3)], False),
        ([(0, HUGE)], False),
        (4, False),
    ):
        assert RELATIONS["parts"]({**whole, "compute": compute}, whole, {}) is equal
