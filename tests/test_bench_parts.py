"""The rank side's parts that need no second process."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from parlab.bench import kernels
from parlab.bench.axes import one_process
from parlab.bench.checkpoint import locate, reader
from parlab.bench.context_parallel import ContextParallel
from parlab.bench.correctness import _ratio
from parlab.bench.data import Batches, read_text, tokenize
from parlab.bench.head_tail import head_tail
from parlab.bench.model import Decoder, ModelConfig
from parlab.bench.optimizer import AdamW
from parlab.bench.parameters import load, random_weights, shards
from parlab.bench.room import parameters
from parlab.bench.split import costs, owners, parts
from parlab.bench.training import Plan, Trainer
from parlab.bench.workload import load as load_workload
from parlab.lesson.files import write_whole

TINY = Path(__file__).resolve().parent.parent / "benchmarks" / "workloads" / "tiny-cpu.toml"
CONFIG = ModelConfig(8, 256, 8, 4, 32, 688, 4096)


def test_owners_follow_the_schedule():
    assert owners("1F1B", 4, 1) == [0, 1, 2, 3]
    assert owners("Interleaved1F1B", 2, 3) == [0, 1, 0, 1, 0, 1]
    assert owners("ZBVZeroBubble", 3, 1) == [0, 1, 2, 2, 1, 0]
    assert owners("GPipe", 1, 2) == [0]


def test_parts_cover_every_layer_once():
    for split in ("even", "cost"):
        for stages in (1, 2, 3, 8):
            found = parts(CONFIG, stages, split, 256)
            assert [i for p in found for i in range(p.first, p.stop)] == list(range(8))
            assert [p.embedding for p in found] == [True] + [False] * (stages - 1)
            assert [p.head for p in found] == [False] * (stages - 1) + [True]


def test_a_dear_head_takes_layers_from_its_stage():
    layer, head = costs(CONFIG, 256)
    assert head / layer == pytest.approx(1.326, abs=0.01)
    assert [p.stop - p.first for p in parts(CONFIG, 2, "cost", 256)] == [5, 3]
    assert [p.stop - p.first for p in parts(CONFIG, 2, "even", 256)] == [4, 4]


def test_more_stages_than_layers_are_refused():
    with pytest.raises(ValueError, match="9 stages for 8 layers"):
        parts(CONFIG, 9, "even", 256)


def test_head_tail_gives_everyone_the_same_share_of_the_triangle():
    held = [head_tail(24, 3, rank) for rank in range(3)]
    assert torch.equal(torch.cat(held).sort().values, torch.arange(24))
    assert len({int((positions + 1).sum()) for positions in held}) == 1
    with pytest.raises(ValueError, match="20 is not a multiple of 2 · cp = 6"):
        head_tail(20, 3, 0)
    with pytest.raises(ValueError, match="'zigzag' is none of allgather, ring"):
        ContextParallel(None, "zigzag")


@pytest.mark.parametrize("sequence", [1, 7, 15])
def test_a_sequence_that_nobody_cuts_may_have_any_length(sequence):
    axes = one_process(torch.device("cpu"))
    config = ModelConfig(2, 16, 4, 2, 4, 24, 256)
    trainer = Trainer(config, Plan(2, 1, sequence), axes, random_weights(1))
    assert torch.equal(trainer.positions, torch.arange(sequence))
    ids, targets = Batches(tokenize("any text", "bytes", None, 256), 2, sequence, 0)(0)
    assert 5 < float(trainer.step(ids, targets)) < 7  # about ln 256


@pytest.mark.parametrize("causal", [True, False])
def test_blocks_are_the_same_without_the_cpu_kernel(causal):
    generator = torch.Generator().manual_seed(2)
    q, grad = (torch.randn(2, 8, 16, 8, generator=generator) for _ in range(2))
    k, v = (torch.randn(2, 4, 16, 8, generator=generator) for _ in range(2))
    fast, plain = kernels.block_forward(q, k, v, causal), kernels._plain_forward(q, k, v, causal)
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        kernels.block_backward(grad, q, k, v, *fast, causal),
        kernels._plain_backward(grad, q, k, v, *plain, causal),
        rtol=1e-4, atol=1e-5,
    )  # fmt: skip


def test_bytes_fit_or_are_refused():
    assert tokenize("é!", "bytes", None, 256).tolist() == [195, 169, 33]
    with pytest.raises(ValueError, match="up to 195: .* below vocabulary = 128"):
        tokenize("é!", "bytes", None, 128)
    with pytest.raises(ValueError, match="0 tokens"):
        tokenize("", "bytes", None, 128)


def test_a_byte_order_mark_is_no_text(tmp_path):
    (tmp_path / "text").write_bytes(b"\xef\xbb\xbfab")
    assert read_text(str(tmp_path / "text")) == "ab"


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("qk_norm", [True, False])
def test_parameters_are_counted_without_a_model(tied, qk_norm):
    model = load_workload(TINY).model
    model = dataclasses.replace(model, tied_embeddings=tied, qk_norm=qk_norm)
    with torch.device("meta"):
        whole = Decoder(ModelConfig.from_dict(dataclasses.asdict(model)), torch.arange(1))
    assert parameters(model) == sum(p.numel() for p in whole.parameters())


def test_batches_depend_on_seed_and_number_alone():
    tokens = torch.arange(50)
    one, two = Batches(tokens, 3, 20, 4), Batches(tokens, 3, 20, 4)
    one(7)
    ids, targets = one(2)
    assert torch.equal(ids, two(2)[0]) and torch.equal(targets[:, :-1], ids[:, 1:])
    assert not torch.equal(ids, one(3)[0])
    assert Batches(torch.arange(2), 1, 9, 0)(0)[0].shape == (1, 9)  # a text shorter than a piece


def test_checkpoint_is_read_by_name(tmp_path):
    safetensors = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    config = ModelConfig(2, 16, 4, 2, 4, 24, 32, qk_norm=True)
    source, target = (Decoder(config, torch.arange(4)) for _ in range(2))
    with torch.no_grad():
        load(source, 0, random_weights(5))
        state = {shard.name: shard.value.clone() for shard in shards(source)}
        first = dict(list(state.items())[:5])
        rest = dict(list(state.items())[5:])
        safetensors.save_file(first, tmp_path / "a.safetensors")
        safetensors.save_file(rest, tmp_path / "b.safetensors")
        index = {n: "a.safetensors" if n in first else "b.safetensors" for n in state}
        (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
        load(target, 0, reader(locate(str(tmp_path), None)))
    for ours, theirs in zip(shards(target), shards(source), strict=True):
        assert torch.equal(ours.value, theirs.value), ours.name
    with pytest.raises(FileNotFoundError, match="neither"):
        reader(tmp_path / "nowhere")


def test_wrong_shapes_in_a_checkpoint_are_named():
    decoder = Decoder(ModelConfig(1, 16, 4, 2, 4, 24, 32), torch.arange(4))
    with pytest.raises(ValueError, match=r"embed_tokens.weight is \(3,\) .* \(32, 16\) wanted"):
        load(decoder, 0, lambda name, shape: torch.zeros(3))


def test_shards_of_all_ranks_are_the_whole():
    """Two TP ranks' pieces, put together, are what one process holds."""

    def piece(index: int) -> dict[str, torch.Tensor]:
        decoder = Decoder(CONFIG, torch.arange(4))
        return {
            s.name: (s.cut(s.value, index, 2), s.dim) for s in shards(decoder_filled(decoder))
        }  # fmt: skip

    def decoder_filled(decoder: Decoder) -> Decoder:
        with torch.no_grad():
            load(decoder, 0, random_weights(1))
        return decoder

    whole = {s.name: s.value for s in shards(decoder_filled(Decoder(CONFIG, torch.arange(4))))}
    for (name, (left, dim)), (right, _) in zip(piece(0).items(), piece(1).values(), strict=True):
        joined = left if dim is None else torch.cat((left, right), dim=dim)
        assert torch.equal(joined, whole[name]), name


def test_adamw_is_torchs():
    generator = torch.Generator().manual_seed(6)
    ours = [torch.nn.Parameter(torch.randn(5, 3, generator=generator)) for _ in range(3)]
    theirs = [torch.nn.Parameter(p.detach().clone()) for p in ours]
    one, two = AdamW(ours, 1e-2), torch.optim.AdamW(theirs, lr=1e-2, fused=True)
    for step in range(4):
        one.zero_grad()
        two.zero_grad()
        for index, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if index != step:  # one of them has no gradient
                a.grad = torch.randn(5, 3, generator=generator)
                b.grad = a.grad.clone()
        one.step()
        two.step()
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_errors_are_relative():
    assert _ratio(4.0, 100.0) == pytest.approx(0.2)
    assert _ratio(0.0, 0.0) == 0.0 and _ratio(1.0, 0.0) == float("inf")


def test_a_file_is_whole_or_not_there(tmp_path):
    def half(path):
        path.write_text("half")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_whole(tmp_path / "x.json", half)
    assert list(tmp_path.iterdir()) == []


def test_the_rank_program_starts_without_torch_distributed():
    """So that an old torch is refused by its one line and not by an import error."""
    code = (
        "import sys, parlab.bench.rank; "
        "print('torch.distributed.pipelining' in sys.modules, 'parlab.bench.trace' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
