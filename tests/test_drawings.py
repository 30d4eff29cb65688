"""The lesson's drawings show what they say: who is grouped, what is admitted, who wins."""

from collections.abc import Iterator
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.colors import same_color
from matplotlib.markers import MarkerStyle

from parlab.lesson.draw_candidates import draw_gates
from parlab.lesson.draw_layouts import draw_admission
from parlab.lesson.draw_mesh import draw_mesh
from parlab.lesson.style import ACCENT

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def figures_stay_open(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is drawn can be looked at, and goes after the test."""
    monkeypatch.setattr(plt, "show", lambda: None)
    yield
    plt.close("all")


def texts(panel: Axes) -> dict[tuple[float, float], str]:
    """The panel's texts by their place."""
    return {text.get_position(): text.get_text() for text in panel.texts}


@pytest.mark.parametrize(("pp", "cp", "tp"), [(3, 2, 4), (2, 3, 5)])
def test_draw_mesh_joins_the_ranks_of_each_group(pp: int, cp: int, tp: int) -> None:
    chosen = 11
    draw_mesh(pp=pp, cp=cp, tp=tp, highlight=chosen)
    mesh = torch.arange(pp * cp * tp).view(pp, cp, tp)
    panels = plt.gcf().axes
    assert len(panels) == 3
    for dim, (panel, name) in enumerate(zip(panels, ("pp", "cp", "tp"), strict=True)):
        expected = mesh.movedim(dim, -1).reshape(-1, mesh.shape[dim]).tolist()
        place = texts(panel)
        drawn = []
        for line in panel.lines:
            points = zip(*(values.tolist() for values in line.get_data()), strict=True)
            drawn.append([int(place[point]) for point in points])
            assert same_color(line.get_color(), ACCENT) == (chosen in drawn[-1])
        assert sorted(drawn) == sorted(expected)
        assert panel.get_title() == f"{name}: {len(expected)} groups of {mesh.shape[dim]}"


def test_draw_admission_writes_each_mesh_in_its_cell() -> None:
    # By cp; rows are pp = 2, 4 and columns tp = 2, 4, 3.
    table = {
        1: [["ok", "K", "HK"], ["L", "LK", "LHK"]],
        2: [["S", "KS", "HKS"], ["LS", "LKS", "LHKS"]],
    }
    broken = {
        "L": "pipeline_layers",
        "H": "attention_heads",
        "K": "kv_heads",
        "S": "context_blocks",
    }
    asked: list[dict[str, Any]] = []

    def validate(config: dict[str, Any]) -> dict[str, Any]:
        asked.append(config)
        row, column = [2, 4].index(config["pp"]), [2, 4, 3].index(config["tp"])
        letters = table[config["cp"]][row][column]
        # Backwards: the drawing puts the letters in order.
        return {"errors": [broken[letter] for letter in letters[::-1] if letter in broken]}

    assert draw_admission(validate, {"num_layers": 6}, pps=[2, 4], tps=[2, 4, 3], cps=[1, 2]) == 1
    assert all(
        c["world_size"] == c["pp"] * c["tp"] * c["cp"] and c["num_layers"] == 6 for c in asked
    )
    rows_of = [label.get_text() for label in plt.gcf().axes[0].get_yticklabels()]
    assert rows_of == ["2", "4"]
    for panel, (cp, rows) in zip(plt.gcf().axes, table.items(), strict=True):
        assert panel.get_title() == f"cp = {cp}"
        cells = {
            (column, row): text for row, line in enumerate(rows) for column, text in enumerate(line)
        }
        assert texts(panel) == cells
        assert [label.get_text() for label in panel.get_xticklabels()] == ["2", "4", "3"]
        shades = {
            (patch.get_x() + 0.5, patch.get_y() + 0.5): patch.get_facecolor()
            for patch in panel.patches
        }
        admitted = {place for place, text in cells.items() if text == "ok"}
        dark = {place for place, shade in shades.items() if sum(shade[:3]) < 2}
        assert dark == admitted


def test_draw_gates_gives_the_winner_the_star_and_the_gate_its_place() -> None:
    def candidate(name: str, memory: int, throughput: int, *failures: str) -> dict[str, Any]:
        return {
            "name": name,
            "peak_memory_mb": memory,
            "throughput": throughput,
            "eligible": not failures,
            "gate_failures": list(failures),
        }

    candidates = [
        candidate("fast", 90_000, 300, "memory"),
        candidate("slow", 40_000, 100),
        candidate("best", 60_000, 200),
        candidate("idle", 20_000, 50, "bubble", "communication"),
    ]
    limits = {"memory_mb": 72_000, "bubble_ratio": 0.2, "communication_ratio": 0.3}
    draw_gates(candidates, limits, "best")
    (panel,) = plt.gcf().axes
    markers = {
        tuple(points.get_offsets()[0].tolist()): marker(points)
        for points in panel.collections
        if isinstance(points, PathCollection) and len(points.get_offsets())
    }
    assert markers == {
        (90.0, 300.0): "X",
        (40.0, 100.0): "o",
        (60.0, 200.0): "*",
        (20.0, 50.0): "X",
    }
    (gate,) = panel.lines
    assert list(gate.get_xdata()) == [72.0, 72.0]
    (beyond,) = panel.patches
    assert beyond.get_extents().x0 == pytest.approx(panel.transData.transform((72.0, 0))[0])
    assert beyond.get_extents().x1 == pytest.approx(panel.bbox.x1)
    named = {text.xy: text.get_text() for text in panel.texts}  # type: ignore[attr-defined]
    assert named == {
        (90.0, 300): "fast M",
        (40.0, 100): "slow",
        (60.0, 200): "best",
        (20.0, 50): "idle B C",
    }


def marker(points: PathCollection) -> str:
    """Which of the drawing's markers the points have."""
    drawn = points.get_paths()[0].vertices
    for name in "*oX":
        style = MarkerStyle(name)
        wanted = style.get_path().transformed(style.get_transform()).vertices
        if drawn.shape == wanted.shape and np.allclose(drawn, wanted):
            return name
    raise AssertionError("another marker")
