"""The tables of a workload's TOML, field by field, each with what it may hold."""

from dataclasses import dataclass
from typing import Any

from parlab.bench.fields import choice, flag, integer, line, number

SCHEDULES = ("1F1B", "GPipe", "Interleaved1F1B", "InterleavedZeroBubble", "ZBVZeroBubble")
LONGEST_PATH = 1024


@dataclass(frozen=True)
class Model:
    """The decoder: Hugging Face's config fields under shorter names."""

    id: str = line()
    revision: str | None = line(optional=True)
    weights: str = choice("random", "hub")
    num_layers: int = integer(1, 1024)
    hidden: int = integer(1, 1 << 17)
    num_heads: int = integer(1, 1024)
    num_kv_heads: int = integer(1, 1024)
    head_dim: int = integer(1, 1024)
    ffn: int = integer(1, 1 << 19)
    vocabulary: int = integer(2, 1 << 20)
    rope_theta: float = number(1.0, 1e9)
    norm_eps: float = number(1e-12, 1e-2)
    qk_norm: bool = flag()
    tied_embeddings: bool = flag()
    init_seed: int = integer(0, 2**31 - 1)


@dataclass(frozen=True)
class Tokenizer:
    """``bytes`` (one token a byte of UTF-8, no file) or a tokenizer on the hub."""

    id: str = line()
    revision: str | None = line(optional=True)


@dataclass(frozen=True)
class Data:
    """The text that is trained on; in the TOML its path counts from the TOML's folder."""

    text: str = line(longest=LONGEST_PATH)


@dataclass(frozen=True)
class Batch:
    """Sizes in sequences and tokens."""

    global_batch: int = integer(1, 1 << 20)
    micro_batch: int = integer(1, 1 << 20)
    sequence_length: int = integer(1, 1 << 22)


@dataclass(frozen=True)
class Run:
    """How a group runs."""

    world_size: int = integer(1, 1 << 16)
    dtype: str = choice("float32", "bfloat16")
    schedule: str = choice(*SCHEDULES)
    chunks_per_rank: int = integer(1, 64)
    split: str = choice("even", "cost")
    cp_method: str = choice("allgather", "ring")
    warmup: int = integer(1, 1000)
    repeats: int = integer(1, 1000)
    seed: int = integer(0, 2**31 - 1)
    learning_rate: float = number(1e-9, 10.0)
    timeout_s: float = number(1.0, 7 * 86400.0)
    topology: str = line()


@dataclass(frozen=True)
class Limits:
    """The gates' limits: MB (10⁶ bytes) a rank, and shares of a step."""

    memory_mb: float = number(1.0, 1e9)
    bubble_ratio: float = number(0.0, 1.0)
    communication_ratio: float = number(0.0, 1.0)


TABLES: dict[str, type[Any]] = {
    "model": Model, "tokenizer": Tokenizer, "data": Data, "batch": Batch, "run": Run,
    "limits": Limits,
}  # fmt: skip
