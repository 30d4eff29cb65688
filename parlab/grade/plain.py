"""Plain data between the grader and a student's process: JSON with type tags.

Plain are None, bool, int, float (NaN, infinities and -0.0 are kept), str, list, tuple, dict and
dense tensors, of exactly these types. Reading calls nothing that the other side could choose, and
is bounded in depth, in size and in time.
"""

import base64
import json
import math
from collections.abc import Callable
from typing import Any

MAX_DEPTH = 40
MAX_ITEMS = 200_000
MAX_KEYS = 20_000  # of all dicts together
MAX_DIGITS = 4000  # of an int
_DTYPES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}  # fmt: skip


class NotPlain(Exception):
    """A value is no plain data; its text is the type's name, or what is wrong with its size."""


class PlainError(Exception):
    """Bytes that are no plain data."""


def encode(value: object, limit: int | None = None) -> bytes:
    """Writes a value.

    Args:
        limit: bytes that the result may have.

    Raises:
        NotPlain: another type is in it, it is too deep (perhaps it holds itself) or too large.
    """
    tagged = _Writer().write(value, 0)
    text = json.dumps(tagged, separators=(",", ":")).encode()
    if limit is not None and len(text) > limit:
        raise NotPlain(f"{type(value).__name__} of {len(text)} bytes")
    return text


def decode(text: bytes) -> Any:
    """Reads what `encode` wrote.

    Raises:
        PlainError: it is something else, or beyond the bounds.
    """
    return untag(parse(text))


def parse(text: bytes) -> Any:
    """JSON, with integers of bounded length.

    Raises:
        PlainError: it is no JSON.
    """
    try:
        return json.loads(text, parse_int=_parse_int)
    except (ValueError, RecursionError, MemoryError) as error:
        raise PlainError(f"no JSON: {type(error).__name__}") from None


def tag(value: object) -> Any:
    """A value as JSON can hold it, with its types.

    Raises:
        NotPlain: see `encode`.
    """
    return _Writer().write(value, 0)


def untag(tagged: Any) -> Any:
    """The value that `tag` was given.

    Raises:
        PlainError: see `decode`.
    """
    return _Reader().read(tagged, 0)


class _Writer:
    def __init__(self) -> None:
        self.items = 0

    def write(self, value: object, depth: int) -> Any:
        kind = type(value)
        self.items += 1
        if depth > MAX_DEPTH:
            raise NotPlain(f"{kind.__name__}, more than {MAX_DEPTH} levels deep")
        if self.items > MAX_ITEMS:
            raise NotPlain(f"{kind.__name__}, more than {MAX_ITEMS} items")
        if value is None or kind in (bool, float, str):
            return value
        if kind is int:
            return self._int(value)
        if isinstance(value, list | tuple) and kind in (list, tuple):
            parts = [self.write(item, depth + 1) for item in value]
            return ["l" if kind is list else "t", *parts]
        if isinstance(value, dict) and kind is dict:
            pairs = list(value.items())
            return ["d", *([self.write(part, depth + 1) for part in pair] for pair in pairs)]
        if kind.__module__.partition(".")[0] == "torch":
            return self._tensor(value)
        raise NotPlain(kind.__name__)

    def _int(self, value: Any) -> int:
        if value.bit_length() > 3 * MAX_DIGITS:
            raise NotPlain(f"int of {value.bit_length()} bits")
        return int(value)

    def _tensor(self, value: Any) -> list[Any]:
        import torch

        kind = type(value)
        if kind not in (torch.Tensor, torch.nn.Parameter):
            raise NotPlain(kind.__name__)
        name = str(value.dtype).removeprefix("torch.")
        if name not in _DTYPES or value.layout != torch.strided or value.device.type == "meta":
            raise NotPlain(f"Tensor of {name}, {value.layout}, {value.device.type}")
        if value.numel() > MAX_ITEMS:
            raise NotPlain(f"Tensor of {value.numel()} numbers")
        flat = value.detach().cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
        data = bytes(flat.view(torch.uint8).tolist()) if flat.numel() else b""
        return ["T", name, list(value.shape), base64.b64encode(data).decode(), value.requires_grad]


class _Reader:
    def __init__(self) -> None:
        self.items = self.keys = 0

    def read(self, tagged: Any, depth: int) -> Any:
        self.items += 1
        if depth > MAX_DEPTH or self.items > MAX_ITEMS:
            raise PlainError("too deep or too large")
        if not isinstance(tagged, list):
            if isinstance(tagged, dict):
                raise PlainError("an untagged dict")
            return tagged
        readers: dict[Any, Callable[[list[Any], int], Any]] = {
            "l": lambda parts, deeper: [self.read(part, deeper) for part in parts],
            "t": lambda parts, deeper: tuple(self.read(part, deeper) for part in parts),
            "d": self._dict,
            "T": self._tensor,
        }
        if not tagged or not isinstance(tagged[0], str) or tagged[0] not in readers:
            raise PlainError("an unknown tag")
        return readers[tagged[0]](tagged[1:], depth + 1)

    def _dict(self, pairs: list[Any], depth: int) -> dict[Any, Any]:
        self.keys += len(pairs)
        if self.keys > MAX_KEYS or len(pairs) > MAX_KEYS // 4:
            raise PlainError("too many keys")  # keys can be chosen so that every look-up is slow
        made: dict[Any, Any] = {}
        for pair in pairs:
            if not isinstance(pair, list) or len(pair) != 2:
                raise PlainError("a dict entry that is no pair")
            key = self.read(pair[0], depth)
            if type(key) not in (str, int, float, bool, type(None), tuple):
                raise PlainError("a key that cannot be one")
            try:
                made[key] = self.read(pair[1], depth)
            except TypeError:
                raise PlainError("a key that cannot be one") from None
        if len(made) != len(pairs):
            raise PlainError("a key that comes twice")
        return made

    def _tensor(self, parts: list[Any], depth: int) -> Any:
        import torch

        if len(parts) != 4:
            raise PlainError("no tensor")
        name, shape, data, grad = parts
        sizes_are_plain = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
        if name not in _DTYPES or not sizes_are_plain or not isinstance(data, str):
            raise PlainError("no tensor")
        try:
            raw = base64.b64decode(data, validate=True)
        except ValueError:
            raise PlainError("no tensor") from None
        count = math.prod(shape)
        if len(shape) > 16 or count > MAX_ITEMS or len(raw) != count * _DTYPES[name]:
            raise PlainError("a tensor whose shape and data differ")
        if max(shape, default=0) > MAX_ITEMS or type(grad) is not bool:
            raise PlainError("no tensor")
        dtype = getattr(torch, name)
        if name == "bool":
            raw = bytes(1 if byte else 0 for byte in raw)
        flat = torch.frombuffer(bytearray(raw), dtype=dtype) if raw else torch.empty(0, dtype=dtype)
        tensor: Any = flat.reshape(shape).clone()
        return (
            tensor.requires_grad_(True)
            if grad and name.startswith(("f", "b", "c")) and name != "bool"
            else tensor
        )


def _parse_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise ValueError("an int of too many digits")
    return int(digits)
