"""TODO 1: layouts that break exactly the rules chosen."""

import itertools
import random
from collections.abc import Iterable, Iterator
from typing import Any

from parlab.grade.cases import Case
from parlab.grade.cases.lesson_04.rules import EACH

LAYOUT = {
    "mesh_product": ("world_size", ""),
    "pipeline_layers": ("num_layers", "pp"),
    "attention_heads": ("num_heads", "tp"),
    "kv_heads": ("num_kv_heads", "tp"),
    "context_blocks": ("sequence_length", "cp"),
}
REQUIRED = ("world_size", "pp", "tp", "cp", "num_layers", "num_heads", "sequence_length")


_PAIR = {"compare": "member", "options": {"entry": "errors", "names": ("mesh_product",)}}


def cases(dice: random.Random) -> Iterator[Case]:
    """Every rule's cases."""
    options = {"any_order": ("errors",)}
    for rule in LAYOUT:
        for number in range(EACH):
            config = _layout(dice, {rule} if number % 2 else set(), few=number % 4 == 1)
            if number == 2:  # exactly one each: no multiple of twice the axis
                config = _one_each(dice)
            if number == 0:  # one rank is a mesh too
                config |= dict.fromkeys(("world_size", "pp", "tp", "cp"), 1)
            yield Case(rule, (config,), "member", {"entry": "errors", "names": (rule,)})
    for number in range(3 * EACH):
        config = _layout(dice, set(dice.sample(sorted(LAYOUT), number % 6)))
        if number % 4 == 1:
            config["tags"] = [["nested", number]]
        yield Case("several", (config,), "any_order", options)
    for number in range(EACH):
        broken = ("mesh_product", "context_blocks", "")[number % 3]
        names = ("kv_heads", broken or "mesh_product")
        config = _layout(dice, {broken} - {""})
        if number % 2:
            config["num_kv_heads"] = None
        else:
            del config["num_kv_heads"]
        yield Case("without_kv_heads", (config,), "member", {"entry": "errors", "names": names})

    for number in range(4):
        pair = [_layout(dice, {"mesh_product"}), _layout(dice, set())]
        given = tuple((config,) for config in (pair if number % 2 else pair[::-1]))
        yield Case("fresh", given, "each", _PAIR, call="kept")


def _layout(dice: random.Random, broken: Iterable[str], few: bool = False) -> dict[str, Any]:
    """A config that breaks exactly these rules; axes may be 1 or equal, keys come in any order.

    ``few``: what cannot be shared out is a single one.
    """
    broken = set(broken)
    needs_parts = {LAYOUT[rule][1] for rule in broken}
    parts = [3, 16] if few else [2, 3, 4, 5, 6, 7, 16]
    axes = {
        axis: dice.choice(parts if axis in needs_parts else [1, 2, 3, 4, 5, 8])
        for axis in ("pp", "tp", "cp")
    }
    product = axes["pp"] * axes["tp"] * axes["cp"]
    config: dict[str, Any] = {"world_size": product, **axes}
    if "mesh_product" in broken:
        near = {product - 1, product + 1, product * 2, sum(axes.values()), max(axes.values())}
        near |= {product // 2, product * 3}
        config["world_size"] = dice.choice(sorted(near - {product, 0}))
    for rule, (size, axis) in LAYOUT.items():
        if axis:
            rest = dice.randint(1, axes[axis] - 1) if rule in broken else 0
            config[size] = axes[axis] * dice.randint(1, 60) + rest
            if rule in broken and few:
                config[size] = 1
    return dict(dice.sample(sorted(config.items()), len(config)))


def _one_each(dice: random.Random) -> dict[str, Any]:
    """A sound config whose sizes are those of their axes."""
    axes = {axis: dice.choice([2, 3, 5]) for axis in ("pp", "tp", "cp")}
    sizes = {size: axes[axis] for size, axis in LAYOUT.values() if axis}
    return {"world_size": axes["pp"] * axes["tp"] * axes["cp"], **axes, **sizes}


def keeps(rule: str, arguments: tuple[Any, ...], expected: Any) -> bool:
    if rule == "fresh":
        rules = ("mesh_product",) * len(arguments)
        return len(arguments) > 1 and all(map(keeps, rules, arguments, expected))
    (config,) = arguments
    kv_heads = config.get("num_kv_heads")
    sizes = [config[key] for key in REQUIRED] + ([] if kv_heads is None else [kv_heads])
    if not all(type(size) is int and size > 0 for size in sizes):
        return False
    broken = expected["errors"]
    if rule == "without_kv_heads":
        return kv_heads is None and broken in ([], ["mesh_product"], ["context_blocks"])
    if rule == "several":
        return True
    return kv_heads is not None and broken in ([], [rule])


def smaller(config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Axes of 1 or 2, and what hangs on them made smaller along, remainders and all."""
    product = config["pp"] * config["tp"] * config["cp"]
    choices = [sorted({1, 2, config[axis]}) for axis in ("pp", "tp", "cp")]
    for pp, tp, cp in itertools.product(*choices):
        axes = {"pp": pp, "tp": tp, "cp": cp}
        smaller = {**config, **axes}
        for size, axis in LAYOUT.values():
            if axis and smaller.get(size) is not None:
                parts, rest = divmod(config[size], config[axis])
                smaller[size] = axes[axis] * min(parts, 1) + min(rest, 1)
        new = pp * tp * cp
        gap = config["world_size"] - product
        for world in {new + gap, new + 1, new - 1, 2 * new} if gap else {new}:
            first = {key: smaller[key] for key in REQUIRED}
            yield {**first, **smaller, "world_size": world}
