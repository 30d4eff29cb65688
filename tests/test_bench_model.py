"""The decoder against code that nobody here wrote: transformers' Llama and Qwen3."""

from __future__ import annotations

import pytest
import torch

from parlab.bench.model import Decoder, ModelConfig
from parlab.bench.parameters import load, shards

CASES = [
    (family, tied, heads)
    for family in ("llama", "qwen3")
    for tied in (False, True)
    for heads in ((4, 2, 16), (6, 6, 8))
]


def _theirs(transformers, family, tied, heads):
    a, k, d = heads
    sizes = dict(
        vocab_size=96,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=a,
        num_key_value_heads=k,
        head_dim=d,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
        max_position_embeddings=64,
        tie_word_embeddings=tied,
        attn_implementation="eager",
    )
    if family == "llama":
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes))
    return transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**sizes))


def _ours(family, tied, heads, length):
    a, k, d = heads
    config = ModelConfig(
        num_layers=3,
        hidden=48,
        num_heads=a,
        num_kv_heads=k,
        head_dim=d,
        ffn=80,
        vocabulary=96,
        rope_theta=5000.0,
        norm_eps=1e-5,
        qk_norm=family == "qwen3",
        tied_embeddings=tied,
    )
    return Decoder(config, torch.arange(length))


def _disturb(model):
    """Norms start at one; random ones prove that each is applied, and where."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))


@pytest.mark.parametrize(("family", "tied", "heads"), CASES)
def test_logits_and_gradients_equal_transformers(family, tied, heads, tmp_path):
    transformers = pytest.importorskip("transformers", reason="needs transformers to compare with")
    safetensors = pytest.importorskip("safetensors.torch", reason="needs safetensors")
    theirs = _theirs(transformers, family, tied, heads)
    _disturb(theirs)
    theirs.save_pretrained(tmp_path)
    saved = safetensors.load_file(tmp_path / "model.safetensors")
    ours = _ours(family, tied, heads, 21)
    with torch.no_grad():
        load(ours, 0, lambda name, shape: saved[name])
    assert {shard.name for shard in shards(ours)} == set(saved)

    tokens = torch.randint(0, 96, (2, 22), generator=torch.Generator().manual_seed(1))
    ids, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
    logits = ours(ids)
    expected = theirs(ids).logits
    torch.testing.assert_close(logits, expected, rtol=1e-5, atol=2e-5)

    ours.operations.loss(logits, targets).backward()
    flat = expected.flatten(0, 1)
    torch.nn.functional.cross_entropy(flat, targets.flatten(), reduction="sum").backward()
    gradients = dict(theirs.named_parameters())
    for shard in shards(ours):
        reference = gradients[shard.name].grad
        error = (shard.gradient - reference).norm() / reference.norm()
        assert error <= 1e-5, f"{shard.name}: {error:.1e}"
