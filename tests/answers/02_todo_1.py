# %% right · slices_in_place
def column_parallel(comm, x, weight, bias):
    columns = weight.shape[1] // comm.size
    first, last = comm.rank * columns, comm.rank * columns + columns
    x = comm.enter(x)
    if bias is None:
        return x @ weight[:, first:last]
    return x @ weight[:, first:last] + bias[first:last]


# %% right · functional_linear
import torch.nn.functional as F


def column_parallel(comm, x, weight, bias):
    n_in, n_out = weight.shape
    own = n_out // comm.size
    block = weight[0:n_in, own * comm.rank : own * (comm.rank + 1)]
    b = None if bias is None else bias[own * comm.rank : own * (comm.rank + 1)]
    return F.linear(comm.enter(x), block.t(), b)


# %% right · column_by_column
import torch


def column_parallel(comm, x, weight, bias):
    own = [c for c in range(weight.shape[-1]) if c // (weight.shape[-1] // comm.size) == comm.rank]
    entered = comm.enter(x)
    y = torch.einsum("...i,io->...o", entered, weight[:, own])
    if bias:
        y += torch.stack([bias[c] for c in own])
    return y


# %% right · list_of_runs
def column_parallel(comm, x, weight, bias):
    runs = [list(range(weight.shape[1]))[i::1] for i in (0,)][0]
    width = len(runs) // comm.size
    mine = runs[comm.rank * width :][:width]
    y = comm.enter(x).matmul(weight[:, mine])
    return y if bias is None else y.add(bias[mine])


# %% wrong · whole_product · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    y = comm.enter(x) @ weight[:]
    return y if bias is None else y + bias[:]


# %% wrong · whole_product_then_slice · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    y = comm.enter(x) @ weight[:, :]
    if bias is not None:
        y = y + bias[:]
    return y.chunk(comm.size, dim=-1)[comm.rank]


# %% wrong · constant · 只读第 r 段列
import torch


def column_parallel(comm, x, weight, bias):
    return torch.zeros(*x.shape[:-1], weight.shape[1] // comm.size, dtype=x.dtype)


# %% wrong · nothing_returned · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    comm.enter(x)


# %% wrong · rows_instead_of_columns · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    rows = slice(comm.rank * n, (comm.rank + 1) * n)
    return comm.enter(x)[..., rows] @ weight[rows]


# %% wrong · transposed · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    y = comm.enter(x) @ weight[comm.rank * n : (comm.rank + 1) * n].T
    return y if bias is None else y + bias[comm.rank * n : (comm.rank + 1) * n]


# %% wrong · off_by_one_rank · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    r = (comm.rank + 1) % comm.size
    y = comm.enter(x) @ weight[:, r * n : (r + 1) * n]
    return y if bias is None else y + bias[r * n : (r + 1) * n]


# %% wrong · off_by_one_column · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n - 1)
    y = comm.enter(x) @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · every_nth_column · 只读第 r 段列
def column_parallel(comm, x, weight, bias):
    mine = slice(comm.rank, None, comm.size)
    y = comm.enter(x) @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · whole_bias_read · 偏置也只读对应的一段
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x) @ weight[:, mine]
    return y if bias is None else y + bias[:][mine]


# %% wrong · bias_forgotten · 偏置也只读对应的一段
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    return comm.enter(x) @ weight[:, comm.rank * n : (comm.rank + 1) * n]


# %% wrong · bias_twice · 恰好加一次
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x) @ weight[:, mine]
    return y if bias is None else y + bias[mine] + bias[mine]


# %% wrong · backward_not_summed · 反向恰好 1 次 all-reduce
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = x @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · backward_summed_twice · 反向恰好 1 次 all-reduce
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(comm.enter(x)) @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · enter_behind_the_product · 反向恰好 1 次 all-reduce
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x @ weight[:, mine])
    return y if bias is None else y + bias[mine]


# %% wrong · only_rank_0_enters · 反向恰好 1 次 all-reduce
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = (comm.enter(x) if comm.rank == 0 else x) @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · sums_forward · 列并行的前向不通信
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.all_reduce(comm.enter(x) @ weight[:, mine])
    return y if bias is None else y + bias[mine]


# %% wrong · sums_x_forward · 列并行的前向不通信
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.all_reduce(x) @ weight[:, mine] / comm.size
    return y if bias is None else y + bias[mine]


# %% wrong · gathers_y · 形状是 [..., out / tp]
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x) @ weight[:, mine]
    return comm.all_gather(y if bias is None else y + bias[mine], -1)


# %% wrong · gathers_the_weight · 列并行的前向不通信
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    whole = comm.all_gather(weight[:, mine], 1)
    y = (comm.enter(x) @ whole)[..., mine]
    return y if bias is None else y + bias[mine]


# %% wrong · padded_to_the_whole · 更大的张量
import torch


def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    before = torch.zeros(weight.shape[0], mine.start, dtype=x.dtype)
    after = torch.zeros(weight.shape[0], weight.shape[1] - mine.stop, dtype=x.dtype)
    padded = torch.cat((before, weight[:, mine], after), dim=1)
    y = (comm.enter(x) @ padded)[..., mine]
    return y if bias is None else y + bias[mine]


# %% wrong · x_cut_off_the_graph · 反向恰好 1 次 all-reduce
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x.detach()) @ weight[:, mine]
    return y if bias is None else y + bias[mine]


# %% wrong · weight_cut_off_the_graph · 权重的梯度
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x) @ weight[:, mine].detach()
    return y if bias is None else y + bias[mine]


# %% wrong · no_graph · 结果要连着 x 和权重
import torch


def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    with torch.no_grad():
        y = comm.enter(x) @ weight[:, mine]
        return y if bias is None else y + bias[mine]


# %% wrong · view_of_non_contiguous · 不应抛出异常
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x).view(-1, x.shape[-1]) @ weight[:, mine]
    y = y.view(*x.shape[:-1], n)
    return y if bias is None else y + bias[mine]


# %% wrong · single_precision · 形状是 [..., out / tp]
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    mine = slice(comm.rank * n, (comm.rank + 1) * n)
    y = comm.enter(x).float() @ weight[:, mine].float()
    return y if bias is None else y + bias[mine].float()


# %% wrong · whole_weight_without_reading · 不应抛出异常
def column_parallel(comm, x, weight, bias):
    return x @ weight


# %% wrong · rank_1_never_returns · 每个 rank 都要在 5 秒内算完
def column_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    while comm.rank == 1:
        pass
    return comm.enter(x) @ weight[:, comm.rank * n : (comm.rank + 1) * n]
