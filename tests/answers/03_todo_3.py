# Answers to TODO 3 of lesson 03, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`. `merge` is the solution's.

# %% right · shift_before_the_work
def ring_attention(comm, q, k, v, positions):
    rank, size = comm.rank, comm.size
    mine, n = positions[rank], q.shape[2]
    out = torch.zeros_like(q)
    lse = torch.full(q.shape[:3], float("-inf"), dtype=q.dtype)
    for step in range(size):
        coming = comm.shift((k, v)) if step + 1 < size else None
        theirs = positions[rank - step]  # a negative index counts from the end
        seen = mine.view(n, 1) >= theirs.view(1, n)
        asks = seen.sum(1).nonzero().flatten()
        answers = seen.sum(0).nonzero().flatten()
        if len(asks):
            part = partial_attention(
                q.index_select(2, asks),
                k.index_select(2, answers),
                v.index_select(2, answers),
                seen[asks][:, answers],
            )
            merged, total = merge(out.index_select(2, asks), lse.index_select(2, asks), *part)
            out = out.index_copy(2, asks, merged)
            lse = lse.index_copy(2, asks, total)
        if coming:
            k, v = coming
    return out, (size - 1) * (k.nbytes + v.nbytes)


# %% right · two_shifts_a_step
def ring_attention(comm, q, k, v, positions):
    batch, kv_heads, tokens, dim = k.shape
    mine = positions[comm.rank]
    keys, values = k, v
    done = None
    owner = comm.rank
    for step in range(comm.size):
        if step:
            keys, values = comm.shift(keys), comm.shift(values)
            owner = owner - 1 if owner else comm.size - 1
        seen = mine[:, None] >= positions[owner]
        rows, columns = seen.any(1), seen.any(0)
        part = q.new_zeros(q.shape), q.new_full(q.shape[:3], float("-inf"))
        if seen.any():
            some = partial_attention(
                q[:, :, rows], keys[:, :, columns], values[:, :, columns], seen[rows][:, columns]
            )
            part[0][:, :, rows], part[1][:, :, rows] = some
        done = merge(*done, *part) if done else part
    width = k.element_size()
    return done[0], 2 * (comm.size - 1) * batch * kv_heads * tokens * dim * width


# %% right · stacked_and_gathered_at_the_end
def ring_attention(comm, q, k, v, positions):
    mine, parts, sent = positions[comm.rank], [], 0
    block = torch.stack((k, v))
    for step in range(comm.size):
        theirs = positions[(comm.rank - step) % comm.size]
        rows = mine >= theirs.min()
        columns = theirs <= mine.max()
        if rows.sum() > 0:
            parts.append(
                (
                    rows,
                    partial_attention(
                        q[:, :, rows],
                        block[0][:, :, columns],
                        block[1][:, :, columns],
                        theirs[columns][None] <= mine[rows][:, None],
                    ),
                )
            )
        if step + 1 != comm.size:
            sent = sent + block.numel() * block.element_size()
            block = comm.shift(block)
    out, lse = torch.zeros_like(q), torch.full_like(q[..., 0], float("-inf"))
    for rows, (new, new_lse) in parts:
        wide = torch.zeros_like(q)
        wide_lse = torch.full_like(lse, float("-inf"))
        wide[:, :, rows], wide_lse[:, :, rows] = new, new_lse
        out, lse = merge(out, lse, wide, wide_lse)
    return out, sent


# %% right · own_attention
def ring_attention(comm, q, k, v, positions):
    mine, sent, group = positions[comm.rank], 0, q.shape[1] // k.shape[1]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows = seen.any(1)
        if rows.any():
            asks = q[:, :, rows].unflatten(1, (-1, group))
            scores = torch.einsum("bkgsd,bktd->bkgst", asks, k) / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(~seen[rows], -math.inf)
            new_lse = scores.logsumexp(-1)
            new = torch.einsum("bkgst,bktd->bkgsd", (scores - new_lse[..., None]).exp(), v)
            new, new_lse = new.flatten(1, 2), new_lse.flatten(1, 2)
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step + 1 < comm.size:
            k, v = comm.shift((k, v))
            sent += k.nbytes + v.nbytes
    return out, sent


# %% wrong · skipped_shift · 每个 rank 都传 cp − 1 次，掩码全部挡住也一样
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1 and rows.any():
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · stops_when_all_is_masked · 每个 rank 都传 cp − 1 次，掩码全部挡住也一样
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if not rows.any():
            break
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · one_shift_too_many · 每个 rank 不多不少传 cp − 1 次
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        sent += k.nbytes + v.nbytes
        k, v = comm.shift((k, v))
    return out, sent


# %% wrong · one_shift_too_few · 每个 rank 不多不少传 cp − 1 次
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 2:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · no_shift_at_all · 每个 rank 不多不少传 cp − 1 次
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
    return out, sent


# %% wrong · keys_alone_travel · 每个 rank 不多不少传 cp − 1 次
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k = comm.shift(k)
    return out, sent


# %% wrong · local_positions · 掩码按全局位置
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        here = torch.arange(q.shape[2])
        seen = here <= here[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · owner_in_the_other_direction · 手里是哪个 rank 的块，就用哪个 rank 的位置
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank + step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · own_positions_for_every_block · 手里是哪个 rank 的块，就用哪个 rank 的位置
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = mine <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · always_head_tail · 掩码按全局位置
def ring_attention(comm, q, k, v, positions):
    n = q.shape[2]
    whole = torch.arange(n * comm.size)
    if comm.size == 1:
        chunks = whole[None]
    else:
        chunks = whole.view(2 * comm.size, -1) if n % 2 == 0 else whole.view(comm.size, -1)
        chunks = (
            chunks.view(-1, n)
            if n % 2
            else torch.stack([torch.cat((chunks[r], chunks[-1 - r])) for r in range(comm.size)])
        )
    positions = chunks
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · no_mask · 掩码按全局位置
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = torch.ones(q.shape[2], q.shape[2], dtype=torch.bool)
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · strictly_before · 掩码按全局位置
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] < mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · blocks_averaged · 每一步都用 merge 合并
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = (
                (out[:, :, rows] * step + new) / (step + 1),
                new_lse,
            )
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · last_block_wins · 每一步都用 merge 合并
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = new, new_lse
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · lse_forgotten · 每一步都用 merge 合并
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], _ = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · kv_heads_expanded · KV 头原样传，不复制
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
    v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · queries_travel_too · 一次最多传一块的 K 和 V
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v, _ = comm.shift((k, v, q))
    return out, sent


# %% wrong · all_gather · K/V 只用 shift 沿环传，没有 all-gather
def ring_attention(comm, q, k, v, positions):
    keys, values = comm.all_gather(k, dim=2), comm.all_gather(v, dim=2)
    seen = positions.flatten() <= positions[comm.rank][:, None]
    out, _ = partial_attention(q, keys, values, seen)
    return out, (comm.size - 1) * (k.nbytes + v.nbytes)


# %% wrong · hoards_the_blocks · 不攒着所有的块一起算
def ring_attention(comm, q, k, v, positions):
    blocks, owners = [(k, v)], [positions[comm.rank]]
    for step in range(1, comm.size):
        blocks.append(comm.shift(blocks[-1]))
        owners.append(positions[(comm.rank - step) % comm.size])
    keys, values = (torch.cat(x, dim=2) for x in zip(*blocks))
    seen = torch.cat(owners) <= positions[comm.rank][:, None]
    out, _ = partial_attention(q, keys, values, seen)
    return out, (comm.size - 1) * (k.nbytes + v.nbytes)


# %% wrong · whole_blocks_computed · 看不见的跳过计算
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = (
            torch.ones(len(mine), dtype=torch.bool),
            torch.ones(len(mine), dtype=torch.bool),
        )
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · only_whole_blocks_skipped · 看不见的跳过计算
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            rows, columns = torch.ones_like(rows), torch.ones_like(columns)
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · only_queries_skipped · 看不见的跳过计算
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        columns = torch.ones_like(columns)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · shift_without_gradient · dq、dk、dv 等于一个进程的梯度
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k.detach(), v.detach()))
    return out, sent


# %% wrong · no_grad · 梯度能传回去
@torch.no_grad()
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · slices_overwritten · 不改动自动求导存着的数
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            first = int(rows.nonzero()[0])
            old, old_lse = out[:, :, first:], lse[:, :, first:]
            out[:, :, first:], lse[:, :, first:] = merge(old, old_lse, new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · counts_numbers_not_bytes · sent 是这个 rank 送出的字节
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.numel() + v.numel()
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · forgets_the_values_bytes · sent 是这个 rank 送出的字节
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · counts_query_heads · sent 是这个 rank 送出的字节
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += 2 * q.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · counts_cp_shifts · sent 是这个 rank 送出的字节
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, comm.size * (k.nbytes + v.nbytes)


# %% wrong · counts_sent_and_received · sent 是这个 rank 送出的字节
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, 2 * sent


# %% wrong · sent_is_a_tensor · 返回 (out, sent)
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = torch.tensor(0)
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent


# %% wrong · out_alone · 返回 (out, sent)
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out


# %% wrong · every_query_of_the_sequence · 返回 (out, sent)
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return torch.cat([out] * comm.size, dim=2) if comm.size > 1 else out, sent


# %% wrong · no_communication_object · 函数不应抛出异常
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = torch.distributed.shift((k, v))
    return out, sent


# %% wrong · never_ends · 每个 rank 都传 cp − 1 次
def ring_attention(comm, q, k, v, positions):
    mine = positions[comm.rank]
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        seen = positions[(comm.rank - step) % comm.size] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new, new_lse = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns]
            )
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], new, new_lse)
        while comm.rank == 1 and step == 0:
            pass
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    return out, sent
