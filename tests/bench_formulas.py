"""What each rank hands over in one step, written from the papers' formulas and from nothing else.

fp32: 4 bytes. b sequences of a microbatch, s tokens a sequence, h hidden, m microbatches.
"""

from __future__ import annotations

E = 4


def stage_owners(schedule: str, pp: int) -> list[int]:
    """Pipeline rank by stage; two chunks a rank where the schedule loops."""
    if pp == 1:
        return [0]
    return {
        "GPipe": list(range(pp)),
        "1F1B": list(range(pp)),
        "Interleaved1F1B": list(range(pp)) * 2,
        "InterleavedZeroBubble": list(range(pp)) * 2,
        "ZBVZeroBubble": list(range(pp)) + list(range(pp))[::-1],
    }[schedule]


def expected(case, config, plan, rank: int) -> dict[tuple, tuple[int, int]]:
    """(axis, direction, cause, operation) -> (calls, payload bytes) for one rank."""
    pp, cp, tp = case.pp, case.cp, case.tp
    place = rank // (cp * tp)
    owners = stage_owners(case.schedule, pp)
    stages = [i for i, owner in enumerate(owners) if owner == place]
    layers = config.num_layers // len(owners) * len(stages)
    b, s, m = plan.micro_batch, plan.sequence_length // cp, plan.global_batch // plan.micro_batch
    h, d, kv = config.hidden, config.head_dim, config.num_kv_heads // tp
    rows: dict[tuple, tuple[int, int]] = {}

    def add(key: tuple, calls: int, size: int) -> None:
        if calls:
            before = rows.get(key, (0, 0))
            rows[key] = (before[0] + calls, before[1] + calls * size)

    hidden, first, last = b * s * h * E, 0 in stages, len(owners) - 1 in stages
    if tp > 1:
        add(("tp", "forward", "layers", "all_reduce"), 2 * layers * m, hidden)
        add(("tp", "backward", "layers", "all_reduce"), 2 * layers * m, hidden)
        add(("tp", "forward", "embedding", "all_reduce"), m * first, hidden)
        add(("tp", "forward", "head_loss", "all_gather"), m * last, 2 * b * s * E)
        add(("tp", "backward", "head_loss", "all_reduce"), m * last, hidden)
        if config.qk_norm:
            add(("tp", "step", "norm_gradients", "all_reduce"), 1, 2 * layers * d * E)
    if cp > 1:
        block = 2 * b * s * kv * d * E
        if case.cp_method == "ring":
            add(("cp", "forward", "ring", "send"), layers * m * (cp - 1), block)
            add(("cp", "backward", "ring", "send"), 2 * layers * m * (cp - 1), block)
        else:
            add(("cp", "forward", "kv_gather", "all_gather"), layers * m, block)
            add(("cp", "backward", "kv_gather", "reduce_scatter"), layers * m, cp * block)
        weights = local_parameters(config, tp, layers, first, last)
        add(("cp", "step", "cp_gradients", "all_reduce"), 1, weights * E)
    if pp > 1:
        for i in stages:
            onward = i + 1 < len(owners) and owners[i + 1] != place
            back = i > 0 and owners[i - 1] != place
            add(("pp", "forward", "boundary", "send"), m * onward, hidden)
            add(("pp", "backward", "boundary", "send"), m * back, hidden)
        if config.tied_embeddings and owners[0] != owners[-1] and (first or last):
            size = config.vocabulary // tp * h * E
            add(("pp", "step", "tied", "all_reduce"), 1, size)
    return rows


def local_parameters(config, tp: int, layers: int, first: bool, last: bool) -> int:
    """Parameters of one rank: q, o, k, v, gate, up, down cut by tp, norms whole."""
    h, d = config.hidden, config.head_dim
    matrices = 2 * h * d * (config.num_heads + config.num_kv_heads) + 3 * h * config.ffn
    norms = 2 * h + (2 * d if config.qk_norm else 0)
    ends = config.vocabulary * h // tp
    total = layers * (matrices // tp + norms) + first * ends + last * h
    return total + (last * ends if not (config.tied_embeddings and first) else 0)
