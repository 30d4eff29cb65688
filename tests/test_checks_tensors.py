"""Checks of functions that take tensors, run on ranks, or need an earlier function."""

import pytest
import torch

from parlab.lesson.checks import NotDone, Wrong, check_todo
from parlab.lesson.compare import copied, safe_repr, same

double = half = None  # what a notebook's cells define


def define(name: str, function: object) -> None:
    globals()[name] = function


def passed(name: str, function: object) -> None:
    define(name, function)
    with check_todo(1, name) as call:
        assert call(2.0) is not None


def test_tensors_are_the_same_in_type_shape_and_value() -> None:
    one = torch.tensor([1.0, float("nan")])
    assert same(one, one.clone()) and same([one], [one.clone()])
    assert not same(one, one.double()) and not same(one, one[None])
    assert not same(one, torch.tensor([1.0, 2.0])) and not same(one, [1.0, float("nan")])


def test_copies_are_leaves_also_of_what_has_a_graph() -> None:
    leaf = torch.ones(2, requires_grad=True)
    loop: list[object] = [leaf * 2]
    loop.append(loop)
    (one, again), table = copied(loop), copied({"x": (leaf * 3, torch.zeros(1))})
    assert one.is_leaf and one.requires_grad and again[0] is one
    assert table["x"][0].requires_grad and not table["x"][1].requires_grad


def test_tensors_are_worded_on_one_line() -> None:
    assert safe_repr(torch.tensor([[0.5, 1.0]])) == "float32[1, 2] 0.5, 1"
    assert safe_repr((torch.arange(9), 3)) == "(int64[9] 0, 1, 2, 3, 4, 5, 6, 7, …, 3)"
    assert safe_repr([1, 2]) == "[1, 2]"


def test_an_input_tensor_must_not_change() -> None:
    define("double", lambda x: x.mul_(2))
    with pytest.raises(Wrong, match="调用后 float32"), check_todo(1, "double") as call:
        assert call(torch.ones(2)) is not None


def test_a_runner_calls_the_function_and_lets_its_errors_out() -> None:
    define("double", lambda comm, x, y: comm * x + y)
    with check_todo(1, "double") as call:
        assert call.run(lambda function, *own: [function(rank, *own) for rank in (1, 2)], 3, 4)
        assert call.got == [7, 10]
        assert call.wrong("rule", 0).splitlines()[0].endswith("x: 3 ; y: 4")  # comm is no input

    def stub(comm, x):
        raise NotImplementedError("TODO 1")

    define("double", stub)
    with pytest.raises(NotDone, match="TODO 1"), check_todo(1, "double") as call:
        assert call.run(lambda function, x: function(0, x), 3)


def test_what_is_needed_comes_first() -> None:
    passed("half", lambda x: x / 2)
    define("double", lambda x: 4 * half(x))  # type: ignore[misc]
    with check_todo(2, "double", needs=("half",)) as call:
        assert call(3.0) == 6.0
    define("half", lambda x: 1 / 0)  # another function, which has not passed
    with pytest.raises(NotDone) as caught, check_todo(2, "double", needs=("half",)) as call:
        assert call(3.0) == 6.0
    assert str(caught.value).startswith("⏳ TODO 2 · double · ") and "half" in str(caught.value)
    assert "\n" not in str(caught.value)
