# %% right · helpers_for_columns_and_rows
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% right · fused_projections_and_sdpa
import torch
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    def mine(length):
        return slice(comm.rank * length // comm.size, (comm.rank + 1) * length // comm.size)

    def read(*names):
        return torch.cat([weights[n][:, mine(weights[n].shape[1])] for n in names], dim=1)

    b, s, _ = x.shape
    a, kv = num_heads // comm.size, num_kv_heads // comm.size
    d = weights["wq"].shape[1] // num_heads
    qkv = comm.enter(F.rms_norm(x, (x.shape[-1],), weights["norm1"][:])) @ read("wq", "wk", "wv")
    q, k, v = qkv.reshape(b, s, a + 2 * kv, d).transpose(1, 2).split((a, kv, kv), dim=1)
    k, v = k.repeat_interleave(a // kv, 1), v.repeat_interleave(a // kv, 1)
    o = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    wo = weights["wo"][mine(num_heads * d)]
    x = x + comm.all_reduce(o.transpose(1, 2).reshape(b, s, a * d) @ wo)
    wide = comm.enter(F.rms_norm(x, (x.shape[-1],), weights["norm2"][:])) @ read("w_gate", "w_up")
    gate, up = wide.chunk(2, dim=-1)
    down = weights["w_down"][mine(weights["w_down"].shape[0])]
    payload = b * s * x.shape[-1] * x.element_size()
    return x + comm.all_reduce(F.silu(gate) * up @ down), 4 * (
        2 * payload * (comm.size - 1) // comm.size
    )


# %% right · attention_by_hand
import math

import torch
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n = comm.size
    cut = {"wq": 1, "wk": 1, "wv": 1, "wo": 0, "w_gate": 1, "w_up": 1, "w_down": 0}
    own = {}
    for name, dim in cut.items():
        length = weights[name].shape[dim] // n
        run = slice(comm.rank * length, comm.rank * length + length)
        own[name] = weights[name][:, run] if dim else weights[name][run, :]
    sizes = []

    def summed(partial):
        total = comm.all_reduce(partial)
        sizes.append(total.numel() * total.element_size())
        return total

    t = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    d = own["wq"].shape[1] * n // num_heads
    kv = num_kv_heads // n
    q = torch.einsum("bsi,io->bso", t, own["wq"]).unflatten(-1, (kv, -1, d))
    k = torch.einsum("bsi,io->bso", t, own["wk"]).unflatten(-1, (kv, d))
    v = torch.einsum("bsi,io->bso", t, own["wv"]).unflatten(-1, (kv, d))
    scores = torch.einsum("bqkgd,btkd->bkgqt", q, k) / math.sqrt(d)
    future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
    shares = scores.masked_fill(future, -math.inf).softmax(-1)
    mixed = torch.einsum("bkgqt,btkd->bqkgd", shares, v).flatten(2)
    x = x + summed(mixed @ own["wo"])
    t = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    x = x + summed((F.silu(t @ own["w_gate"]) * (t @ own["w_up"])) @ own["w_down"])
    return x, 2 * sum(2 * (n - 1) * size // n for size in sizes)


# %% right · sent_in_a_loop
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    piece = x.numel() * x.element_size() // n
    sent = 0
    for _ in range(4):  # all-reduces
        for _ in range(2 * (n - 1)):  # steps round the ring
            sent += piece
    return y, sent


# %% wrong · whole_block_on_every_rank · 第 r 段 Q 头
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        return weights[name][:]

    def rows(name):
        return weights[name][:]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = F.rms_norm(x, x.shape[-1:], weights["norm1"][:])
    q = heads(h @ columns("wq"), num_heads)
    k = heads(h @ columns("wk"), num_kv_heads)
    v = heads(h @ columns("wv"), num_kv_heads)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + (mixed @ rows("wo"))
    h = F.rms_norm(x, x.shape[-1:], weights["norm2"][:])
    y = x + ((F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down"))
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · constant · norm 整个读
def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    return x * 1, 0


# %% wrong · sent_forgotten · 返回两样东西
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y


# %% wrong · a_list_instead_of_a_pair · 返回两样东西
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return [y, sent]


# %% wrong · all_kv_heads_on_every_rank · 一个 KV 头只在一个 rank 上
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ weights["wk"][:], num_kv_heads)
    v = heads(h @ weights["wv"][:], num_kv_heads)
    mixed = (
        whole_attention(
            q, *(p.repeat_interleave(num_heads // num_kv_heads, 1)[:, : q.shape[1]] for p in (k, v))
        )
        .transpose(1, 2)
        .flatten(2)
    )
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · kv_heads_expanded_to_q_heads · 一个 KV 头只在一个 rank 上
import torch
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    def expanded(name):  # one KV head for each Q head of this rank, read again and again
        d = weights[name].shape[1] // num_kv_heads
        mine = range(r * num_heads // n, (r + 1) * num_heads // n)
        group = num_heads // num_kv_heads
        return torch.cat([weights[name][:, : (q // group + 1) * d][:, -d:] for q in mine], dim=1)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ expanded("wk"), num_heads // n)
    v = heads(h @ expanded("wv"), num_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · kv_heads_off_by_one_rank · 一个 KV 头只在一个 rank 上
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def next_columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, (r + 1) % n * width : ((r + 1) % n + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ next_columns("wk"), num_kv_heads // n)
    v = heads(h @ next_columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · kv_heads_dealt_out_like_cards · 一个 KV 头只在一个 rank 上
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def dealt(name):
        d = weights[name].shape[1] // num_kv_heads
        return weights[name][:, [c for c in range(num_kv_heads * d) if c // d % n == r]]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ dealt("wk"), num_kv_heads // n)
    v = heads(h @ dealt("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · q_heads_dealt_out_like_cards · 和它们用的 KV 头在同一个 rank 上
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def dealt(name):
        d = weights[name].shape[1] // num_heads
        return weights[name][:, [c for c in range(num_heads * d) if c // d % n == r]]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ dealt("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · q_columns_off_by_one · 第 r 段 Q 头
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def shifted(name):
        width = weights[name].shape[1] // n
        start = min(r * width + 1, weights[name].shape[1] - width)
        return weights[name][:, start : start + width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ shifted("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · head_width_from_hidden · 不应抛出异常
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, x.shape[-1] // num_heads)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · global_head_count · 不应抛出异常
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads)
    k = heads(h @ columns("wk"), num_kv_heads)
    v = heads(h @ columns("wv"), num_kv_heads)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · columns_of_w_down · w_gate、w_up 读第 r 段列
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ columns("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · rows_of_w_gate · w_gate、w_up 读第 r 段列
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce((F.silu(h @ rows("w_gate")) * (h @ columns("w_up"))) @ rows("w_down"))
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · enter_for_each_projection · 反向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = F.rms_norm(x, x.shape[-1:], weights["norm1"][:])
    q = heads(comm.enter(h) @ columns("wq"), num_heads // n)
    k = heads(comm.enter(h) @ columns("wk"), num_kv_heads // n)
    v = heads(comm.enter(h) @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = F.rms_norm(x, x.shape[-1:], weights["norm2"][:])
    y = x + comm.all_reduce(
        (F.silu(comm.enter(h) @ columns("w_gate")) * (comm.enter(h) @ columns("w_up")))
        @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · no_enter_at_all · 反向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = F.rms_norm(x, x.shape[-1:], weights["norm1"][:])
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = F.rms_norm(x, x.shape[-1:], weights["norm2"][:])
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · no_enter_before_the_mlp · 反向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = F.rms_norm(x, x.shape[-1:], weights["norm2"][:])
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · enter_before_the_norm · enter 放在 norm 之后
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = F.rms_norm(comm.enter(x), x.shape[-1:], weights["norm1"][:])
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = F.rms_norm(comm.enter(x), x.shape[-1:], weights["norm2"][:])
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · residual_enters_too · enter 放在 norm 之后
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    x = comm.enter(x)
    h = F.rms_norm(x, x.shape[-1:], weights["norm1"][:])
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · attention_not_summed · 前向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + mixed @ rows("wo")
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · mlp_summed_twice · 前向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        1
        / n
        * comm.all_reduce(
            1 * (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
        )
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · residual_summed_too · 都等于 whole_block
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = comm.all_reduce(x + mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · heads_gathered_before_wo · w_gate、w_up 读第 r 段列
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_gather(mixed, -1) @ weights["wo"][:]
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · weights_gathered · 前向恰好 2 次 all-reduce
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_gather(mixed, -1) @ comm.all_gather(rows("wo"), 0)
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · whole_mlp_on_every_rank · w_gate、w_up 读第 r 段列
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    wide = F.silu(h @ weights["w_gate"][:]) * (h @ weights["w_up"][:])
    y = x + comm.all_reduce(wide @ weights["w_down"][:]) / n
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · not_causal · 都等于 whole_block
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = (
        F.scaled_dot_product_attention(
            q, *(p.repeat_interleave(num_heads // num_kv_heads, 1) for p in (k, v))
        )
        .transpose(1, 2)
        .flatten(2)
    )
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · gate_and_up_swapped · 都等于 whole_block
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_up")) * (h @ columns("w_gate"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · no_second_norm · w_gate、w_up 读第 r 段列
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(x)
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · rank_0_skips_the_mlp · 每个 rank 都做同样的通信
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    if r == 0:
        return x, 0
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · a_rank_reduces_in_another_order · 每个 rank 都做同样的通信
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    partial = mixed @ rows("wo")
    x = x + (
        comm.all_reduce(partial) if r else comm.reduce_scatter(comm.all_gather(partial[None]), 0)[0]
    )
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · padded_to_the_whole · 完整的权重
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def padded(name):
        own = columns(name)
        width = own.shape[1]
        return F.pad(own, (r * width, (n - 1 - r) * width)), slice(r * width, (r + 1) * width)

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    whole, mine = padded("w_gate")
    y = x + comm.all_reduce(
        (F.silu((h @ whole)[..., mine]) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · bytes_handed_over_not_sent · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 4 * x.numel() * x.element_size()
    return y, sent


# %% wrong · bytes_forward_only · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 4 * (n - 1) * x.numel() * x.element_size() // n
    return y, sent


# %% wrong · bytes_of_half_a_ring · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 4 * (n - 1) * (x.numel() * x.element_size() // n)
    return y, sent


# %% wrong · bytes_all_ranks_together · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * x.element_size()
    return y, sent


# %% wrong · bytes_of_a_shard · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * (x.numel() // n) * x.element_size() // n
    return y, sent


# %% wrong · numbers_not_bytes · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() // n
    return y, sent


# %% wrong · always_four_bytes · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x.numel() * 4 // n
    return y, sent


# %% wrong · batch_forgotten · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 8 * (n - 1) * x[0].numel() * x.element_size() // n
    return y, sent


# %% wrong · bytes_as_a_float · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 4 * 2 * (n - 1) / n * x.numel() * x.element_size()
    return y, sent


# %% wrong · fraction_floored_first · sent 是这个 rank 发出的字节数
import torch.nn.functional as F


def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    n, r = comm.size, comm.rank

    def columns(name):
        width = weights[name].shape[1] // n
        return weights[name][:, r * width : (r + 1) * width]

    def rows(name):
        height = weights[name].shape[0] // n
        return weights[name][r * height : (r + 1) * height]

    def heads(part, count):
        return part.unflatten(-1, (count, -1)).transpose(1, 2)

    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm1"][:]))
    q = heads(h @ columns("wq"), num_heads // n)
    k = heads(h @ columns("wk"), num_kv_heads // n)
    v = heads(h @ columns("wv"), num_kv_heads // n)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + comm.all_reduce(mixed @ rows("wo"))
    h = comm.enter(F.rms_norm(x, x.shape[-1:], weights["norm2"][:]))
    y = x + comm.all_reduce(
        (F.silu(h @ columns("w_gate")) * (h @ columns("w_up"))) @ rows("w_down")
    )
    sent = 4 * (2 * (n - 1) // n) * x.numel() * x.element_size()
    return y, sent
