"""Ranks as threads: right sums and gradients, and every way to go wrong is told within moments."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from parlab.lesson.communicator import Communicator, ring_bytes
from parlab.lesson.language import speak
from parlab.lesson.rank_failure import RankFailed
from parlab.lesson.rank_threads import PerRank, run_ranks


@pytest.fixture(autouse=True)
def english() -> Iterator[None]:
    speak("en")
    yield
    speak("zh")


def numbered(comm: Communicator, *shape: int) -> Tensor:
    count = int(torch.tensor(shape).prod())
    return (torch.arange(count, dtype=torch.float64) + 100 * comm.rank).view(shape)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_every_operation_gives_what_its_name_says(size: int) -> None:
    def rank(comm: Communicator) -> Any:
        x = numbered(comm, 2, 2 * size)
        k, v = comm.shift((x, x + 1))
        return (
            comm.all_reduce(x), comm.enter(x), comm.all_gather(x, 1), comm.all_gather(x, -2),
            comm.reduce_scatter(x, -1), comm.shift(x), k, v,
        )  # fmt: skip

    run = run_ranks(size, rank)
    inputs = [
        torch.arange(4 * size, dtype=torch.float64).view(2, -1) + 100 * r for r in range(size)
    ]
    total = torch.stack(inputs).sum(0)
    for index, got in enumerate(run.results):
        before = inputs[index - 1]
        wanted = (
            total, inputs[index], torch.cat(inputs, 1), torch.cat(inputs, 0),
            total[:, 2 * index : 2 * index + 2], before, before, before + 1,
        )  # fmt: skip
        for one, other in zip(got, wanted, strict=True):
            assert torch.equal(one, other)


@pytest.mark.parametrize("size", [2, 3])
def test_backward_is_the_partner_of_forward(size: int) -> None:
    """Against one process: the ranks' inputs as slices of one tensor, the operations as algebra."""
    weights = torch.randn(size, 6, size * 2, dtype=torch.float64)

    def parts(x: Tensor, of: Callable[[list[Tensor], int], Tensor]) -> Tensor:
        return torch.stack([of(list(x), rank) for rank in range(size)])

    whole: dict[str, Callable[[list[Tensor], int], Tensor]] = {
        "reduce_scatter": lambda xs, rank: sum(xs).chunk(size, 1)[rank],  # type: ignore[union-attr]
        "all_gather": lambda xs, rank: torch.cat(xs, 1),
        "shift": lambda xs, rank: xs[rank - 1],
    }
    inputs = torch.randn(size, 6, size * 2, dtype=torch.float64)
    for name, algebra in whole.items():
        x = inputs.clone().requires_grad_()
        expected = parts(x, algebra)
        gradient = torch.randn_like(expected)
        expected.backward(gradient)

        def rank(comm: Communicator, part: Tensor, name: str = name) -> Any:
            call = getattr(comm, name)
            return part, call(part) if name == "shift" else call(part, 1)

        run = run_ranks(size, rank, PerRank([part.requires_grad_() for part in inputs.clone()]))
        run.backward([got for _, got in run.results], list(gradient))
        for index, (part, got) in enumerate(run.results):
            assert torch.equal(got, expected[index])
            assert torch.allclose(part.grad, x.grad[index])
        directions = [record.direction for record in run.log_of(0)]
        assert directions == ["forward", "backward"]

    def f_and_g(comm: Communicator, x: Tensor, weight: Tensor) -> Any:
        return x, comm.all_reduce(comm.enter(x) * weight)

    x = torch.randn(6, size * 2, dtype=torch.float64).requires_grad_()
    run = run_ranks(size, f_and_g, x, PerRank(list(weights)))
    gradient = torch.randn(6, size * 2, dtype=torch.float64)
    run.backward([got for _, got in run.results], [gradient] * size)
    (x * weights.sum(0)).backward(gradient)
    for own, got in run.results:
        assert torch.allclose(got, x * weights.sum(0)) and torch.allclose(own.grad, x.grad)
    assert len(run.log) == 2 * size


def failing(
    size: int, rank: Callable[..., Any], *arguments: Any, within: float = 1.0
) -> RankFailed:
    began = time.monotonic()
    with pytest.raises(RankFailed) as caught:
        run_ranks(size, rank, *arguments)
    assert time.monotonic() - began < within
    return caught.value


def test_a_rank_that_leaves_out_an_operation_is_named() -> None:
    def rank(comm: Communicator) -> Any:
        return comm.all_reduce(torch.ones(2, 3)) if comm.rank != 1 else None

    failure = failing(3, rank)
    assert failure.kind == "left"
    assert "rank 1 ended while rank 0, 2 waited" in str(failure)
    assert "all_reduce (forward, (2, 3) float32)" in str(failure)


def test_a_doubled_operation_is_named() -> None:
    def rank(comm: Communicator) -> Any:
        x = comm.all_reduce(torch.ones(4))
        return comm.all_reduce(x) if comm.rank == 2 else x

    failure = failing(3, rank)
    assert failure.kind == "left" and "rank 2 waited in operation 2" in str(failure)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lambda comm, x: comm.all_gather(x), "all_gather, dim 0"),
        (lambda comm, x: comm.all_reduce(x.t()), "(3, 2)"),
        (lambda comm, x: comm.all_reduce(x.double()), "float64"),
    ],
)
def test_operations_that_do_not_match_are_named(
    other: Callable[[Communicator, Tensor], Tensor], said: str
) -> None:
    def rank(comm: Communicator) -> Any:
        x = torch.ones(2, 3)
        return other(comm, x) if comm.rank == 1 else comm.all_reduce(x)

    failure = failing(2, rank)
    assert failure.kind == "differ"
    assert "rank 0 calls all_reduce" in str(failure) and said in str(failure)


def test_a_missing_operation_in_backward_is_named() -> None:
    def rank(comm: Communicator, x: Tensor) -> Tensor:
        return (comm.enter(x) if comm.rank else x) * 2

    run = run_ranks(2, rank, torch.ones(3, requires_grad=True))
    with pytest.raises(RankFailed) as caught:
        run.backward(run.results, [torch.ones(3)] * 2)
    assert caught.value.kind == "left" and "backward" in str(caught.value)
    with pytest.raises(RankFailed):  # these ranks cannot go on
        run.backward(run.results, [torch.ones(3)] * 2)


def test_an_exception_is_shown_with_its_rank_and_line() -> None:
    def rank(comm: Communicator) -> Any:
        if comm.rank == 1:
            raise ValueError("no shard for me")
        return comm.all_reduce(torch.ones(1))

    failure = failing(3, rank)
    assert failure.kind == "raised" and failure.rank == 1
    assert isinstance(failure.__cause__, ValueError)
    assert "rank 1 raised ValueError: no shard for me" in str(failure)
    assert 'raise ValueError("no shard for me")' in str(failure)


def test_of_several_exceptions_the_lowest_rank_s_is_told() -> None:
    def rank(comm: Communicator) -> Any:
        time.sleep(0.05 * (3 - comm.rank))
        raise RuntimeError(f"mine: {comm.rank}")

    assert failing(3, rank).rank == 0


def test_a_rank_that_loops_is_told_and_stopped_and_later_runs_do_not_notice() -> None:
    before = threading.active_count()

    def rank(comm: Communicator) -> Any:
        while comm.rank == 1:
            pass
        return comm.all_reduce(torch.ones(2))

    began = time.monotonic()
    with pytest.raises(RankFailed) as caught:
        run_ranks(3, rank, seconds=0.3)
    assert time.monotonic() - began < 4
    assert caught.value.kind == "late" and caught.value.rank == 1
    assert "while comm.rank == 1" in str(caught.value) or "pass" in str(caught.value)
    assert "rank 0 waits in all_reduce" in str(caught.value)
    assert run_ranks(3, lambda comm: comm.all_reduce(torch.ones(2)).sum().item()).results == [6] * 3
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_a_stray_rank_that_swallows_everything_can_reach_nobody() -> None:
    release = threading.Event()

    def rank(comm: Communicator) -> Any:
        while comm.rank == 0:
            try:
                time.sleep(0.01)
                comm.all_reduce(torch.ones(1)) if release.is_set() else None
                if release.is_set():
                    return None
            except:  # noqa: E722
                if release.is_set():
                    return None
        return comm.all_reduce(torch.ones(1))

    with pytest.raises(RankFailed):
        run_ranks(2, rank, seconds=0.2)
    run = run_ranks(2, lambda comm: comm.all_reduce(torch.full((1,), 5.0)))
    release.set()
    assert [got.item() for got in run.results] == [10, 10]


def test_an_interrupt_passes_through_and_leaves_no_waiting_rank() -> None:
    import _thread

    before = threading.active_count()

    def rank(comm: Communicator) -> Any:
        if comm.rank == 0:
            _thread.interrupt_main()
            while True:
                time.sleep(0.01)
        return comm.all_reduce(torch.ones(1))

    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_ranks(3, rank)
        time.sleep(0.1)
    assert time.monotonic() - began < 4
    deadline = time.monotonic() + 5
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_nobody_sees_what_another_rank_does_to_its_tensors() -> None:
    given = torch.zeros(3)

    def rank(comm: Communicator, x: Tensor) -> Any:
        x += comm.rank
        received = comm.shift(x)
        x.fill_(99)
        total = comm.all_reduce(received)
        total *= comm.rank
        return received, total

    run = run_ranks(3, rank, given)
    assert torch.equal(given, torch.zeros(3))
    assert [received[0].item() for received, _ in run.results] == [2, 0, 1]
    assert [total[0].item() for _, total in run.results] == [0, 3, 6]


def test_the_largest_tensor_of_each_rank_is_known_backward_included() -> None:
    def rank(comm: Communicator, x: Tensor) -> Any:
        if comm.rank == 1:
            comm_made = torch.empty(50)
            assert comm_made.numel() == 50
        x[:1].expand(1000, 3)  # takes no memory
        return (comm.all_gather(x, 0) ** 2).sum()

    run = run_ranks(2, rank, torch.ones(4, 3, requires_grad=True))
    assert [(peak.elements, peak.shape) for peak in run.peaks] == [(24, (8, 3)), (50, (50,))]
    nine = torch.ones(9, requires_grad=True)
    run = run_ranks(2, lambda comm, x: (comm.enter(x)[:1] * 2).sum(), nine)
    run.backward(run.results, [torch.ones(())] * 2)
    assert run.peaks[0].elements == 9


def test_the_log_counts_what_is_handed_over_and_what_a_ring_sends() -> None:
    def rank(comm: Communicator) -> Any:
        comm.all_reduce(torch.ones(2, 6))
        comm.shift((torch.ones(3), torch.ones(2, 2, dtype=torch.float64)))

    log = run_ranks(3, rank).log
    assert [record.rank for record in log] == [0, 0, 1, 1, 2, 2]
    first, second = log[:2]
    assert (first.operation, first.direction, first.shape) == ("all_reduce", "forward", (2, 6))
    assert (first.bytes, first.sent) == (48, 64)  # 2 · 2/3 · 48
    assert (second.shape, second.bytes, second.sent) == (((3,), (2, 2)), 44, 44)


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_ring_bytes_are_the_known_shares(size: int) -> None:
    """arXiv 2104.04473 section 3.2: an all-reduce sends 2(n-1)/n of the data."""
    handed = 48 * size
    for rank in range(size):
        share = (size - 1) * handed // size
        assert ring_bytes("all_reduce", handed, rank, size) == 2 * share
        assert ring_bytes("reduce_scatter", handed, rank, size) == share
        assert ring_bytes("all_gather", handed, rank, size) == (size - 1) * handed


def test_it_runs_without_memory_for_tensors_of_any_size() -> None:
    """On the meta device: shapes, counts and bytes of layers that no laptop holds."""

    def rank(comm: Communicator, x: Tensor, w: Tensor) -> Any:
        return comm.all_reduce(comm.enter(x) @ w)

    x = torch.empty(1, 8192, 16384, device="meta", dtype=torch.bfloat16, requires_grad=True)
    w = torch.empty(16384, 6656, device="meta", dtype=torch.bfloat16)
    run = run_ranks(8, rank, x, w, seconds=60)  # on meta, torch first imports a lot
    run.backward(run.results, [torch.empty_like(got) for got in run.results], seconds=60)
    assert [record.bytes for record in run.log_of(3)] == [8192 * 6656 * 2, 8192 * 16384 * 2]


def test_what_is_no_tensor_or_cannot_be_cut_is_refused() -> None:
    assert "takes a tensor, not float" in str(failing(2, lambda comm: comm.all_reduce(1.0)))
    text = str(failing(2, lambda comm: comm.reduce_scatter(torch.ones(2, 5), 1)))
    assert "dim 1 has 5, which 2 ranks cannot share evenly" in text
