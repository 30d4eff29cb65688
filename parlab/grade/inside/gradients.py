"""A function's results with the gradients of its arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def backward(
    function: Callable[..., Any], given: Sequence[Any], upstream: Sequence[Tensor]
) -> dict[str, Any]:
    """``function(*given)``, and backward from there.

    Args:
        given: its arguments; tensors that require gradients among them.
        upstream: a gradient for each tensor that it returns.

    Returns:
        ``out``: what it returned; ``gradients``: of each argument, None where none has arrived.
    """
    out = function(*given)
    tensors = out if isinstance(out, tuple | list) else [out]
    # a sum, since backward(output, gradient) has torch import its compiler for seconds
    pairs = zip(tensors, upstream, strict=False)
    ends = [(one * two).sum() for one, two in pairs if one.requires_grad]
    leaves = [x for x in given if isinstance(x, Tensor) and x.requires_grad]
    found: dict[int, Any] = {}
    if ends and leaves:
        gradients = torch.autograd.grad(sum(ends), leaves, allow_unused=True)
        found = {id(leaf): one for leaf, one in zip(leaves, gradients, strict=True)}
    return {"out": out, "gradients": [found.get(id(x)) for x in given]}
