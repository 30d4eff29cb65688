"""Text to token batches, the same on every rank."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

BYTES = "bytes"


def tokenize(text: str, tokenizer: str, revision: str | None, vocabulary: int) -> Tensor:
    """The text as token ids [n]: its UTF-8 bytes, or by a tokenizer of the hub.

    Raises:
        ValueError: an id does not fit into the model's vocabulary.
    """
    if tokenizer == BYTES:
        ids = list(text.encode("utf-8"))
    else:
        from transformers import AutoTokenizer

        ids = AutoTokenizer.from_pretrained(tokenizer, revision=revision)(text)["input_ids"]
    tokens = torch.tensor(ids, dtype=torch.long)
    if tokens.numel() < 2 or int(tokens.max()) >= vocabulary:
        raise ValueError(
            f"{tokens.numel()} tokens with ids up to {max(ids, default=0)}: "
            f"at least 2 with ids below vocabulary = {vocabulary} are needed"
        )
    return tokens


def read_text(path: str) -> str:
    """The file's text; a byte-order mark at its start is none of it."""
    return Path(path).read_text(encoding="utf-8-sig")


class Batches:
    """Batch n of a text: `count` pieces of sequence + 1 tokens, drawn by seed and n alone."""

    def __init__(self, tokens: Tensor, count: int, sequence: int, seed: int) -> None:
        self.count, self.sequence, self.seed = count, sequence, seed
        repeats = -(-(sequence + 2) // tokens.numel())
        self.tokens = tokens.repeat(repeats)

    def __call__(self, number: int) -> tuple[Tensor, Tensor]:
        """ids and targets [count, sequence]; a target is the token after its id."""
        generator = torch.Generator().manual_seed(self.seed * 1_000_003 + number)
        last = self.tokens.numel() - self.sequence - 1
        starts = torch.randint(0, last + 1, (self.count, 1), generator=generator)
        pieces = self.tokens[starts + torch.arange(self.sequence + 1)]
        return pieces[:, :-1].contiguous(), pieces[:, 1:].contiguous()
