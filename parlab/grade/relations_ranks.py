"""Relations for functions on ranks and for functions with gradients: values within rounding.

Of a rank's facts (`wire.Wire.run`) the values, the gradients, the operations and what was read
have come through the grader's own hands; the largest tensor, the number of scores, the blocks held
and the heads copied are what the student's process says, so rules about them weigh little and
count only beside right values.
"""

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor

from parlab.lesson.compare import safe_repr, same

Options = Mapping[str, Any]
Facts = Mapping[str, Any]

# Relative and absolute: rounding in another order, not another formula.
EXACT, SINGLE = 1e-9, 1e-4


def near(got: object, expected: object) -> bool:
    """Of the same shape and dtype, every value within rounding; None only where None is right."""
    if not isinstance(expected, Tensor) or not isinstance(got, Tensor):
        return got is None and expected is None
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    bound = EXACT if str(expected.dtype) == "torch.float64" else SINGLE
    one, two = got.detach(), expected.detach()
    close = two.isfinite() & ((one - two).abs() <= bound * (1 + two.abs()))
    return bool(((one == two) | close).all())


def _out(got: Facts, expected: Facts, name: str) -> bool:
    return near(got.get("out"), expected["out"])


def _returned(got: Facts, expected: Facts, name: str) -> bool:
    return same(got.get("returned"), expected["returned"])


def _operations(got: Facts, expected: Facts, name: str) -> bool:
    """The same collectives on the same shapes, in the same order."""
    return same(got.get(name), expected[name])


def _shifts(got: Facts, expected: Facts, name: str) -> bool:
    """Shifts alone, of as many bytes in all, however many tensors travel in one."""
    mine, right = got.get("forward") or [], expected["forward"]
    only = all(operation == "shift" for operation, _, _ in mine)
    return only and sum(one[2] for one in mine) == sum(one[2] for one in right)


def _load(got: Facts, expected: Facts, name: str) -> bool:
    """No operation carries more bytes than the right ones' largest."""
    most = max((one[2] for one in expected["forward"]), default=0)
    return all(one[2] <= most for one in got.get("forward") or [])


def _read(got: Facts, expected: Facts, name: str) -> bool:
    return same((got.get("read") or {}).get(name), expected["read"][name])


def _grad(got: Facts, expected: Facts, name: str) -> bool:
    found = (got.get("grad") or {}).get(name)
    return isinstance(found, Tensor) and near(found, expected["grad"][name])


def _largest(got: Facts, expected: Facts, name: str) -> bool:
    peak = got.get("peak") or [expected["limit"] + 1]
    return bool(0 < peak[0] <= expected["limit"])


def _scores(got: Facts, expected: Facts, name: str) -> bool:
    return bool(0 <= (got.get("scores") or 0) <= expected["scores"])


def _held(got: Facts, expected: Facts, name: str) -> bool:
    """One block in use and one on its way."""
    return bool(0 <= got.get("held", 0) <= 2)


def _copied(got: Facts, expected: Facts, name: str) -> bool:
    return not got.get("copied")


# What a part of a rank's facts must agree in; "read.w" and "grad.w" say of which.
PARTS: Mapping[str, Callable[[Facts, Facts, str], bool]] = {
    "out": _out,
    "returned": _returned,
    "forward": _operations,
    "backward": _operations,
    "shifts": _shifts,
    "load": _load,
    "read": _read,
    "grad": _grad,
    "largest": _largest,
    "scores": _scores,
    "held": _held,
    "copied": _copied,
}


def first_difference(got: Any, expected: Any, options: Options) -> tuple[int, str] | None:
    """The first part of ``options["parts"]``, and the first rank, in which they do not agree."""
    for part in options["parts"]:
        kind, _, name = part.partition(".")
        for rank, (one, two) in enumerate(zip(got, expected, strict=True)):
            if not PARTS[kind](one, two, name or kind):
                return rank, part
    return None


def on_ranks(got: object, expected: object, options: Options) -> bool:
    """On every rank the parts ``parts`` agree with the solution's."""
    if type(got) is not list or type(expected) is not list or len(got) != len(expected):
        return False
    return first_difference(got, expected, options) is None


def worded(facts: Facts, part: str) -> str:
    """A part of a rank's facts for people."""
    kind, _, name = part.partition(".")
    if kind in ("read", "grad"):
        of = facts.get(kind) or {}
        shown = of.get(name)
        text = shown if isinstance(shown, str) else safe_repr(shown)
        why = facts.get("stuck") if kind == "grad" and not isinstance(shown, Tensor) else ""
        return f"{name} {text}" if kind == "read" else f"{name}.grad {text} {why or ''}".rstrip()
    if kind in ("forward", "backward", "shifts", "load"):
        direction = "backward" if kind == "backward" else "forward"
        done = facts.get(direction) or []
        listed = ", ".join(f"{what} {shape} {size} B" for what, shape, size in done)
        why = facts.get("stuck") if kind == "backward" else ""
        return f"{direction}: {listed or '–'} {why or ''}".rstrip()
    if kind == "largest":
        return f"{safe_repr(facts.get('peak'))} {facts.get('stuck') or ''}".rstrip()
    if kind == "returned":
        return safe_repr(facts.get("returned"))
    return f"{kind} {safe_repr(facts.get(kind))}"


def merged(got: object, expected: object, options: Options) -> bool:
    """Results of ``backward``: ``look`` is ``out`` or ``gradients``.

    Where a query sees nothing on either side (its lse is -inf), a gradient has nothing to say and
    right answers differ: there it only has to be finite.
    """
    if type(got) is not dict or type(expected) is not dict:
        return False
    if options["look"] == "out":
        return pair(got["out"], expected["out"], options)
    mine, right = got["gradients"], expected["gradients"]
    if type(mine) is not list or len(mine) != len(right):
        return False
    blind = expected["out"][1] == float("-inf")
    for one, two in zip(mine, right, strict=True):
        if not isinstance(one, Tensor) or one.shape != two.shape or not one.isfinite().all():
            return False
        hidden = blind if one.dim() == blind.dim() else blind[..., None]
        if not near(one.masked_fill(hidden, 0.0), two.masked_fill(hidden, 0.0)):
            return False
    return True


def pair(got: object, expected: object, options: Options) -> bool:
    """Two tuples of tensors, within rounding."""
    if type(got) is not tuple or not isinstance(expected, tuple) or len(got) != len(expected):
        return False
    return all(map(near, got, expected))


def inverts(got: object, expected: object, options: Options) -> bool:
    """Of a split: ``inverse`` undoes the order of the tokens, as far as each rank has the right.

    Which order a rank's tokens stand in belongs to another rule.
    """
    if not same_tokens(got, expected, options) or not isinstance(got, dict):
        return False
    order = [token for mine in got["positions"] for token in mine]
    inverse = got.get("inverse")
    if type(inverse) is not list or any(type(place) is not int for place in inverse):
        return False
    places = {token: place for place, token in enumerate(order)}
    return inverse == [places[token] for token in range(len(order))]


def same_tokens(got: object, expected: object, options: Options) -> bool:
    """Of a split: each rank has the right tokens, in whatever order."""
    if type(got) is not dict or not isinstance(expected, dict):
        return False
    held, right = got.get("positions"), expected["positions"]
    if type(held) is not list or len(held) != len(right):
        return False
    plain = all(type(mine) is list and all(type(t) is int for t in mine) for mine in held)
    return plain and [sorted(mine) for mine in held] == [sorted(mine) for mine in right]


RELATIONS: Mapping[str, Callable[[object, object, Options], bool]] = {
    "on_ranks": on_ranks,
    "merged": merged,
    "pair": pair,
    "inverts": inverts,
    "same_tokens": same_tokens,
}
