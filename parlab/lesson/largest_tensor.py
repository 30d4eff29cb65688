"""Sees every tensor that the code of one thread makes, and remembers the largest."""

from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


@dataclass
class Largest:
    """The largest tensor so far.

    Attributes:
        elements: how many numbers it holds in memory; an ``expand`` adds none.
        shape: its shape.
        operation: what made it, in torch's name.
    """

    elements: int = 0
    shape: tuple[int, ...] = ()
    operation: str = ""

    def see(self, value: Any, operation: str) -> None:
        """Looks at a tensor, or at every tensor of a tuple or list."""
        if isinstance(value, tuple | list):
            for item in value:
                self.see(item, operation)
        elif isinstance(value, Tensor):
            stored = value.untyped_storage().nbytes() // max(1, value.element_size())
            elements = min(value.numel(), stored)
            if elements > self.elements:
                self.elements, self.shape = elements, tuple(value.shape)
                self.operation = operation


class LargestTensor(TorchDispatchMode):  # type: ignore[misc]
    """Within, results of torch's operators are seen, those of backward included.

    A mode belongs to the thread that entered it.
    """

    def __init__(self, largest: Largest) -> None:
        super().__init__()
        self.largest = largest

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else torch imports its compiler, which takes seconds, in the first thread

    def __enter__(self) -> "LargestTensor":
        # Not the base class's: its flags are the process's, and threads would leave them set.
        _push_mode(self)
        return self

    def __exit__(self, *error: object) -> None:
        _pop_mode()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        # What only shows another tensor's memory is not made: views, and operators in place.
        if not any(returned.alias_info for returned in func._schema.returns):
            self.largest.see(result, str(func).partition(".")[2] or str(func))
        return result
