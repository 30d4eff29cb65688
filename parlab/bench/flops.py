"""Model FLOPs and what share of a device's peak they are (MFU)."""

from parlab.bench.workload import Model

# Dense bfloat16 peak in FLOP/s by a part of the name, from the vendor's data sheets; the first
# that fits counts. (The SXM parts; sheets that give figures "with sparsity" are halved.)
PEAKS = (
    ("H100 PCIe", 756e12),
    ("H100 NVL", 835e12),
    ("H200", 989e12),
    ("H100", 989e12),
    ("H800", 989e12),
    ("H20", 148e12),
    ("B200", 2250e12),
    ("A100", 312e12),
    ("A800", 312e12),
    ("L40S", 362e12),
    ("L4", 121e12),
    ("A10", 125e12),
    ("RTX 4090", 165e12),
)


def per_token(model: Model, sequence_length: int) -> int:
    """FLOPs of forward and backward for one token.

    Six for each weight that multiplies (embedding look-up excluded, head included), and
    12 · layers · heads · head_dim · s for attention, which counts the masked half too. With
    8h/3 for the FFN this is 72·L·h²·(1 + s/(6h) + V/(12·h·L)) of arXiv 2104.04473 §3.2 without
    recomputation.
    """
    width = model.num_heads * model.head_dim
    attention = 2 * model.hidden * (width + model.num_kv_heads * model.head_dim)
    weights = model.num_layers * (attention + 3 * model.hidden * model.ffn)
    weights += model.hidden * model.vocabulary
    return 6 * weights + 12 * model.num_layers * width * sequence_length


def mfu(
    tokens_per_s: float, flops_per_token: int, gpu: str | None, dtype: str, ranks: int
) -> tuple[float | None, str]:
    """Model FLOPs a second over the peak of all devices, or None and why not."""
    if gpu is None:
        return None, "ran on CPU"
    if dtype != "bfloat16":
        return None, f"the peaks are known for bfloat16, this ran in {dtype}"
    peak = next((peak for name, peak in PEAKS if name in gpu), None)
    if peak is None:
        return None, f"the peak of {gpu} is not known"
    return tokens_per_s * flops_per_token / (ranks * peak), ""
