"""Lesson 02: its cases, references and facts, its findings, and its functions in real processes."""

import ast
import linecache
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import pytest
import torch
import torch.nn.functional as F
from lessons import LANGUAGES, ROOT, Kernel, cell, code_cells, load
from matplotlib.colors import same_color
from matplotlib.patches import Rectangle

from parlab.lesson import tensor_cases as cases
from parlab.lesson.draw_tensor import draw_owners
from parlab.lesson.draw_traffic import draw_layer_traffic, draw_ring
from parlab.lesson.loader import load_solution
from parlab.lesson.proof import run_proof
from parlab.lesson.published import llama3
from parlab.lesson.rank_threads import PerRank, run_ranks
from parlab.lesson.stored import Stored, block_words
from parlab.lesson.style import SHADES
from parlab.lesson.tensor_check import block_findings, column_findings, row_findings
from parlab.lesson.tensor_run import run_block, run_column, run_row

matplotlib.use("Agg")
LESSON = "02_tensor_parallel"
SOLUTION = load_solution(ROOT / "solutions" / f"{LESSON}.py")
NAMES = ("column_parallel", "row_parallel", "parallel_block")
column_parallel, row_parallel, parallel_block = (SOLUTION[name] for name in NAMES)


# ------------------------------------------------------------------------------------------- cases
def test_cases_tell_sizes_and_shards_apart() -> None:
    """A wrong dim, a wrong rank or the whole weight shows in each."""
    for case in cases.linear_cases():
        tp, x, (n_in, n_out) = case["tp"], case["x"], case["weight"]
        assert n_in != n_out and n_in % tp == n_out % tp == 0 and n_in // tp != n_out // tp
        tokens = torch.Size(x).numel() // n_in
        assert n_in * n_out > max(tokens * n_in, tokens * n_out // tp, n_in * n_out // tp)
        assert n_in * n_out > max(tokens * n_in // tp, tokens * n_out)
        assert cases.linear(case).x.is_contiguous() == case["contiguous"]
    tps = [case["tp"] for case in cases.linear_cases()]
    assert len(set(tps)) == len(tps)
    for case in cases.block_cases():
        assert case["heads"] % case["tp"] == case["kv_heads"] % case["tp"] == 0
        assert case["heads"] * case["head_dim"] != case["hidden"] != case["ffn"]
        assert case["batch"] * case["tokens"] * case["hidden"] % case["tp"] == 0
    assert {case["dtype"] for case in cases.block_cases()} == {"float32", "float64"}
    groups = [case["heads"] // case["kv_heads"] for case in cases.block_cases()]
    assert 1 in groups and max(groups) > 1
    assert any(case["kv_heads"] > case["tp"] for case in cases.block_cases())


def test_the_reference_block_is_the_block_of_the_lesson() -> None:
    kernel, solution = Kernel(), load("solutions", LESSON, "zh")
    kernel.run(cell(solution, "setup").source)
    (source,) = [c.source for c in code_cells(solution) if c.source.startswith("def whole_block")]
    kernel.run(source)
    for case in cases.block_cases():
        x, weights = cases.block_input(case)[0], cases.block_weights(case)
        heads = case["heads"], case["kv_heads"]
        mine, theirs = (
            cases.reference_block(x, weights, *heads),
            kernel["whole_block"](x, weights, *heads),
        )
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_the_solution_has_no_finding() -> None:
    for function, run, findings, some in (
        (column_parallel, run_column, column_findings, cases.linear_cases()),
        (row_parallel, run_row, row_findings, cases.linear_cases()),
        (parallel_block, run_block, block_findings, cases.block_cases()),
    ):
        for case in some:
            found = list(findings(run(function, case)))
            assert [one for one in found if one[1] != one[2]] == []
            assert len(found) >= 20


def test_one_rank_is_a_group_too() -> None:
    case = cases.block_cases()[0]
    weights = {name: Stored(whole) for name, whole in cases.block_weights(case).items()}
    x, _ = cases.block_input(case)
    heads = case["heads"], case["kv_heads"]
    ((y, sent),) = run_ranks(1, parallel_block, x, weights, *heads).results
    assert torch.allclose(y, cases.reference_block(x, cases.block_weights(case), *heads))
    assert sent == 0


# ------------------------------------------------------------------------------------------ stored
def test_only_what_is_read_takes_memory_and_gets_a_gradient() -> None:
    def rank(comm: object, x: torch.Tensor, weight: Stored) -> torch.Tensor:
        return (x @ weight[:, 1:3]).sum()

    weight = Stored(torch.randn(400, 5))
    run = run_ranks(1, rank, torch.ones(2, 400, requires_grad=True), PerRank([weight]))
    run.backward(run.results, [torch.ones(())])
    assert run.peaks[0].elements == 800
    assert block_words(weight.covered()) == "[:, 1:3]"
    assert torch.equal(weight.gradient().nonzero()[:, 1].unique(), torch.tensor([1, 2]))
    with pytest.raises(TypeError, match="400, 5"):
        torch.ones(2, 400) @ weight
    with pytest.raises(TypeError, match="400, 5"):
        list(weight)


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ((slice(None), slice(4, 8)), "[:, 4:8]"),
        ((slice(0, 2), slice(None)), "[0:2, :]"),
        ((slice(None), [0, 1, 4]), "[:, 0:2+4:5]"),
        ((slice(None), slice(0, 0)), "–"),
        (torch.eye(6, 8).bool(), "6/48"),
    ],
)
def test_blocks_are_worded_as_one_would_index_them(index: object, words: str) -> None:
    mask = torch.zeros(6, 8, dtype=torch.bool)
    mask[index] = True
    assert block_words(mask) == words


# ----------------------------------------------------------------------------------------- figures
@pytest.fixture
def figure(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(plt, "show", lambda: None)
    yield plt
    plt.close("all")


def test_draw_owners_colours_every_part_by_its_rank(figure: Any) -> None:
    draw_owners(heads=8, kv_heads=4, tp=4)
    axes = figure.gcf().axes[0]
    shade = {}
    for patch in axes.patches:
        if isinstance(patch, Rectangle):
            middle = (patch.get_x() + patch.get_width() / 2, patch.get_y() + patch.get_height() / 2)
            shade[middle] = patch.get_facecolor()
    for text in axes.texts:
        word = text.get_text()
        if word[0] in "QKV" and word[1:].isdigit():
            rank = int(word[1:]) // (2 if word[0] == "Q" else 1)
            assert same_color(shade[text.get_position()], SHADES[rank])


def test_draw_ring_sends_each_rank_what_it_can_have(figure: Any) -> None:
    """Piece by piece: a sum is complete before it is passed on, and everybody ends with all."""
    draw_ring()
    texts = figure.gcf().axes[0].texts
    steps = [text.get_text() for text in texts if text.get_text().startswith("step")]
    pieces = [text for text in texts if text.get_text().startswith("piece")]
    assert len(steps) == 6 and len(pieces) == 24
    sent = {
        (int(t.get_position()[0]), 3 - int(t.get_position()[1])): int(t.get_text()[-1])
        for t in pieces
    }
    held = [[{rank} for _ in range(4)] for rank in range(4)]
    for step in range(6):
        assert sorted(sent[step, rank] for rank in range(4)) == [0, 1, 2, 3]
        before = [[set(piece) for piece in row] for row in held]
        for rank in range(4):
            piece = sent[step, rank]
            added = before[rank][piece]
            # Never the same summand twice: in the second half the sum replaces what was there.
            assert step >= 3 or not added & before[(rank + 1) % 4][piece]
            assert step < 3 or len(added) == 4
            held[(rank + 1) % 4][piece] |= added
    assert all(len(piece) == 4 for row in held for piece in row)


def test_draw_layer_traffic_shows_the_bytes(figure: Any) -> None:
    rows = [
        {"name": name, "tp": tp, "sent": sent, "compute_s": 1e-3}
        for name, tp, sent in (("a", 1, 0), ("a", 2, 3e6), ("b", 1, 0), ("b", 2, 9e6))
    ]
    draw_layer_traffic(rows)
    left, right = figure.gcf().axes
    assert [list(line.get_ydata()) for line in left.lines] == [[0, 3], [0, 9]]
    fast, slow = (line.get_ydata()[0] for line in right.lines)
    assert fast == pytest.approx(100 * 2e-5 / 1.02e-3) and slow == pytest.approx(
        100 * 18e-5 / 1.18e-3
    )


# ------------------------------------------------------------------------------------------- facts
def test_the_published_sizes_give_the_published_models() -> None:
    """arXiv 2407.21783 Table 3; vocabulary 128,256, embedding and head untied."""
    for row, billions in zip(llama3(), (8.0, 70.6, 405.9), strict=True):
        hidden, ffn = row["hidden"], row["ffn"]
        heads, kv = row["num_heads"] * row["head_dim"], row["num_kv_heads"] * row["head_dim"]
        layer = 2 * hidden * heads + 2 * hidden * kv + 3 * hidden * ffn + 2 * hidden
        total = row["num_layers"] * layer + 2 * 128_256 * hidden + hidden
        assert total / 1e9 == pytest.approx(billions, abs=0.06)
    assert layer / 1e9 == pytest.approx(3.2, abs=0.05)  # as the lesson's first paragraph says
    assert 2 * layer / 1e9 == pytest.approx(6.4, abs=0.05)
    assert 18 * layer / 1e9 == pytest.approx(57, abs=0.5)


def test_what_was_not_read_says_how_to_read_it() -> None:
    x, norm, weight = torch.ones(2, 4), Stored(torch.ones(4)), Stored(torch.ones(4, 6))
    for use in (
        lambda: F.rms_norm(x, (4,), norm), lambda: x + norm, lambda: norm - x,
        lambda: torch.cat([x[0], norm]),
    ):  # fmt: skip
        with pytest.raises(TypeError, match=r"\(4,\).*\[:\].*\[0:2\]"):
            use()
    with pytest.raises(AttributeError, match=r"\(4, 6\).*\[:\].*\[:, 0:2\]"):
        weight.t()


# ---------------------------------------------------------------------------------------- notebook
@pytest.mark.parametrize("language", LANGUAGES)
def test_open_todos_leave_one_line_in_every_cell_that_uses_them(language: str) -> None:
    kernel, waiting = Kernel(), []
    for item in code_cells(load("notebooks", LESSON, language)):
        if not item.id.startswith("check-"):
            printed = kernel.run(item.source)
            if "⏳" in printed:
                waiting.append(item)
                assert printed.startswith("⏳ ") and printed.count("\n") == 1
    plt.close("all")
    named = [item for item in waiting if "if ready(" in item.source]
    assert len(named) == len(waiting) == 5


def test_no_exercise_multiplies_what_it_has_entered() -> None:
    """Nor counts the bytes of a block: both are what the TODOs ask for."""
    for folder in ("notebooks", "colab"):
        sources = [c.source for c in code_cells(load(folder, LESSON, "en"))]
        for source in sources:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                    assert "enter" not in ast.unparse(node)
        assert "(comm.size - 1)" not in "".join(sources)


def test_no_cell_is_marked_as_allowed_to_fail() -> None:
    for folder in ("notebooks", "solutions", "colab"):
        for language in LANGUAGES:
            for item in load(folder, LESSON, language).cells:
                assert "NBVAL_" not in item.source
                assert not {"raises-exception", "nbval-skip"} & set(item.metadata.get("tags", []))


# ------------------------------------------------------------------------------------------- proof
@pytest.mark.slow
@pytest.mark.xdist_group("torchrun")
def test_the_proof_agrees_with_dtensor_and_one_process() -> None:
    """The answers as a learner's notebook holds them: in a module of their own."""
    kernel, solution = Kernel(), load("solutions", LESSON, "en")
    for name in ("setup", "todo-1", "todo-2", "todo-3"):
        source, file = cell(solution, name).source, f"<{name}>"
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        kernel.run(source, file)
    functions = [kernel[name] for name in NAMES]
    report = run_proof(True, "parlab.lesson.prove_tensor", functions)
    assert report
    assert report["operations"] == {
        "yours": [2, 2], "DTensor": [2, 2], "DTensor, input not prepared": [2, 5]
    }  # fmt: skip
    assert [row["layer"] for row in report["rows"]] == ["linear pair"] * 2 + ["block"] * 2
    for row, other in pairwise(report["rows"]):
        assert row["against"] != other["against"]
    worst = max(row[key] for row in report["rows"] for key in ("y", "x.grad", "weights.grad"))
    assert worst < 1e-12
