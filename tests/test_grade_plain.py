"""Plain data: what goes to and fro between the grader and a student's process."""

import json
import math
import time
from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch

from parlab.grade import plain

KEPT: list[Any] = [
    None,
    True,
    False,
    0,
    1,
    -(10**30),
    1.0,
    0.1,
    -0.0,
    math.inf,
    -math.inf,
    "",
    "词 \x00 \ud83d 'x'",
    [],
    (),
    {},
    [1, (2, [3.0, ("x",)])],
    {"a": {1: [2], (3, 4): None, False: "t", 2.5: "f", None: "n"}},
]


def alike(one: Any, two: Any) -> bool:
    """Equal in type and value, all the way down."""
    if type(one) is not type(two):
        return False
    if isinstance(one, list | tuple):
        return len(one) == len(two) and all(map(alike, one, two))
    if isinstance(one, dict):
        return list(map(repr, one.items())) == list(map(repr, two.items()))
    return repr(one) == repr(two)


@pytest.mark.parametrize("value", KEPT, ids=repr)
def test_what_is_plain_comes_back_in_type_and_value(value: Any) -> None:
    assert alike(plain.decode(plain.encode(value)), value)


def test_nan_comes_back() -> None:
    assert math.isnan(plain.decode(plain.encode(math.nan)))


@pytest.mark.parametrize("dtype", sorted(plain._DTYPES))
@pytest.mark.parametrize("shape", [(), (3,), (2, 0, 4), (2, 3, 4)], ids=str)
def test_tensors_come_back_bit_by_bit(dtype: str, shape: tuple[int, ...]) -> None:
    made = torch.arange(1, math.prod(shape) + 1).reshape(shape).to(getattr(torch, dtype))
    back = plain.decode(plain.encode(made))
    assert (back.dtype, back.shape) == (made.dtype, made.shape)
    assert torch.equal(back, made)


def test_tensors_of_odd_strides_and_graphs_come_back() -> None:
    leaf = torch.arange(12.0).reshape(3, 4).requires_grad_()
    for value in (leaf, leaf.T, leaf[::2, 1:], (leaf * 2), torch.nn.Parameter(torch.ones(2))):
        back = plain.decode(plain.encode(value))
        assert torch.equal(back, value) and back.requires_grad == value.requires_grad
        assert type(back) is torch.Tensor
    odd = torch.tensor([math.nan, -0.0, math.inf])
    assert plain.encode(plain.decode(plain.encode(odd))) == plain.encode(odd)
    assert torch.equal(plain.decode(plain.encode(torch.tensor([1j]).conj())), torch.tensor([-1j]))


class Sly(int):
    """Says it is equal to anything."""

    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return True


CYCLE: list[Any] = []
CYCLE.append(CYCLE)
DEEP: list[Any] = []
for _ in range(10_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "value",
    [
        Sly(1),
        type("text", (str,), {})("x"),
        OrderedDict(a=1),
        namedtuple("Pair", "a b")(1, 2),  # noqa: PYI024
        {1, 2},
        b"x",
        1j,
        object(),
        len,
        [object()],
        {"a": Sly(1)},
        {Sly(1): 1},
        CYCLE,
        DEEP,
        10**100_000,
        [0] * 300_000,
        torch.empty(3, device="meta"),
        torch.ones(2, 2).to_sparse(),
        torch.ones(300_000),
        torch.float32,
        torch.nn.Linear(1, 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_plain_is_named(value: Any) -> None:
    with pytest.raises(plain.NotPlain):
        plain.encode(value)


def test_what_is_too_long_is_named() -> None:
    with pytest.raises(plain.NotPlain, match="str of 1002 bytes"):
        plain.encode("x" * 1000, limit=1000)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"x",
        b"\xff\xff",
        b"[",
        b"{}",
        b'{"a": 1}',
        b"[]",
        b'["x"]',
        b"[[]]",
        b"[1]",
        b"[null]",
        b'["d",1]',
        b'["d",[1]]',
        b'["d",[["l"],1]]',
        b'["d",[["t",["l"]],1]]',
        b'["d",["a",1],["a",2]]',
        b'["d",[1,1],[1.0,2]]',
        b'["T"]',
        b'["T","float32",[2],"AAAA",false]',
        b'["T","float32",[-1],"",false]',
        b'["T","float32",[true],"AAAAAA==",false]',
        b'["T","float32",[0,1000000000000000000],"",false]',
        b'["T","float32","x","",false]',
        b'["T","__class__",[1],"AAAA",false]',
        b'["T","float32",[1],"****",false]',
        b'["T","float32",[1],7,false]',
        b'["T","float32",[1],"AAAAAA==",1]',
        b"9" * 5000,
        b"-" + b"9" * 5000,
        b"[" * 100_000,
        b'["l",' * 60 + b"1" + b"]" * 60,
        b'["l"' + b",1" * 300_000 + b"]",
        b'["d"' + b"".join(b",[%d,1]" % n for n in range(6000)) + b"]",
    ],
    ids=lambda text: text[:30].decode(errors="replace"),
)
def test_what_nobody_wrote_is_refused(text: bytes) -> None:
    with pytest.raises(plain.PlainError):
        plain.decode(text)


def test_a_boolean_tensor_holds_only_booleans() -> None:
    back = plain.decode(b'["T","bool",[2],"AgA=",false]')
    assert back.tolist() == [True, False]
    assert back.view(torch.uint8).tolist() == [1, 0]


def test_keys_chosen_to_collide_do_not_stop_the_grader() -> None:
    step = 2**61 - 1  # every multiple has the hash 0
    pairs = ",".join(f"[{n * step},1]" for n in range(1, 5000))
    began = time.monotonic()
    plain.decode(f'["d",{pairs}]'.encode())
    assert time.monotonic() - began < 20


def test_the_encoding_is_json() -> None:
    assert json.loads(plain.encode({"a": (1, [2.5])})) == ["d", ["a", ["t", 1, ["l", 2.5]]]]
