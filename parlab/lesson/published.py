"""Layouts that real training runs have published, as rows of plain numbers."""

from typing import Any

_MEGATRON_COLUMNS = (
    "params_b", "num_heads", "hidden", "num_layers", "tp", "pp", "gpus", "global_batch",
    "tflops", "peak_percent",
)  # fmt: skip
_MEGATRON_ROWS = (
    (1.7, 24, 2304, 24, 1, 1, 32, 512, 137, 44),
    (3.6, 32, 3072, 30, 2, 1, 64, 512, 138, 44),
    (7.5, 32, 4096, 36, 4, 1, 128, 512, 142, 46),
    (18.4, 48, 6144, 40, 8, 1, 256, 1024, 135, 43),
    (39.1, 64, 8192, 48, 8, 2, 512, 1536, 138, 44),
    (76.1, 80, 10240, 60, 8, 4, 1024, 1792, 140, 45),
    (145.6, 96, 12288, 80, 8, 8, 1536, 2304, 148, 47),
    (310.1, 128, 16384, 96, 8, 16, 1920, 2160, 155, 50),
    (529.6, 128, 20480, 105, 8, 35, 2520, 2520, 163, 52),
    (1008.0, 160, 25600, 128, 8, 64, 3072, 3072, 163, 52),
)


def megatron() -> list[dict[str, Any]]:
    """The ten runs of Megatron-LM (Narayanan et al. 2021, arXiv 2104.04473, Table 1).

    Sequence length 2,048, no context parallelism; ``dp`` is ``gpus / (tp · pp)``.
    """
    table = []
    for numbers in _MEGATRON_ROWS:
        row = dict(zip(_MEGATRON_COLUMNS, numbers, strict=True))
        row |= {"cp": 1, "sequence_length": 2048, "dp": row["gpus"] // (row["tp"] * row["pp"])}
        table.append({"name": f"Megatron {row['params_b']:g}B", **row})
    return table


def llama3_405b() -> list[dict[str, Any]]:
    """The three layouts of Llama 3 405B (Meta 2024, arXiv 2407.21783, Tables 3 and 4)."""
    model = {"num_layers": 126, "num_heads": 128, "num_kv_heads": 8, "tp": 8, "pp": 16}
    model |= {"hidden": 16_384}
    rows = ((8_192, 1, 64, 8_192), (16_384, 1, 128, 8_192), (16_384, 16, 8, 131_072))
    return [
        {"name": f"Llama 3 405B, {length // 1024}K", **model}
        | {"gpus": gpus, "cp": cp, "dp": dp, "sequence_length": length}
        for gpus, cp, dp, length in rows
    ]


def korthikanti() -> list[dict[str, Any]]:
    """Three pipelines of Korthikanti et al. 2022 (arXiv 2205.05198): one replica, no DP.

    Sequence length 2,048; ``chunks`` is the number of stages a rank holds (interleaved 1F1B);
    ``batch`` counts sequences, ``micro_batch`` those of one microbatch.
    """
    names = ("name", "hidden", "num_layers", "tp", "pp", "chunks", "batch", "micro_batch")
    rows = (
        ("175B", 12288, 96, 8, 8, 3, 64, 1),
        ("530B", 20480, 105, 8, 35, 3, 280, 1),
        ("1T", 25600, 128, 8, 64, 1, 512, 1),
    )
    return [{**dict(zip(names, row, strict=True)), "sequence_length": 2048} for row in rows]


def llama3() -> list[dict[str, Any]]:
    """The three models of Llama 3 (Meta 2024, arXiv 2407.21783, Table 3); a head is 128 wide."""
    columns = ("name", "num_layers", "hidden", "ffn", "num_heads", "num_kv_heads")
    rows = (
        ("Llama 3 8B", 32, 4_096, 14_336, 32, 8),
        ("Llama 3 70B", 80, 8_192, 28_672, 64, 8),
        ("Llama 3 405B", 126, 16_384, 53_248, 128, 8),
    )
    return [dict(zip(columns, row, strict=True)) | {"head_dim": 128} for row in rows]


def layout(row: dict[str, Any]) -> dict[str, Any]:
    """The config that ``validate_mesh_layout`` reads, for one replica: world = GPUs / DP."""
    keys = ("pp", "tp", "cp", "num_layers", "num_heads", "num_kv_heads", "sequence_length")
    return {"world_size": row["gpus"] // row["dp"], **{key: row[key] for key in keys if key in row}}
