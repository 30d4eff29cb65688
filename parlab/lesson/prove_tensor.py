"""The learner's tensor parallelism in real processes, against torch's DTensor and one process.

The same float64 layers three times: whole, cut by `parallelize_module`, and by the learner's
functions on this rank's blocks. Compared are outputs and every gradient, and collectives counted.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from parlab.lesson.rank_processes import ProcessCommunicator
from parlab.lesson.stored import Stored

CLOSE = 1e-10
HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN = 96, 16, 8, 8, 160
CUTS = {"wq": 1, "wk": 1, "wv": 1, "wo": 0, "w_gate": 1, "w_up": 1, "w_down": 0}


class Attention(nn.Module):  # type: ignore[misc]
    """Causal grouped-query attention on however many heads the projections give."""

    def __init__(self) -> None:
        super().__init__()
        self.wq = nn.Linear(HIDDEN, HEADS * HEAD_DIM, bias=False)
        self.wk = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.wv = nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False)
        self.wo = nn.Linear(HEADS * HEAD_DIM, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            product(x).unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)
            for product in (self.wq, self.wk, self.wv)
        )
        k, v = (part.repeat_interleave(HEADS // KV_HEADS, dim=1) for part in (k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):  # type: ignore[misc]
    """SwiGLU."""

    def __init__(self) -> None:
        super().__init__()
        self.w_gate = nn.Linear(HIDDEN, FFN, bias=False)
        self.w_up = nn.Linear(HIDDEN, FFN, bias=False)
        self.w_down = nn.Linear(FFN, HIDDEN, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.w_down(F.silu(self.w_gate(x)) * self.w_up(x))


class Block(nn.Module):  # type: ignore[misc]
    """A decoder block."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(HIDDEN, eps=None), nn.RMSNorm(HIDDEN, eps=None)
        self.attention, self.mlp = Attention(), MLP()

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def prove(
    learner: ModuleType, rank: int, world: int, say: Callable[[str], None], tokens: int = 48
) -> dict[str, Any]:
    """Two linear layers in a row with biases, then a whole block.

    Returns:
        ``rows``: for each layer and yardstick the largest differences of y, x.grad and the
        weights' gradients on any rank; ``operations``: all-reduces forward and backward of the
        block, of the learner's and of DTensor with and without a prepared input.

    Raises:
        AssertionError: something differs by more than 1e-10, or the block's all-reduces do.
    """
    torch.set_default_dtype(torch.float64)
    mesh = init_device_mesh("cpu", (world,))
    rows = _linear(learner, rank, world, mesh, tokens)
    for row in rows:
        say(_line(row))
    comm = ProcessCommunicator()
    block_rows, operations = _block(learner, comm, mesh, tokens)
    for row in block_rows:
        say(_line(row))
    return {"rows": rows + block_rows, "operations": operations, "ranks": world}


def _linear(
    learner: ModuleType, rank: int, world: int, mesh: Any, tokens: int
) -> list[dict[str, Any]]:
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    def build() -> nn.Sequential:
        torch.manual_seed(1)
        return nn.Sequential(nn.Linear(HIDDEN, FFN), nn.GELU(), nn.Linear(FFN, HIDDEN))

    x, gradient = torch.randn(2, 2, tokens, HIDDEN, generator=torch.Generator().manual_seed(2))
    whole, cut = build(), build()
    parallelize_module(cut, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    comm = ProcessCommunicator()
    up, down = whole[0], whole[2]
    stored = {
        "up": Stored(up.weight.T), "up.bias": Stored(up.bias), "down": Stored(down.weight.T),
        "down.bias": Stored(down.bias),
    }  # fmt: skip
    own = x.clone().requires_grad_()
    middle = F.gelu(learner.column_parallel(comm, own, stored["up"], stored["up.bias"]))
    y = learner.row_parallel(comm, middle, stored["down"], stored["down.bias"])
    y.backward(gradient)
    found = {"y": y.detach(), "x.grad": own.grad, **{k: s.gradient() for k, s in stored.items()}}
    rows = []
    for name, module in (("one process", whole), ("DTensor", cut)):
        got, x_grad = _backward(module, x, gradient)
        named = {
            "up": module[0].weight.grad, "up.bias": module[0].bias.grad,
            "down": module[2].weight.grad, "down.bias": module[2].bias.grad,
        }  # fmt: skip
        expected = {key: _own(value, rank, world, key) for key, value in named.items()}
        rows.append(_row("linear pair", name, found, {"y": got, "x.grad": x_grad, **expected}))
    return rows


def _own(gradient: Any, rank: int, world: int, name: str) -> Tensor:
    """A layer's gradient [out, in] as [in, out], zero outside of this rank's block."""
    full = _full(gradient)
    full = full.T if full.dim() == 2 else full
    if name == "down.bias":
        return full
    dim = 0 if name in ("down", "up.bias") else CUTS.get(name, 1)
    mask = torch.zeros_like(full)
    mask.tensor_split(world, dim)[rank].fill_(1)
    return full * mask


def _full(value: Any) -> Tensor:
    gathered: Tensor = value.full_tensor() if hasattr(value, "full_tensor") else value
    return gathered


def _backward(module: nn.Module, x: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    own = x.clone().requires_grad_()
    y = _full(module(own))
    y.backward(gradient)
    assert own.grad is not None
    return y.detach(), _full(own.grad)


def _block(
    learner: ModuleType, comm: ProcessCommunicator, mesh: Any, tokens: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    torch.manual_seed(3)
    whole = Block()
    weights = {name: _parameter(whole, name) for name in ("norm1", *CUTS, "norm2")}
    stored = {
        name: Stored(value.T if value.dim() == 2 else value) for name, value in weights.items()
    }
    x, gradient = torch.randn(2, 2, tokens, HIDDEN, generator=torch.Generator().manual_seed(4))
    own = x.clone().requires_grad_()
    y, sent = learner.parallel_block(comm, own, stored, HEADS, KV_HEADS)
    forward = len(comm.log)
    y.backward(gradient)
    counted = sum(record.sent for record in comm.log)
    assert sent == counted, f"rank {comm.rank}: sent = {sent}, but the log counts {counted}"
    operations = {"yours": [forward, len(comm.log) - forward]}
    found = {"y": y.detach(), "x.grad": own.grad, **{k: s.gradient() for k, s in stored.items()}}
    rows = []
    prepared = _cut(whole, mesh, prepare=True)
    for name, module in (("one process", whole), ("DTensor", prepared)):
        got, x_grad = _backward(module, x, gradient)
        grads = {key: _parameter(module, key).grad for key in stored}
        expected = {
            key: _own(grad, comm.rank, comm.size, key) if key in CUTS else _full(grad)
            for key, grad in grads.items()
        }
        rows.append(_row("block", name, found, {"y": got, "x.grad": x_grad, **expected}))
    for name, prepare in (("DTensor", True), ("DTensor, input not prepared", False)):
        operations[name] = _count(_cut(whole, mesh, prepare), x, gradient)
    assert operations["yours"] == operations["DTensor"] == [2, 2], str(operations)
    return rows, operations


def _parameter(block: nn.Module, name: str) -> Any:
    if name.startswith("norm"):
        return getattr(block, name).weight
    home = block.attention if name in ("wq", "wk", "wv", "wo") else block.mlp
    return getattr(home, name).weight


def _cut(whole: Block, mesh: Any, prepare: bool) -> nn.Module:
    """The same block cut by torch; without ``prepare`` each column-parallel layer enters alone."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        PrepareModuleInput,
        RowwiseParallel,
        parallelize_module,
    )

    block = Block()
    block.load_state_dict(whole.state_dict())
    plan: dict[str, Any] = {
        f"{home}.{name}": ColwiseParallel() if CUTS[name] else RowwiseParallel()
        for home, names in (("attention", ("wq", "wk", "wv", "wo")),
                            ("mlp", ("w_gate", "w_up", "w_down")))
        for name in names
    }  # fmt: skip
    if prepare:
        for home in ("attention", "mlp"):
            plan[home] = PrepareModuleInput(
                input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),)
            )
    return parallelize_module(block, mesh, plan)


def _count(block: nn.Module, x: Tensor, gradient: Tensor) -> list[int]:
    """Collectives of the block, forward and backward."""
    from torch.distributed.tensor.debug import CommDebugMode

    own, counts = x.clone().requires_grad_(), []
    with CommDebugMode() as mode:
        y = block(own)
    counts.append(mode.get_total_counts())
    with CommDebugMode() as mode:
        y.backward(gradient)
    counts.append(mode.get_total_counts())
    return counts


def _row(
    layer: str, yardstick: str, found: dict[str, Any], expected: dict[str, Any]
) -> dict[str, Any]:
    """The largest differences on any rank; refuses those that are no rounding."""
    worst = {"y": 0.0, "x.grad": 0.0, "weights.grad": 0.0}
    for name, right in expected.items():
        got = found[name]
        missing = got is None or got.shape != right.shape
        error = float("inf") if missing else float((got - right).abs().max())
        assert error <= CLOSE, f"{layer}: {name} differs from {yardstick} by {error:.3g}"
        key = name if name in worst else "weights.grad"
        worst[key] = max(worst[key], error)
    values = torch.tensor(list(worst.values()))
    dist.all_reduce(values, op=dist.ReduceOp.MAX)
    return {"layer": layer, "against": yardstick, **dict(zip(worst, values.tolist(), strict=True))}


def _line(row: dict[str, Any]) -> str:
    worst = max(row[name] for name in ("y", "x.grad", "weights.grad"))
    return f"{row['layer']} = {row['against']}: |error| ≤ {worst:.1e}"


def show_proof(report: dict[str, Any]) -> None:
    """The report as two tables."""
    print(f"{'layer':<13}{'against':<13}{'y':>10}{'x.grad':>10}{'weights.grad':>14}")
    for row in report["rows"]:
        errors = f"{row['y']:>10.1e}{row['x.grad']:>10.1e}{row['weights.grad']:>14.1e}"
        print(f"{row['layer']:<13}{row['against']:<13}{errors}")
    print(f"\n{'all-reduces of the block':<30}{'forward':>9}{'backward':>10}")
    for name, (forward, backward) in report["operations"].items():
        print(f"{name:<30}{forward:>9}{backward:>10}")
