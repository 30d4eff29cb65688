"""Which meshes a model admits, and how a published run spread its layers."""

from collections.abc import Callable, Sequence
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from parlab.lesson.style import INK, LARGE, MUTED, NORMAL, SHADES, SMALL, canvas

LETTERS = {
    "mesh_product": "W",
    "pipeline_layers": "L",
    "attention_heads": "H",
    "kv_heads": "K",
    "context_blocks": "S",
}
Validate = Callable[[dict[str, Any]], dict[str, Any]]


def draw_admission(
    validate: Validate,
    model: dict[str, int],
    pps: Sequence[int],
    tps: Sequence[int],
    cps: Sequence[int],
) -> int:
    """A map over pp and tp, one panel a cp: admitted cells dark, others with the broken rules.

    Args:
        validate: the learner's ``validate_mesh_layout``.
        model: the sizes that do not change (layers, heads, KV heads, sequence length).

    Returns:
        How many of the ``len(pps) · len(tps) · len(cps)`` meshes are admitted.
    """
    _, panels = canvas(3.9, len(cps), sharey=True)
    admitted = 0
    for panel, cp in zip(panels, cps, strict=True):
        for row, pp in enumerate(pps):
            for column, tp in enumerate(tps):
                config = {**model, "world_size": pp * tp * cp, "pp": pp, "tp": tp, "cp": cp}
                errors = validate(config)["errors"]
                _cell(panel, column, row, errors)
                admitted += not errors
        _frame(panel, pps, tps, f"cp = {cp}")
    panels[0].set_ylabel("pp", fontsize=NORMAL)
    plt.show()
    return admitted


def _cell(panel: Axes, column: int, row: int, errors: list[str]) -> None:
    shade = "#f4f4f4" if errors else SHADES[2]
    panel.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade, edgecolor="white", linewidth=2)
    )
    text = "".join(LETTERS[name] for name in sorted(errors, key=list(LETTERS).index)) or "ok"
    panel.text(
        column, row, text, ha="center", va="center", fontsize=SMALL,
        color=INK if errors else "white",
    )  # fmt: skip


def _frame(panel: Axes, pps: Sequence[int], tps: Sequence[int], title: str) -> None:
    panel.set_title(title, fontsize=LARGE)
    panel.set_xlabel("tp", fontsize=NORMAL)
    panel.set_xticks(range(len(tps)), [str(tp) for tp in tps])
    panel.set_yticks(range(len(pps)), [str(pp) for pp in pps])
    panel.set_xlim(-0.5, len(tps) - 0.5)
    panel.set_ylim(-0.5, len(pps) - 0.5)
    panel.tick_params(length=0)
    panel.spines[["left", "bottom"]].set_visible(False)


def draw_stages(layers: Sequence[int], extras: Sequence[int], label: str) -> None:
    """Slots a pipeline stage holds: decoder layers, and on top embedding or LM head.

    Args:
        layers: decoder layers of each stage.
        extras: further slots of each stage (embedding, LM head).
        label: what the further slots are.
    """
    _, (axes,) = canvas(2.9)
    stages = range(len(layers))
    axes.bar(stages, layers, color=SHADES[2], edgecolor=INK, label="decoder layers")
    axes.bar(
        stages, extras, bottom=layers, color=SHADES[0], edgecolor=INK, hatch="///", label=label
    )
    for stage, count in zip(stages, layers, strict=True):
        axes.text(
            stage, count / 2, str(count), ha="center", va="center", fontsize=SMALL, color="white"
        )
    slots = max(map(sum, zip(layers, extras, strict=True)))
    axes.axhline(slots, color=MUTED, linestyle=":", linewidth=1)
    axes.set_ylim(0, slots * 1.4)
    axes.set_xticks(list(stages))
    axes.set_xlabel("stage", fontsize=NORMAL)
    axes.set_ylabel("slots", fontsize=NORMAL)
    axes.legend(loc="upper right", ncols=2, fontsize=SMALL, frameon=False)
    plt.show()
