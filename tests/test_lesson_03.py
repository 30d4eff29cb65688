"""Lesson 03: its cases, pictures and tools are right, and the benchmark follows its rules."""

import ast
import inspect
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
import torch.nn.functional as F
from bench_formulas import E
from lessons import (
    LANGUAGES,
    ROOT,
    Answer,
    Kernel,
    answers,
    cell,
    code_cells,
    load,
    needed,
)
from matplotlib.colors import to_rgb

from parlab.bench import head_tail as bench_split
from parlab.bench import ring_attention as bench_ring
from parlab.lesson import draw_context, prove_context
from parlab.lesson.attention import NEVER, partial_attention, random_qkv, whole_attention
from parlab.lesson.merge_cases import two_parts
from parlab.lesson.published import llama3_405b
from parlab.lesson.ring_cases import RINGS
from parlab.lesson.ring_looks import KeyCopies
from parlab.lesson.ring_run import bytes_sent, run_ring
from parlab.lesson.split_cases import SMALL, faults, sizes
from parlab.lesson.style import SHADES

LESSON = "03_context_parallel"
NAMES = ("head_tail", "merge", "ring_attention")
matplotlib.use("Agg")


@pytest.fixture(scope="module")
def solution() -> Kernel:
    kernel, notebook = Kernel(), load("solutions", LESSON, "zh")
    kernel.run(cell(notebook, "setup").source)
    for number in (1, 2, 3):
        kernel.run(cell(notebook, f"todo-{number}").source)
    return kernel


def test_split_cases_are_the_solutions(solution: Kernel) -> None:
    for sequence, cp, expected in SMALL:
        assert solution["head_tail"](sequence, cp) == expected
    for sequence, cp in sizes():
        got = solution["head_tail"](sequence, cp)
        for fault in vars(faults).values():
            assert fault(got, sequence, cp) == ""
        assert len(set(got["work"])) == 1
    with pytest.raises(ValueError, match="20 is not a multiple of 2 · cp = 6"):
        solution["head_tail"](20, 3)


def test_the_imbalance_is_as_told() -> None:
    """2 - 1/cp for long sequences; the example's 16 tokens give 58 / 34 by both counts."""
    for cp in (2, 4, 8):
        work = torch.ones(2048, 2048).tril().sum(1).view(cp, -1).sum(1)
        assert (work.max() / work.mean()).item() == pytest.approx(2 - 1 / cp, abs=2e-3)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_partial_attention_is_torchs(kv_heads: int) -> None:
    q, k, v = random_qkv(2, 6, kv_heads, 7, 4)
    seen = torch.ones(7, 7, dtype=torch.bool).tril()
    out, lse = partial_attention(q, k, v, seen)
    group = 6 // kv_heads
    wide = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    right = F.scaled_dot_product_attention(q, *wide, attn_mask=seen)
    torch.testing.assert_close(out, right)
    torch.testing.assert_close(out, whole_attention(q, k, v))
    scores = (q @ wide[0].transpose(-1, -2) / 2).masked_fill(~seen, NEVER)
    torch.testing.assert_close(lse, scores.logsumexp(-1))


def test_what_sees_nothing_has_no_gradient() -> None:
    leaves = [x.requires_grad_() for x in random_qkv(1, 2, 1, 4, 3)]
    out, lse = partial_attention(*leaves, torch.zeros(4, 4, dtype=torch.bool))
    assert bool((out == 0).all()) and bool((lse == NEVER).all())
    out.sum().backward()
    assert all(bool((x.grad == 0).all()) for x in leaves)


def test_partial_attention_refuses_what_does_not_fit() -> None:
    q, k, v = random_qkv(1, 4, 2, 6, 3)
    with pytest.raises(ValueError, match=r"seen \[6, 5\] do not fit"):
        partial_attention(q, k, v, torch.ones(6, 5, dtype=torch.bool))


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_merge_passes_gradcheck(solution: Kernel, scale: float) -> None:
    case = two_parts(7, scale=scale)
    blind = case.parts[1].detach() == NEVER  # gradcheck wants finite inputs: blind ones apart

    def finite(out, lse, new, new_lse):
        lse = lse.masked_fill(blind, NEVER)
        return solution["merge"](out, lse, new, new_lse)[0]

    given = [part.detach().nan_to_num(neginf=0.0).requires_grad_() for part in case.parts]
    assert torch.autograd.gradcheck(finite, given)


@pytest.mark.parametrize("answer", [a for a in answers(LESSON) if a.todo == 2 and a.right], ids=str)
def test_merging_many_blocks_agrees_with_the_check(answer: Answer) -> None:
    """What CHECK 2 has accepted is not called wrong in the next cell."""
    kernel, notebook = Kernel(), load("notebooks", LESSON, "en")
    kernel.run(cell(notebook, "setup").source)
    kernel.run(answer.source, "<answer>")
    kernel.run(cell(notebook, "check-2").source)
    (after,) = (item for item in code_cells(notebook) if "blocks: largest" in item.source)
    printed = kernel.run(after.source)
    assert printed.count("True") == 4 and "False" not in printed


def test_a_product_that_broadcasts_over_groups_repeats_no_head() -> None:
    q, k, _ = random_qkv(1, 4, 2, 5, 3)
    with KeyCopies(q, k) as mode:
        (q.unflatten(1, (2, -1)) @ k[:, :, None].transpose(3, 4)).sum()
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
        k[:, :, None].expand(-1, -1, 2, -1, -1)
        torch.cat((k, k + 1), dim=1)
    assert mode.found is None
    with KeyCopies(q, k) as mode:
        k[:, [0, 0, 1, 1], :3]
    assert mode.found == ("__getitem__", [1, 4, 3, 3])


def test_ring_cases_are_what_they_say(solution: Kernel) -> None:
    for case in RINGS:
        run = run_ring(solution["ring_attention"], *case.tensors)
        assert run.scores() == case.needed
        assert not run.output_error() and not run.gradient_error() and not run.stuck
    for case, cp in ((RINGS[3], 2), (RINGS[4], 4)):
        length = sum(map(len, case.positions))
        assert case.positions == solution["head_tail"](length, cp)["positions"]
        assert len(set(case.needed)) == 1


def test_a_deaf_rank_loses_its_own_gradients_and_nothing_else(solution: Kernel) -> None:
    run = run_ring(solution["ring_attention"], *RINGS[2].tensors, deaf=0)
    assert not run.output_error()
    off = [
        [run.distance(rank, *pair) > 0.1 for pair in zip(own, run.whole.gradients, strict=True)]
        for rank, own in enumerate(run.gradients)
    ]
    assert off == [[False, True, True]] + [[False] * 3] * 2


def test_a_rank_that_stops_shifting_is_named(solution: Kernel) -> None:
    def lazy(comm, q, k, v, positions):
        if comm.rank == 0:
            return q, 0
        return solution["ring_attention"](comm, q, k, v, positions)

    run = run_ring(lazy, *RINGS[1].tensors)
    assert "rank 0" in run.broken and "shift" in run.broken
    empty = (run.uneven, run.hoard, run.output_error, run.gradient_error, run.miscounted)
    assert [ask() for ask in empty] == [""] * 5


def test_the_benchmark_follows_the_lesson(solution: Kernel) -> None:
    """Positions, block pairs and bytes; the merge is loaded, not copied."""
    for cp in (2, 3, 4):
        split = solution["head_tail"](6 * cp, cp)
        for rank in range(cp):
            held = bench_split.head_tail(6 * cp, cp, rank)
            assert held.tolist() == split["positions"][rank]
        q, k, v = random_qkv(1, 4, 2, 6 * cp, 3)
        positions = torch.tensor(split["positions"])
        run = run_ring(solution["ring_attention"], q, k, v, positions)
        for rank, looks in enumerate(run.looks):
            axis = SimpleNamespace(size=cp, index=rank)
            for step, look in enumerate(looks):
                if step:
                    owner = (rank - step) % cp
                    queries, keys = bench_ring._view(step, axis, 6)
                    assert positions[rank][queries].tolist() == look.queries.tolist()
                    assert positions[owner][keys].tolist() == look.keys.tolist()
                    assert bool(look.seen.all())
        block = 2 * 1 * 6 * 2 * 3 * E  # as bench_formulas: 2 · b · s/cp · kv · d, 4 bytes a number
        assert [sent for _, sent in run.results] == [(cp - 1) * block * 2] * cp  # float64 here
    assert "logaddexp" not in inspect.getsource(bench_ring)


def test_a_small_run_tells_the_bytes_of_any_size(solution: Kernel) -> None:
    for cp in (2, 3):
        positions = torch.arange(4 * cp).view(cp, -1)
        small = bytes_sent(solution["ring_attention"], positions)
        large = run_ring(solution["ring_attention"], *random_qkv(2, 6, 3, 4 * cp, 5), positions)
        assert large.handed() == [2 * 3 * 5 * small] * cp


def test_the_published_case_is_as_told() -> None:
    row = llama3_405b()[-1]
    assert (row["cp"], row["sequence_length"], row["hidden"] // row["num_heads"]) == (
        16,
        131_072,
        128,
    )
    assert row["num_kv_heads"] // row["tp"] == 1 and row["num_heads"] // row["tp"] == 16
    sent = 2 * 131_072 / 16 * 128 * 2 * 15
    assert sent / 1e6 == pytest.approx(62.9, abs=0.05)


def test_draw_causal_colours_the_rows_of_each_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    positions = [[0, 1, 6, 7], [2, 3, 4, 5]]
    draw_context.draw_causal({"a": positions})
    matrix, bars = plt.gcf().axes
    image = matrix.images[0].get_array()
    for query in range(8):
        rank = next(rank for rank, mine in enumerate(positions) if query in mine)
        assert tuple(image[query][query]) == to_rgb(SHADES[rank])
        assert all(tuple(image[query][key]) == (1, 1, 1) for key in range(query + 1, 8))
    assert [bar.get_width() for bar in bars.patches] == [18, 18]
    plt.close("all")


def test_draw_ring_moves_every_block_to_the_next_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plt, "show", lambda: None)
    draw_context.draw_ring(4, 4)
    for step, panel in enumerate(plt.gcf().axes):
        shown = [text.get_text() for text in panel.texts]
        assert shown == [f"rank {rank}\nKV {(rank - step) % 4}" for rank in range(4)]
    plt.close("all")


@pytest.mark.parametrize("language", LANGUAGES)
def test_open_todos_leave_one_line_in_every_cell_that_uses_them(language: str) -> None:
    kernel, waiting = Kernel(), 0
    for item in code_cells(load("notebooks", LESSON, language)):
        if item.id.startswith("check-"):
            continue
        printed = kernel.run(item.source)
        if "⏳" in printed:
            waiting += 1
            assert printed.startswith("⏳ ") and printed.count("\n") == 1
    plt.close("all")
    assert waiting == 8


@pytest.mark.parametrize("language", LANGUAGES)
def test_only_the_ring_needs_an_earlier_todo(language: str) -> None:
    notebook = load("notebooks", LESSON, language)
    assert [needed(notebook, number) for number in (1, 2, 3)] == [[], [], [2]]


def test_no_module_that_a_twin_carries_answers_a_todo() -> None:
    """Nothing there merges by log-sum-exp, pairs chunks or goes round a ring by itself."""
    twin = cell(load("colab", LESSON, "en"), "setup").source
    for name in (*NAMES, "logaddexp"):
        assert f"def {name}(" not in twin
    for module in ("merge_cases", "ring_cases", "ring_run", "split_cases", "draw_context"):
        tree = ast.parse((ROOT / "parlab" / "lesson" / f"{module}.py").read_text(encoding="utf-8"))
        called = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
        assert not called & {"logaddexp", "logsumexp", "sigmoid", "argsort", "partial_attention"}


def test_the_proof_says_what_it_measured(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"split": "head-tail", "out": 1e-15, "dq": 0.0, "dk": 2e-15, "dv": 0.0, "sent": 12288}
    prove_context.show_proof({"splits": [row]})
    head, line = capsys.readouterr().out.splitlines()
    assert head.split()[0] == "split" and line.split()[-1] == "12288"
