"""Which layers a stage holds, and which pipeline rank holds a stage. Plain numbers."""

from __future__ import annotations

from collections.abc import Sequence

from parlab.bench.model import ModelConfig, Part
from parlab.bench.rules import lesson_rule

LESSON, SPLIT = "01_pipeline_parallel", "split_layers"


def owners(schedule: str, pp: int, chunks: int) -> list[int]:
    """The pipeline rank of every stage, in stage order.

    Interleaved schedules loop (stage i on rank i mod pp, arXiv 2104.04473 section 2.2.2); ZBV goes
    down and up again (arXiv 2401.10241 appendix), two stages a rank whatever `chunks` says.
    """
    if pp == 1:
        return [0]
    if schedule == "ZBVZeroBubble":
        return [*range(pp), *reversed(range(pp))]
    if schedule in ("Interleaved1F1B", "InterleavedZeroBubble"):
        return [stage % pp for stage in range(pp * chunks)]
    return list(range(pp))


def parts(config: ModelConfig, stages: int, split: str, sequence: int) -> list[Part]:
    """The part of the model in every stage, by number of layers ("even") or by cost ("cost").

    By cost, the rule is that of lesson 01.
    """
    if not 1 <= stages <= config.num_layers:
        raise ValueError(f"{stages} stages for {config.num_layers} layers: each needs one layer")
    counts: Sequence[int] = _even(config.num_layers, stages)
    if split == "cost":
        layer, head = costs(config, sequence)
        items = [layer] * config.num_layers
        items[-1] += head  # the head stays with the last layer: every stage holds a layer
        counts = lesson_rule(LESSON, SPLIT)(items, stages)
    result, first = [], 0
    for index, count in enumerate(counts):
        result.append(Part(first, first + count, index == 0, index == stages - 1))
        first += count
    return result


def costs(config: ModelConfig, sequence: int) -> tuple[int, int]:
    """FLOPs a token of one layer and of the head, forward, with causal attention at s/2 keys.

    Both triple in a backward pass, so their ratio is that of a step. The embedding is a look-up.
    """
    h, d = config.hidden, config.head_dim
    projections = 2 * h * d * (2 * config.num_heads + 2 * config.num_kv_heads)
    attention = 2 * config.num_heads * d * sequence
    return projections + attention + 6 * h * config.ffn, 2 * h * config.vocabulary


def _even(layers: int, stages: int) -> list[int]:
    return [layers // stages + (index < layers % stages) for index in range(stages)]
