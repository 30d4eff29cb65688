"""Lays what a learner's function did on ranks beside what had to happen.

A finding is (aspect, expected, actual), both in words; it holds where the two are equal. Expected
values come from one process and torch's autograd, expected operations from what a rank lacks.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from parlab.lesson import tensor_cases as cases
from parlab.lesson.communicator import Record, operations_behind
from parlab.lesson.language import say
from parlab.lesson.rank_failure import RankFailed
from parlab.lesson.stored import block_words
from parlab.lesson.tensor_run import Ran

Finding = tuple[str, str, str]
EXACT, SINGLE = 1e-9, 1e-4  # relative and absolute, for float64 and float32


def _endings(ran: Ran, operations: str) -> Iterator[Finding]:
    """Why there are no outputs; what was read wrongly first."""
    if ran.ended and ran.ended[0] == "raised":
        for rank in ran.ranks:
            for name in ran.read_elsewhere(rank):
                yield (_aspect(name), *_blocks(ran, rank, name))
    aspect, happened = ran.ended or ("ranks", "")
    expected = "≤ 5 s" if aspect == "late" else f"rank 0–{ran.ranks[-1]}: {operations}"
    yield aspect, expected, happened or expected


def _aspect(name: str) -> str:
    return {"wq": "heads", "wk": "kv_heads", "wv": "kv_heads"}.get(name, "block")


def column_findings(ran: Ran) -> Iterator[Finding]:
    """Of a column-parallel product: nothing forward, the sum of x's gradient backward."""
    whole, tp = cases.linear(ran.case), ran.case["tp"]
    x, columns = whole.x, whole.y.shape[-1] // tp
    tokens = x.numel() // x.shape[-1]
    largest = max(x.numel(), tokens * columns, x.shape[-1] * columns)
    gradients = [part.contiguous() for part in whole.gradient.tensor_split(tp, -1)]
    yield from _linear_findings(
        ran, whole, whole.y.tensor_split(tp, -1), gradients,
        [x.grad] * tp, ("–", _words([("all_reduce", tuple(x.shape))])), largest,
    )  # fmt: skip


def row_findings(ran: Ran) -> Iterator[Finding]:
    """Of a row-parallel product: the sum of the partial products forward, nothing backward."""
    whole, tp = cases.linear(ran.case), ran.case["tp"]
    assert whole.x.grad is not None
    rows, tokens = whole.x.shape[-1] // tp, whole.x.numel() // whole.x.shape[-1]
    largest = max(tokens * rows, whole.y.numel(), rows * whole.y.shape[-1])
    yield from _linear_findings(
        ran, whole, [whole.y] * tp, [whole.gradient] * tp,
        whole.x.grad.tensor_split(tp, -1),
        (_words([("all_reduce", tuple(whole.y.shape))]), "–"), largest,
    )  # fmt: skip


def _linear_findings(
    ran: Ran,
    whole: cases.Linear,
    outputs: Sequence[Tensor],
    gradients: Sequence[Tensor],
    x_gradients: Sequence[Any],
    operations: tuple[str, str],
    largest: int,
) -> Iterator[Finding]:
    yield from _endings(ran, operations[0])
    cut = {name: dim for name, dim in ran.cuts.items() if dim is not None}
    for rank in ran.ranks:
        for name in cut:
            if name in ran.stored[rank]:
                yield ("block", *_blocks(ran, rank, name))
    yield from _shapes(ran, outputs)
    yield from _operations(ran, "forward", operations[0])
    for rank in ran.ranks:
        if whole.bias is not None and not _close(ran.outputs[rank], outputs[rank]):
            part = whole.bias.detach()
            part = part.tensor_split(len(ran.ranks))[rank] if "bias" in cut else part
            times = _times(ran.outputs[rank].detach() - outputs[rank], part)
            if times is not None:
                yield "bias", f"rank {rank}: 1 × bias", f"rank {rank}: {1 + times:g} × bias"
        yield ("y", *_output(ran, rank, outputs[rank], len(ran.ranks)))
    yield from _backward(ran, gradients, operations[1])
    for rank, x_gradient in enumerate(x_gradients):
        yield ("x.grad", *_values(f"rank {rank}: x.grad", _x(ran, rank).grad, x_gradient, 0))
        for name, stored in ran.stored[rank].items():
            expected = getattr(whole, name).grad * ran.own(rank, name)
            if not stored.reads:
                yield (f"{name}.grad", *_blocks(ran, rank, name))
            label = f"rank {rank}: {name}.grad"
            yield (f"{name}.grad", *_values(label, stored.gradient(), expected, 0))
    yield from _largest(ran, largest)


def block_findings(ran: Ran) -> Iterator[Finding]:
    """Of a whole block: two sums each way, the right heads, gradients and bytes."""
    case, tp = ran.case, ran.case["tp"]
    x, gradient = cases.block_input(case)
    weights = {name: w.requires_grad_() for name, w in cases.block_weights(case).items()}
    x.requires_grad_()
    y = cases.reference_block(x, weights, case["heads"], case["kv_heads"])
    y.backward(gradient)
    two = _words([("all_reduce", tuple(x.shape))] * 2)
    yield from _endings(ran, two)
    sent = []
    for rank, output in enumerate(ran.outputs):
        pair = isinstance(output, tuple) and len(output) == 2
        yield "pair", "(y, sent)", "(y, sent)" if pair else f"rank {rank}: {_kind(output)}"
        ran.outputs[rank] = output[0]
        sent.append(output[1])
    for rank in ran.ranks:
        for name in weights:
            yield (_aspect(name), *_blocks(ran, rank, name))
    yield from _shapes(ran, [y] * tp)
    yield from _operations(ran, "forward", two)
    for rank in ran.ranks:
        yield ("y", *_output(ran, rank, y.detach(), 0))
    yield from _backward(ran, [gradient] * tp, two)
    for rank in ran.ranks:
        for name, weight in weights.items():
            stored = ran.stored[rank][name]
            expected = weight.grad * ran.own(rank, name)
            aspect = "norm.grad" if ran.cuts[name] is None else "weight.grad"
            label = f"rank {rank}: {name}.grad"
            yield (aspect, *_values(label, stored.gradient(), expected, tp))
        yield ("x.grad", *_values(f"rank {rank}: x.grad", _x(ran, rank).grad, x.grad, tp))
    yield from _largest(ran, _block_limit(case))
    for rank in ran.ranks:
        counted = sum(record.sent for record in ran.done().log_of(rank))
        yield (
            "sent",
            f"rank {rank}: int {counted}",
            f"rank {rank}: {_kind(sent[rank])} {sent[rank]}",
        )


def _block_limit(case: cases.Case) -> int:
    """Numbers in the largest tensor that a rank may need, weights side by side included."""
    hidden, tokens, tp = int(case["hidden"]), int(case["batch"] * case["tokens"]), int(case["tp"])
    scores = tokens * int(case["heads"] * case["tokens"]) // tp
    qkv = int((case["heads"] + 2 * case["kv_heads"]) * case["head_dim"]) // tp
    ffn = 2 * int(case["ffn"]) // tp
    return max(tokens * hidden, (tokens + hidden) * max(qkv, ffn), scores)


def _x(ran: Ran, rank: int) -> Tensor:
    x: Tensor = ran.done().inputs[rank][0]
    return x


def _blocks(ran: Ran, rank: int, name: str) -> tuple[str, str]:
    stored = ran.stored[rank][name]
    words = [block_words(mask) for mask in (ran.own(rank, name), stored.covered())]
    expected, actual = (f"rank {rank}: {name}{word if word != '–' else ' –'}" for word in words)
    return expected, actual


def _shapes(ran: Ran, outputs: Sequence[Tensor]) -> Iterator[Finding]:
    for rank, (got, wanted) in enumerate(zip(ran.outputs, outputs, strict=True)):
        yield "shape", f"rank {rank}: {_kind(wanted)}", f"rank {rank}: {_kind(got)}"
    for rank, got in enumerate(ran.outputs):
        needs = f"rank {rank}: y.requires_grad = "
        yield "graph", f"{needs}True", f"{needs}{got.requires_grad}"


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}"
    return type(value).__name__


def _words(operations: Sequence[tuple[str, Any]]) -> str:
    return ", ".join(f"{operation} {shape}" for operation, shape in operations) or "–"


def _log_words(log: Sequence[Record]) -> str:
    return _words([(record.operation, record.shape) for record in log])


def _operations(ran: Ran, direction: str, expected: str) -> Iterator[Finding]:
    for rank in ran.ranks:
        actual = _log_words(ran.done().log_of(rank, direction))
        yield direction, f"rank {rank}: {expected}", f"rank {rank}: {actual}"


def _backward(ran: Ran, gradients: Sequence[Tensor], expected: str) -> Iterator[Finding]:
    failure = ""
    try:
        ran.done().backward(ran.outputs, gradients)
    except RankFailed as failed:
        failure = str(failed).split("\n")[0]
    yield "backward", expected, failure or expected
    yield from _operations(ran, "backward", expected)


def _largest(ran: Ran, limit: int) -> Iterator[Finding]:
    for rank, peak in enumerate(ran.done().peaks):
        allowed = f"rank {rank}: ≤ {limit}"
        found = f"rank {rank}: {peak.elements} {peak.shape} ({peak.operation})"
        yield "largest", allowed, allowed if peak.elements <= limit else found


def _tolerance(value: Tensor) -> float:
    return EXACT if value.dtype == torch.float64 else SINGLE


def _close(got: Any, expected: Tensor) -> bool:
    allowed = _tolerance(expected)
    return isinstance(got, Tensor) and torch.allclose(got.detach(), expected, allowed, allowed)


def _output(ran: Ran, rank: int, expected: Tensor, tp: int) -> tuple[str, str]:
    """As `_values` of the rank's y; names an operation whose result has not gone into it."""
    wanted, actual = _values(f"rank {rank}: y", ran.outputs[rank], expected, tp)
    if wanted != actual:
        done = Counter(record.operation for record in ran.done().log_of(rank, "forward"))
        unused = done - operations_behind(ran.outputs[rank])
        actual += "".join(say("unused", operation=operation) for operation in unused)
    return wanted, actual


def _values(label: str, got: Any, expected: Tensor, tp: int) -> tuple[str, str]:
    """The entry that is furthest off, and whether everything is tp times too large."""
    if _close(got, expected):
        return label, label
    if not isinstance(got, Tensor):
        return f"{label}: {_kind(expected)}", f"{label}: {got}"
    got = got.detach()
    far = int((got - expected).abs().nan_to_num(torch.inf).argmax())
    place = ", ".join(str(int(i)) for i in torch.unravel_index(torch.tensor(far), expected.shape))
    at = f"{label}[{place}] = "
    same = f" (= {tp} × {label.split()[-1]})" if tp > 1 and _close(got, tp * expected) else ""
    return f"{at}{expected.flatten()[far]:.6g}", f"{at}{got.flatten()[far]:.6g}{same}"


def _times(excess: Tensor, bias: Tensor) -> float | None:
    """The factor k where ``excess`` is k · bias in every row; None where it is not."""
    if excess.shape[-1:] != bias.shape:
        return None
    place = int(bias.abs().argmax())
    factor = float(excess.reshape(-1, bias.numel())[0, place] / bias[place])
    return factor if _close(excess, (factor * bias).expand(excess.shape)) else None
