# %% right · slice_object
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    mine = slice(n * comm.rank, n * (comm.rank + 1))
    summed = comm.all_reduce(x @ weight[mine, :])
    return summed if bias is None else summed + bias[:]


# %% right · height_from_x
def row_parallel(comm, x, weight, bias):
    n = x.shape[-1]
    y = comm.all_reduce(x.matmul(weight[comm.rank * n : comm.rank * n + n]))
    if bias is None:
        return y
    (width,) = bias.shape
    return y + bias[0:width]


# %% right · einsum_and_in_place
import torch


def row_parallel(comm, x, weight, bias):
    rows = list(range(comm.rank * x.shape[-1], (comm.rank + 1) * x.shape[-1]))
    y = comm.all_reduce(torch.einsum("...i,io->...o", x, weight[rows]))
    if bias is not None:
        y += bias[:]
    return y


# %% right · functional_linear
import torch.nn.functional as F


def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    total = comm.all_reduce(F.linear(x, weight[n * comm.rank : n * comm.rank + n].t()))
    return total if bias is None else total.add(bias[...])


# %% wrong · sum_missing · 前向恰好 1 次 all-reduce
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    return y if bias is None else y + bias[:]


# %% wrong · sum_doubled · 前向恰好 1 次 all-reduce
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n]))
    return y if bias is None else y + bias[:]


# %% wrong · sum_doubled_and_mended · 前向恰好 1 次 all-reduce
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n])
    y = comm.all_reduce(y) / comm.size
    return y if bias is None else y + bias[:]


# %% wrong · bias_on_every_rank · 偏置在结果里恰好有一份
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    if bias is not None:
        y = y + bias[:]
    return comm.all_reduce(y)


# %% wrong · bias_forgotten · 偏置在结果里恰好有一份
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    return comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n])


# %% wrong · bias_divided · 每个 rank 的偏置梯度都是完整的
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    if bias is not None:
        y = y + bias[:] / comm.size
    return comm.all_reduce(y)


# %% wrong · bias_summed_by_itself · 前向恰好 1 次 all-reduce
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + comm.all_reduce(bias[:]) / comm.size


# %% wrong · whole_computation · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    y = comm.all_gather(x, -1) @ weight[:]
    return y if bias is None else y + bias[:]


# %% wrong · reads_all_uses_own · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(x @ weight[:][comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + bias[:]


# %% wrong · constant · 只读第 r 段行
import torch


def row_parallel(comm, x, weight, bias):
    return torch.ones(*x.shape[:-1], weight.shape[1], dtype=x.dtype)


# %% wrong · columns_instead_of_rows · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    n = weight.shape[1] // comm.size
    y = comm.all_reduce(x @ weight[:, comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + bias[:]


# %% wrong · first_rows_everywhere · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    y = comm.all_reduce(x @ weight[: x.shape[-1]])
    return y if bias is None else y + bias[:]


# %% wrong · off_by_one_rank · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    r = (comm.rank - 1) % comm.size
    y = comm.all_reduce(x @ weight[r * n : (r + 1) * n])
    return y if bias is None else y + bias[:]


# %% wrong · every_nth_row · 只读第 r 段行
def row_parallel(comm, x, weight, bias):
    y = comm.all_reduce(x @ weight[comm.rank :: comm.size])
    return y if bias is None else y + bias[:]


# %% wrong · enters_too · 反向不通信
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(comm.enter(x) @ weight[comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + bias[:]


# %% wrong · sums_the_gradient_again · 反向不通信
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.enter(comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n]))
    return y if bias is None else y + bias[:]


# %% wrong · mean_instead_of_sum · 都等于完整的结果
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(x @ weight[comm.rank * n : (comm.rank + 1) * n]) / comm.size
    return y if bias is None else y + bias[:]


# %% wrong · gathers_and_adds · 前向恰好 1 次 all-reduce
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    y = comm.all_gather(y[None], 0).sum(0)
    return y if bias is None else y + bias[:]


# %% wrong · keeps_a_part · 每个 rank 返回完整的 y
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    if bias is not None:
        y = y + bias[:] / comm.size
    return comm.reduce_scatter(y, -1) if y.shape[-1] % comm.size == 0 else y[..., :1]


# %% wrong · only_rank_0_sums · 每个 rank 都做同样的通信
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    if comm.rank == 0:
        y = comm.all_reduce(y)
    return y if bias is None else y + bias[:]


# %% wrong · last_rank_leaves · 每个 rank 都做同样的通信
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    if comm.rank == comm.size - 1:
        return y
    y = comm.all_reduce(y)
    return y if bias is None else y + bias[:]


# %% wrong · ranks_disagree · 每个 rank 都做同样的通信
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    y = comm.all_reduce(y) if comm.rank % 2 else comm.all_reduce(y[None])[0]
    return y if bias is None else y + bias[:]


# %% wrong · waits_for_a_missing_rank · 每个 rank 都要在 5 秒内算完
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    partial = x @ weight[comm.rank * n : (comm.rank + 1) * n]
    while comm.rank == 0:
        partial = partial + 0
    return comm.all_reduce(partial)


# %% wrong · sum_outside_of_autograd · 结果要连着 x 和权重
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce((x @ weight[comm.rank * n : (comm.rank + 1) * n]).detach())
    return y if bias is None else y + bias[:].detach()


# %% wrong · x_cut_off_the_graph · x 的梯度是完整梯度里自己的那一段
def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    y = comm.all_reduce(x.detach() @ weight[comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + bias[:]


# %% wrong · padded_to_the_whole · 更大的张量
import torch


def row_parallel(comm, x, weight, bias):
    n = weight.shape[0] // comm.size
    before = torch.zeros(comm.rank * n, weight.shape[1], dtype=x.dtype)
    after = torch.zeros((comm.size - comm.rank - 1) * n, weight.shape[1], dtype=x.dtype)
    padded = torch.cat((before, weight[comm.rank * n : (comm.rank + 1) * n], after))
    y = comm.all_reduce(x @ padded[comm.rank * n : (comm.rank + 1) * n])
    return y if bias is None else y + bias[:]
