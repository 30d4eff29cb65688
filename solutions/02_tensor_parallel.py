# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#       format_version: '1.3'
#       jupytext_version: 1.19.6
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
# ---

# %% [markdown] lang="zh"
# # 02 · 张量并行：把一层里的矩阵切开
#
# **难度** Medium | **环境** CPU-first，不需要 GPU | **标签** TP, attention head, GQA, all-reduce
#
# **时间** 阅读约 45 分钟，动手约 45 分钟
#
# **前置** 会用 PyTorch 的张量、矩阵乘和 autograd。不需要懂并行，也不需要先做第 01 课。
#
# Llama 3 405B 的一层有 3.2B 个参数（B 是十亿）。16 位存放要 6.4 GB；训练时连同梯度和优化器，每个参数约 18 字节，一层就是 57 GB。一张 80 GB 的卡连两层都放不下，所以光把不同的层分给不同的卡还不够，要把一层**里面**的矩阵也切开。这就是张量并行（tensor parallelism, TP）。
#
# 你要写 3 个函数：列并行的线性层，行并行的线性层，以及一个 rank 上的整个注意力 + MLP 块。每个函数后面都有检查，马上告诉你对错和原因。最后，你的函数在 4 个真实的进程里运行，和 `torch` 自己的张量并行逐个数比对。

# %% [markdown] lang="en"
# # 02 · Tensor parallelism: cut the matrices inside a layer
#
# **Difficulty** Medium | **Environment** CPU-first, no GPU needed | **Tags** TP, attention head, GQA, all-reduce
#
# **Time** about 45 minutes to read, about 45 to do
#
# **Prerequisites** tensors, matrix products and autograd in PyTorch. No parallelism needed, and not lesson 01 either.
#
# One layer of Llama 3 405B has 3.2 billion parameters. Stored in 16 bits they take 6.4 GB; in training, with gradients and optimizer, a parameter costs about 18 bytes, so one layer takes 57 GB. A device of 80 GB cannot hold even two of them. Giving different layers to different devices is not enough: the matrices **inside** a layer have to be cut as well. That is tensor parallelism (TP).
#
# You write 3 functions: a column-parallel linear layer, a row-parallel one, and a whole attention + MLP block on one rank. A check follows each function and tells you at once what is right, what is wrong and why. In the end your functions run in 4 real processes and are compared, number by number, with `torch`'s own tensor parallelism.

# %%
# SETUP
import torch
import torch.nn.functional as F

from parlab.lesson.attention import whole_attention
from parlab.lesson.checks import check_todo, ready
from parlab.lesson.draw_tensor import draw_chain, draw_owners, draw_products
from parlab.lesson.draw_traffic import draw_activations, draw_layer_traffic, draw_regions, draw_ring
from parlab.lesson.proof import run_proof
from parlab.lesson.prove_tensor import show_proof
from parlab.lesson.published import korthikanti, llama3
from parlab.lesson.rank_failure import RankFailed
from parlab.lesson.rank_threads import run_ranks
from parlab.lesson.stored import Stored

# %% [markdown] lang="zh"
# ## Step 1：一次矩阵乘，两种切法
#
# 线性层是一次矩阵乘 $Y = X A$：$X$ 每行是一个 token，$A$ 的形状是 [in, out]。有两种切法：
#
# - **列并行**（column parallel）：$A$ 按列切成几段，rank r 拿第 r 段 $A_r$，算出 $Y$ 的那几列 $Y_r = X A_r$。每个 rank 都要有完整的 $X$。
# - **行并行**（row parallel）：$A$ 按行切，$X$ 也按列切成对应的几段，rank r 算 $X_r A_r$。它的形状已经和 $Y$ 一样，但只是一个加数。
#
# 一个 rank 是一个进程，通常管一张卡。一起切一层的 rank 有几个，tp 就是几。下图中 tp = 4，数字和颜色表示归哪个 rank，灰色（有斜线）表示每个 rank 都有一份。先猜：哪一种切法，算完以后还要把各 rank 的结果加起来？

# %% [markdown] lang="en"
# ## Step 1: one matrix product, cut in two ways
#
# A linear layer is a matrix product $Y = X A$: each row of $X$ is a token, and $A$ has the shape [in, out]. There are two ways to cut it:
#
# - **Column parallel**: $A$ is cut into runs of columns. Rank r takes run r, $A_r$, and computes those columns of $Y$: $Y_r = X A_r$. Every rank needs the whole of $X$.
# - **Row parallel**: $A$ is cut into runs of rows, and $X$ into the matching runs of columns. Rank r computes $X_r A_r$. This has the shape of $Y$ already, but it is only one summand.
#
# A rank is one process, usually with one device. The number of ranks that share a layer is called tp. In the picture tp = 4: number and colour say which rank owns a part, grey (hatched) means that every rank has a copy. Predict: which cut leaves results that still have to be added up?

# %%
draw_products()

# %%
torch.manual_seed(0)
x, a = (torch.randint(-3, 4, shape).double() for shape in ((2, 6), (6, 8)))
columns = [x @ part for part in a.chunk(2, dim=1)]
summands = [left @ right for left, right in zip(x.chunk(2, dim=1), a.chunk(2, dim=0))]
print('column parallel, shapes of Y_r:', [tuple(y.shape) for y in columns])
print('  side by side equals x @ a:', torch.equal(torch.cat(columns, dim=1), x @ a))
print('row parallel, shapes of X_r A_r:', [tuple(y.shape) for y in summands])
print('  the sum equals x @ a:', torch.equal(sum(summands), x @ a))

# %% [markdown] lang="zh"
# 列并行的结果拼起来，行并行的结果加起来。
#
# 一个容易绕晕的地方：`nn.Linear` 存的是转置，形状是 [out, in]。所以 `torch` 的 `ColwiseParallel` 在它的 dim 0 上切，说的仍然是同一件事：按**输出**切。本课的权重一律是 [in, out]，写作 `x @ w`。
#
# ### 1.1 为什么先列后行
#
# MLP 是两次矩阵乘，中间隔着一个逐元素的非线性函数：$Z = \text{GeLU}(X A)\, B$。两个矩阵都要切，怎么搭配通信最少？
#
# - $A$ 按行切：各 rank 手里是加数，而 GeLU(a + b) ≠ GeLU(a) + GeLU(b)，必须先加起来才能过 GeLU。
# - $A$ 按列切：各 rank 手里是 $XA$ 的几列，GeLU 直接作用在这几列上，不用通信。接下来 $B$ 按行切，需要的正好就是这几列。最后加一次就行。
#
# 先猜：下面两个误差，哪个是 0？

# %% [markdown] lang="en"
# The results of column parallel are put side by side, those of row parallel are added.
#
# One thing that confuses people: `nn.Linear` stores the transpose, of shape [out, in]. So `torch`'s `ColwiseParallel` cuts its dim 0, and still means the same: cut by **output**. In this lesson every weight is [in, out], used as `x @ w`.
#
# ### 1.1 Why column first, then row
#
# An MLP is two products with an elementwise nonlinear function in between: $Z = \text{GeLU}(X A)\, B$. Both matrices have to be cut. Which pairing communicates least?
#
# - Cut $A$ by rows: the ranks hold summands, and GeLU(a + b) ≠ GeLU(a) + GeLU(b), so they must be added before GeLU.
# - Cut $A$ by columns: the ranks hold columns of $XA$, and GeLU works on those without communication. Then cut $B$ by rows: what it needs is exactly those columns. One sum at the end is enough.
#
# Predict: which of the two errors below is 0?

# %%
b = torch.randint(-3, 4, (8, 3)).double()
whole = F.gelu(x @ a) @ b
column_then_row = sum(F.gelu(y) @ part for y, part in zip(columns, b.chunk(2, dim=0)))
summands_first = sum(F.gelu(y) for y in summands) @ b
print(f'column, then row: error {(column_then_row - whole).abs().max():.2f}')
print(f'GeLU of summands: error {(summands_first - whole).abs().max():.2f}')

# %% [markdown] lang="zh"
# | A 怎么切 | B 怎么切 | 前向要的通信 |
# |---|---|---|
# | 列 | 行 | 末尾一次求和 |
# | 行 | 列 | 中间一次求和，末尾再拼 |
# | 列 | 列 | 中间拼一次，末尾再拼一次 |
#
# 所以 Megatron-LM（arXiv 1909.08053 第 3 节）以及后来的各种实现都用**先列后行**。注意力也一样：q、k、v 的投影按列切，输出投影按行切。

# %% [markdown] lang="en"
# | A cut by | B cut by | communication forward |
# |---|---|---|
# | columns | rows | one sum at the end |
# | rows | columns | a sum in the middle, then put side by side |
# | columns | columns | put side by side in the middle, and again at the end |
#
# That is why Megatron-LM (arXiv 1909.08053, section 3) and everybody after it uses **column, then row**. Attention is no different: the projections q, k and v are cut by columns, the output projection by rows.

# %% [markdown] lang="zh"
# ## Step 2：rank 之间怎样说话
#
# 真实的 rank 是进程。在笔记本里，我们让它们当线程：`run_ranks(n, 函数, 参数…)` 在 n 个线程里同时运行同一个函数，每个 rank 得到一个 `comm` 和参数的一份拷贝。每一次通信都是真的：所有 rank 都到了才完成。
#
# 一组 rank 一起做的通信叫集合通信（collective）。下面用两种：all-reduce 让每个 rank 得到总和，all-gather 让每个 rank 得到全部分片。先猜：3 个 rank，rank r 拿着 [r, r]，all-reduce 和 all-gather 的结果各是什么？

# %% [markdown] lang="en"
# ## Step 2: how ranks talk to each other
#
# Real ranks are processes. In the notebook we let threads play them: `run_ranks(n, function, arguments…)` runs the same function in n threads at once, and each rank gets a `comm` and its own copy of the arguments. Communication is real: an operation completes when every rank has come.
#
# An operation in which a whole group of ranks takes part is called a collective. Two of them here: all-reduce gives every rank the sum, all-gather gives every rank all parts. Predict: with 3 ranks, where rank r holds [r, r], what do all-reduce and all-gather give?

# %%
def hello(comm):
    x = torch.full((2,), float(comm.rank))
    return comm.all_reduce(x), comm.all_gather(x)

run = run_ranks(3, hello)
for rank, (total, gathered) in enumerate(run.results):
    print(f'rank {rank} of 3: all_reduce {total.tolist()}, all_gather {gathered.tolist()}')
print('what rank 0 did:')
for record in run.log_of(0):
    print(f'  {record.operation}, {record.direction}: shape {record.shape}, {record.bytes} bytes')

# %% [markdown] lang="zh"
# `comm` 记下每一次操作。后面的检查会看这份记录，还会看每个 rank 见过的最大的张量。
#
# ### 2.1 少来一个 rank 会怎样
#
# 先猜：rank 1 忘了做 all-reduce，其余的 rank 会等多久？

# %% [markdown] lang="en"
# `comm` writes down every operation. The checks below read these records, and also look at the largest tensor that each rank has seen.
#
# ### 2.1 What if one rank does not come
#
# Predict: rank 1 forgets the all-reduce. How long do the others wait?

# %%
def forgetful(comm):
    x = torch.ones(2, 3)
    return x if comm.rank == 1 else comm.all_reduce(x)

try:
    run_ranks(3, forgetful)
except RankFailed as problem:
    print(problem)

# %% [markdown] lang="zh"
# 这里马上就知道了。真实的进程组会一直等到超时，`torch` 默认 10 到 30 分钟，而且往往不说在等谁。所以并行代码的第一条规矩是：**每个 rank 按同样的顺序做同样的通信**。
#
# ### 2.2 反向：f 和 g
#
# 训练还要反向。设 $dY$ 是损失对 $Y$ 的梯度，矩阵乘的反向是 $dX = dY A^\top$。
#
# - **行并行**：先求和，所以每个 rank 都有完整的 $dY$，于是 $dX_r = dY A_r^\top$，正好是自己那一段，**不通信**。
# - **列并行**：rank r 只有 $dY_r$，能算的是 $dY_r A_r^\top$。形状已经和 $X$ 一样，但只是一个加数：$dX = \sum_r dY_r A_r^\top$，**要求和**。
#
# 先猜：下面两个 rank 各自算出的 $dX$，有没有哪个是对的？

# %% [markdown] lang="en"
# Here we know at once. A real process group waits until it times out, in `torch` after 10 to 30 minutes by default, and often without saying for whom. So the first rule of parallel code is: **every rank calls the same operations in the same order**.
#
# ### 2.2 Backward: f and g
#
# Training needs backward too. Let $dY$ be the gradient of the loss at $Y$; then backward of a product is $dX = dY A^\top$.
#
# - **Row parallel**: the sum comes last, so every rank has the whole $dY$. Then $dX_r = dY A_r^\top$ is exactly its own part: **no communication**.
# - **Column parallel**: rank r has $dY_r$ only and can compute $dY_r A_r^\top$. This has the shape of $X$ already, but it is only a summand: $dX = \sum_r dY_r A_r^\top$, **a sum is needed**.
#
# Predict: is any of the two $dX$ below, each computed by one rank on its own, right?

# %%
def gradient_of_x(part):
    leaf = x.clone().requires_grad_()
    (leaf @ part).sum().backward()
    return leaf.grad

partial = [gradient_of_x(part) for part in a.chunk(2, dim=1)]
for rank, gradient in enumerate(partial):
    print(f'rank {rank} alone:', gradient[0].tolist())
print('their sum:   ', sum(partial)[0].tolist())
print('one process: ', gradient_of_x(a)[0].tolist())

# %% [markdown] lang="zh"
# 都不对，也都不报错：形状是对的，训练照样跑，只是学得不对。
#
# 于是先列后行的一段前后各要一个算子，Megatron-LM 叫它们 f 和 g。它们互为镜像：一个的反向就是另一个的前向。

# %% [markdown] lang="en"
# Neither is, and neither raises an error: the shape is right, training goes on, only it learns the wrong thing.
#
# So a stretch of column, then row needs an operator at each end. Megatron-LM calls them f and g. They mirror each other: what one does backward, the other does forward.

# %%
draw_chain()

# %% [markdown] lang="zh"
# `comm` 的每个操作都懂 autograd：`backward()` 走到它，它自己在反向做该做的通信。每个操作都**返回**结果，参数不变：单写一行 `comm.all_reduce(x)`，不接住返回值，总和就丢了。
#
# | 操作 | 前向 | 反向 |
# |---|---|---|
# | `comm.enter(x)`，就是 f | 原样返回 x，不通信 | 各 rank 的梯度求和（all-reduce） |
# | `comm.all_reduce(x)`，就是 g | 求和 | 梯度原样传下去，不通信 |
# | `comm.all_gather(x, dim)` | 沿 dim 拼接 | 求和后各取一片（reduce-scatter） |
# | `comm.reduce_scatter(x, dim)` | 求和后各取一片 | 沿 dim 拼接（all-gather） |
#
# g 的反向为什么不再求和？因为它后面的计算在每个 rank 上一模一样，每个 rank 拿到的已经是完整的梯度。再加一次，梯度就变成 tp 倍。
#
# ### 2.3 权重在磁盘上
#
# 一个 rank 不该先装下整个矩阵再切：整个矩阵往往装不下。真实的检查点文件可以只读一块（safetensors 的 `get_slice`）。`Stored` 就扮演这样一个文件里的权重：`shape` 是完整的形状，用切片读出一块，读出来的才占内存，也才有梯度。`[:]` 读整个：每个 rank 都要的偏置和 norm 就这样读。没读出来的不能拿去算。

# %% [markdown] lang="en"
# Every operation of `comm` knows autograd: when `backward()` gets to it, it communicates as it has to. Every operation **returns** its result and leaves its argument alone: write `comm.all_reduce(x)` on a line of its own, catch nothing, and the sum is lost.
#
# | operation | forward | backward |
# |---|---|---|
# | `comm.enter(x)`, which is f | returns x as it is, no communication | the sum of the ranks' gradients (all-reduce) |
# | `comm.all_reduce(x)`, which is g | the sum | hands the gradient on as it is, no communication |
# | `comm.all_gather(x, dim)` | puts the parts side by side along dim | one part of the sum each (reduce-scatter) |
# | `comm.reduce_scatter(x, dim)` | one part of the sum each | puts the parts side by side along dim (all-gather) |
#
# Why does g not sum again backward? What comes after it is computed alike on every rank, so every rank gets the whole gradient already. Sum once more, and the gradient is tp times too large.
#
# ### 2.3 Weights lie on disk
#
# A rank should not load the whole matrix and then cut it: often the whole does not fit. Real checkpoint files let you read just a block (`get_slice` of safetensors). `Stored` plays a weight in such a file: `shape` is the whole shape, a slice reads a block, and only what was read takes memory and has a gradient. `[:]` reads all of it, which is the way for a bias or norm that every rank needs. What was not read cannot be computed with.

# %%
w = Stored(torch.arange(12.0).view(3, 4))
print(w, w.shape)
print(w[:, 1:3])
print(w[2:])
norm1 = Stored(torch.ones(4))  # 1 dim
print(norm1[:], norm1[1:3])

# %% [markdown] lang="zh"
# ## TODO 1：列并行的线性层
#
# 写 `column_parallel(comm, x, weight, bias)`，它在每个 rank 上运行：
#
# - `x` 的形状是 [..., in]，每个 rank 上都一样；前面可以有任意个维，内存也不一定连续；
# - `weight` 是 `Stored`，形状 [in, out]；`bias` 是 `Stored`，形状 [out]，也可能是 None；out 一定能被 `comm.size` 整除；
# - rank r 拥有第 r 段列：只读这些列，偏置也只读对应的一段；
# - 返回 `y`，形状 [..., out / comm.size]，就是完整结果里自己的那几列。前向不通信；
# - 反向结束时，每个 rank 上 `x` 的梯度都是完整的：恰好 1 次 all-reduce。
#
# 先猜：x 是 [2, 3, 12]，weight 是 [12, 20]，4 个 rank。rank 2 读哪几列？它的 `y` 是什么形状？
#
# <details><summary>提示 1：方向</summary>
#
# 三件事：算出自己是哪几列，读出来，做一次普通的矩阵乘。x 的梯度靠图里的 f。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 列数除以 rank 数是每段的宽度，段的起点是宽度乘以自己的编号。内置的 slice 可以把起点和终点存成一个对象，权重和偏置都用它。
# </details>
# <details><summary>提示 3：细节</summary>
#
# x 要先经过 comm 的 enter，再去乘；顺序反过来，反向求和的就不是 x 的梯度了。宽度用整除。bias 是 None 时不要去读它。
# </details>

# %% [markdown] lang="en"
# ## TODO 1: a column-parallel linear layer
#
# Write `column_parallel(comm, x, weight, bias)`, which runs on every rank:
#
# - `x` has the shape [..., in] and is the same on every rank; there may be any number of dims in front, and it need not be contiguous in memory;
# - `weight` is `Stored`, of shape [in, out]; `bias` is `Stored`, of shape [out], or None; out is always divisible by `comm.size`;
# - rank r owns run r of the columns: read those only, and of the bias the matching run only;
# - return `y` of shape [..., out / comm.size], this rank's columns of the whole result. No communication forward;
# - after backward the gradient of `x` is complete on every rank: exactly 1 all-reduce.
#
# Predict: x is [2, 3, 12], weight is [12, 20], there are 4 ranks. Which columns does rank 2 read? What is the shape of its `y`?
#
# <details><summary>Hint 1: direction</summary>
#
# Three things: find out which columns are yours, read them, do an ordinary matrix product. The gradient of x comes from the f of the picture.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# The number of columns over the number of ranks is the width of a run; a run starts at the width times your own number. The built-in slice keeps start and stop in one object, which serves both the weight and the bias.
# </details>
# <details><summary>Hint 3: details</summary>
#
# x passes through enter of comm first and is multiplied then; the other way round, backward would not sum the gradient of x. Use floor division for the width. Where bias is None, do not read it.
# </details>

# %% lang="zh"
# TODO 1 · column_parallel
def column_parallel(comm, x, weight, bias):
    """x [..., in] -> 这个 rank 的列 [..., out / comm.size]。"""
    # TODO 1：只读自己的列；前向不通信，反向把 x 的梯度求和。
    # y = ???
    # BEGIN SOLUTION
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.enter(x) @ weight[:, mine]
    if bias is not None:
        y = y + bias[mine]
    # END SOLUTION
    return y

# %% lang="en"
# TODO 1 · column_parallel
def column_parallel(comm, x, weight, bias):
    """x [..., in] -> this rank's columns [..., out / comm.size]."""
    # TODO 1: read your own columns only; no communication forward, sum x's gradient backward.
    # y = ???
    # BEGIN SOLUTION
    width = weight.shape[1] // comm.size
    mine = slice(comm.rank * width, (comm.rank + 1) * width)
    y = comm.enter(x) @ weight[:, mine]
    if bias is not None:
        y = y + bias[mine]
    # END SOLUTION
    return y

# %% lang="zh"
# CHECK 1
with check_todo(1, 'column_parallel') as call:
    from parlab.lesson.tensor_cases import linear_cases
    from parlab.lesson.tensor_check import column_findings
    from parlab.lesson.tensor_run import run_column
    rules = {
        'late': '每个 rank 都要在 5 秒内算完',
        'ranks': '每个 rank 都做同样的通信；列并行的前向一次也不做',
        'block': 'rank r 只读第 r 段列，偏置也只读对应的一段',
        'shape': '每个 rank 返回自己的列：形状是 [..., out / tp]',
        'graph': '结果要连着 x 和权重，反向才走得通',
        'forward': '列并行的前向不通信：每个 rank 留着自己的列',
        'bias': '自己那一段偏置恰好加一次',
        'y': '每个 rank 的 y 等于完整结果里自己的那几列',
        'backward': '反向恰好 1 次 all-reduce：各 rank 手里只是 x 的梯度的一个加数',
        'x.grad': '反向之后，每个 rank 都有 x 的完整梯度',
        'weight.grad': '自己那一块权重的梯度等于完整梯度的那一块',
        'bias.grad': '自己那一段偏置的梯度等于完整梯度的那一段',
        'largest': '一个 rank 不该有比 x、自己的权重和自己的 y 更大的张量',
    }
    for case in linear_cases():
        ran = call.run(run_column, case)
        for aspect, expected, actual in column_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% lang="en"
# CHECK 1
with check_todo(1, 'column_parallel') as call:
    from parlab.lesson.tensor_cases import linear_cases
    from parlab.lesson.tensor_check import column_findings
    from parlab.lesson.tensor_run import run_column
    rules = {
        'late': 'every rank must finish within 5 seconds',
        'ranks': 'every rank calls the same operations; column parallel calls none forward',
        'block': 'rank r reads run r of the columns only, and the matching run of the bias',
        'shape': 'each rank returns its own columns: the shape is [..., out / tp]',
        'graph': 'the result must depend on x and the weight, or there is no backward',
        'forward': 'column parallel does not communicate forward: each rank keeps its columns',
        'bias': 'the matching run of the bias is added exactly once',
        'y': "each rank's y equals its columns of the whole result",
        'backward': "exactly 1 all-reduce backward: a rank has only a summand of x's gradient",
        'x.grad': 'after backward every rank has the complete gradient of x',
        'weight.grad': "the gradient of a rank's block equals that block of the whole gradient",
        'bias.grad': "the gradient of a rank's run equals that run of the whole gradient",
        'largest': 'a rank needs no tensor larger than x, its block of the weight and its own y',
    }
    for case in linear_cases():
        ran = call.run(run_column, case)
        for aspect, expected, actual in column_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% [markdown] lang="zh"
# 现在让**你的**函数在 4 个 rank 上运行，和你猜的对一对。左边是完整的形状，右边是 rank 2 手里的。

# %% [markdown] lang="en"
# Now run **your** function on 4 ranks and compare with what you predicted. On the left the whole shapes, on the right what rank 2 holds.

# %%
if ready('column_parallel'):
    weight, bias = Stored(torch.randn(12, 20)), Stored(torch.randn(20))
    run = run_ranks(4, column_parallel, torch.randn(2, 3, 12, requires_grad=True), weight, bias)
    run.backward(run.results, [torch.ones_like(y) for y in run.results])
    shapes = sorted({tuple(block.shape) for _, block in weight.reads})
    print(f"{'':<8}{'global':<14}local")
    print(f"{'x':<8}{'(2, 3, 12)':<14}{tuple(run.inputs[2][0].shape)}")
    print(f"{'weight':<8}{str(tuple(weight.shape)):<14}{shapes[0]}")
    print(f"{'y':<8}{'(2, 3, 20)':<14}{tuple(run.results[2].shape)}")
    print('communication:', [(r.direction, r.operation, r.shape) for r in run.log_of(2)])

# %% [markdown] lang="zh"
# rank 2 读的是第 10 到 14 列，`y` 的最后一维是 5。
#
# ## TODO 2：行并行的线性层
#
# 写 `row_parallel(comm, x, weight, bias)`：
#
# - `x` 的形状是 [..., in / comm.size]：这个 rank 的那一段，正好是列并行留下的样子；
# - `weight` 是 `Stored`，形状 [in, out]，rank r 只读第 r 段**行**；`bias` 是 `Stored`，形状 [out]，也可能是 None；in 一定能被 `comm.size` 整除；
# - 返回完整的 `y`，形状 [..., out]，每个 rank 上都一样。前向恰好 1 次 all-reduce，反向不通信；
# - 每个 rank 的偏置梯度也要是完整的。
#
# 先猜：偏置在求和**之前**加，每个 rank 加一次，4 个 rank 的结果里有几份偏置？
#
# <details><summary>提示 1：方向</summary>
#
# 和 TODO 1 对称：这次切的是行，通信在后面而不是前面，用图里的 g。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 段的高度是行数除以 rank 数。先用自己的行做矩阵乘，得到一个加数，再求和，最后处理偏置。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 偏置在求和之后加，每个 rank 都读整个偏置。x 已经是自己的那一段，梯度也只属于自己，不要经过 enter。
# </details>

# %% [markdown] lang="en"
# Rank 2 reads columns 10 to 14, and the last dim of its `y` is 5.
#
# ## TODO 2: a row-parallel linear layer
#
# Write `row_parallel(comm, x, weight, bias)`:
#
# - `x` has the shape [..., in / comm.size]: this rank's part, just as column parallel leaves it;
# - `weight` is `Stored`, of shape [in, out], and rank r reads run r of the **rows** only; `bias` is `Stored`, of shape [out], or None; in is always divisible by `comm.size`;
# - return the whole `y` of shape [..., out], the same on every rank. Exactly 1 all-reduce forward, no communication backward;
# - the gradient of the bias is complete on every rank too.
#
# Predict: add the bias **before** the sum, once on each rank. How many biases are in the result of 4 ranks?
#
# <details><summary>Hint 1: direction</summary>
#
# The mirror image of TODO 1: this time the rows are cut, and communication comes behind, not in front. Use the g of the picture.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# The height of a run is the number of rows over the number of ranks. Multiply with your own rows first, which gives a summand; then sum; then take care of the bias.
# </details>
# <details><summary>Hint 3: details</summary>
#
# The bias is added after the sum, and every rank reads all of it. x is your own part already and so is its gradient: it does not pass through enter.
# </details>

# %% lang="zh"
# TODO 2 · row_parallel
def row_parallel(comm, x, weight, bias):
    """x [..., in / comm.size] -> 完整的 y [..., out]，每个 rank 上都一样。"""
    # TODO 2：只读自己的行；前向求和一次，偏置只加一次。
    # y = ???
    # BEGIN SOLUTION
    height = weight.shape[0] // comm.size
    start = comm.rank * height
    y = comm.all_reduce(x @ weight[start:start + height])
    if bias is not None:
        y = y + bias[:]
    # END SOLUTION
    return y

# %% lang="en"
# TODO 2 · row_parallel
def row_parallel(comm, x, weight, bias):
    """x [..., in / comm.size] -> the whole y [..., out], the same on every rank."""
    # TODO 2: read your own rows only; sum once forward, add the bias once.
    # y = ???
    # BEGIN SOLUTION
    height = weight.shape[0] // comm.size
    start = comm.rank * height
    y = comm.all_reduce(x @ weight[start:start + height])
    if bias is not None:
        y = y + bias[:]
    # END SOLUTION
    return y

# %% lang="zh"
# CHECK 2
with check_todo(2, 'row_parallel') as call:
    from parlab.lesson.tensor_cases import linear_cases
    from parlab.lesson.tensor_check import row_findings
    from parlab.lesson.tensor_run import run_row
    rules = {
        'late': '每个 rank 都要在 5 秒内算完',
        'ranks': '每个 rank 都做同样的通信：行并行的前向 1 次 all-reduce',
        'block': 'rank r 只读第 r 段行',
        'shape': '每个 rank 返回完整的 y：形状是 [..., out]',
        'graph': '结果要连着 x 和权重，反向才走得通',
        'forward': '前向恰好 1 次 all-reduce，形状和 y 一样：把各 rank 的加数加起来',
        'bias': '偏置在结果里恰好有一份：求和之后再加',
        'y': '每个 rank 的 y 都等于完整的结果',
        'backward': '反向不通信：每个 rank 已经有 y 的完整梯度，x 的那一段只属于自己',
        'x.grad': 'x 的梯度是完整梯度里自己的那一段',
        'weight.grad': '自己那一块权重的梯度等于完整梯度的那一块',
        'bias.grad': '每个 rank 的偏置梯度都是完整的：偏置在求和之后加',
        'largest': '一个 rank 不该有比自己的 x、自己的权重和 y 更大的张量',
    }
    for case in linear_cases():
        ran = call.run(run_row, case)
        for aspect, expected, actual in row_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% lang="en"
# CHECK 2
with check_todo(2, 'row_parallel') as call:
    from parlab.lesson.tensor_cases import linear_cases
    from parlab.lesson.tensor_check import row_findings
    from parlab.lesson.tensor_run import run_row
    rules = {
        'late': 'every rank must finish within 5 seconds',
        'ranks': 'every rank calls the same operations: row parallel calls 1 all-reduce forward',
        'block': 'rank r reads run r of the rows only',
        'shape': 'each rank returns the whole y: the shape is [..., out]',
        'graph': 'the result must depend on x and the weight, or there is no backward',
        'forward': "exactly 1 all-reduce forward, of y's shape: it adds the ranks' summands",
        'bias': 'the result holds exactly one bias: add it after the sum',
        'y': "each rank's y equals the whole result",
        'backward': "no communication backward: each rank has y's whole gradient, its x is its own",
        'x.grad': "the gradient of x is this rank's part of the whole gradient",
        'weight.grad': "the gradient of a rank's block equals that block of the whole gradient",
        'bias.grad': 'the gradient of the bias is complete on each rank: add it after the sum',
        'largest': 'a rank needs no tensor larger than its x, its block of the weight and y',
    }
    for case in linear_cases():
        ran = call.run(run_row, case)
        for aspect, expected, actual in row_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% [markdown] lang="zh"
# 求和之前加偏置，结果里就有 4 份，也不会有人报错。
#
# 把**你的**两个函数接起来，就是一个张量并行的 MLP。先猜：4 个 rank，前向和反向一共几次通信？

# %% [markdown] lang="en"
# Add the bias before the sum, and the result holds 4 of them, and nobody raises an error.
#
# Chain **your** two functions and you have a tensor-parallel MLP. Predict: on 4 ranks, how many operations forward and backward together?

# %%
def mlp(comm, x, up, up_bias, down, down_bias):
    middle = F.gelu(column_parallel(comm, x, up, up_bias))
    return row_parallel(comm, middle, down, down_bias)

if ready('column_parallel', 'row_parallel'):
    shapes = ((6, 8), (8,), (8, 6), (6,))
    whole = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    tokens = torch.randn(2, 3, 6, dtype=torch.float64, requires_grad=True)
    run = run_ranks(4, mlp, tokens, *map(Stored, whole))
    run.backward(run.results, [torch.ones_like(tokens)] * 4)
    y = F.gelu(tokens @ whole[0] + whole[1]) @ whole[2] + whole[3]
    y.sum().backward()
    print('communication:', [(r.direction, r.operation, r.shape) for r in run.log_of(0)])
    errors = [(got - y).abs().max() for got in run.results]
    errors += [(given[0].grad - tokens.grad).abs().max() for given in run.inputs]
    print('y and x.grad of every rank equal one process:', bool(max(errors) < 1e-12))

# %% [markdown] lang="zh"
# ## Step 3：注意力按头切
#
# 注意力的每个头（attention head）独立计算，所以天然可以分给不同的 rank。wq 的列按头排列：头 0 的 d 列，头 1 的 d 列……按列切成整数个头，就是把头分掉。wo 的行按同样的顺序排列，按行切，正好接上。
#
# 现在的模型大多用 GQA（grouped-query attention）：KV 头（KV head）比 Q 头少，几个 Q 头共用一个。有 a 个 Q 头、k 个 KV 头时，Q 头 i 用 KV 头 i // (a / k)。
#
# 下图是 8 个 Q 头、4 个 KV 头、4 个 rank，颜色和数字是归哪个 rank（由浅到深是 rank 0 到 3）。先猜：rank 2 有哪几个 Q 头，它们用哪个 KV 头？

# %% [markdown] lang="en"
# ## Step 3: attention is cut by heads
#
# Every attention head computes on its own, so heads can be dealt out to ranks. The columns of wq are in order of heads: d columns of head 0, d columns of head 1, and so on. Cut the columns into whole heads, and the heads are shared out. The rows of wo are in the same order; cut by rows, they fit.
#
# Most models today use GQA (grouped-query attention): there are fewer KV heads than Q heads, and several Q heads share one. With a Q heads and k KV heads, Q head i uses KV head i // (a / k).
#
# The picture has 8 Q heads, 4 KV heads and 4 ranks; colours and numbers say which rank owns a part (light to dark is rank 0 to 3). Predict: which Q heads does rank 2 have, and which KV head do they use?

# %%
draw_owners(heads=8, kv_heads=4, tp=4)

# %% [markdown] lang="zh"
# rank 2 有 Q4 和 Q5，它们用 4 // 2 = 2 和 5 // 2 = 2，就是 K2，也在 rank 2 上。只要 tp 能整除 KV 头数，Q 头和 KV 头各自按顺序切成 tp 段，就总能对上。
#
# Llama 3 的 3 个模型都是 8 个 KV 头，都用 tp = 8 训练得起来：

# %% [markdown] lang="en"
# Rank 2 has Q4 and Q5, which use 4 // 2 = 2 and 5 // 2 = 2: K2, and that is on rank 2 as well. As long as tp divides the number of KV heads, Q heads and KV heads cut in order into tp runs always match.
#
# The 3 models of Llama 3 all have 8 KV heads, so that tp = 8 works for each:

# %%
for model in llama3():
    q, kv = model['num_heads'], model['num_kv_heads']
    print(f"{model['name']:<13} {q:>3} Q heads, {kv} KV heads; tp 8: {q // 8} and {kv // 8} a rank")

# %% [markdown] lang="zh"
# ### 3.1 KV 头比 tp 少，会错得无声无息
#
# 8 个 Q 头、2 个 KV 头、tp = 4：KV 头不够每个 rank 分一个，只好复制。每个 rank 有 2 个 Q 头。怎么复制？先猜：下面 3 种做法，哪种是对的，哪种会报错？

# %% [markdown] lang="en"
# ### 3.1 With fewer KV heads than tp, it goes wrong in silence
#
# 8 Q heads, 2 KV heads, tp = 4: there are not enough KV heads for every rank, so they have to be copied. Each rank has 2 Q heads. Copied how? Predict: which of the 3 ways below is right, and which raises an error?

# %%
torch.manual_seed(0)
q, k, v = (torch.randn(1, heads, 6, 4, dtype=torch.float64) for heads in (8, 2, 2))
for name, kept in (
    ('both KV heads on every rank', lambda rank: [0, 1]),
    ('KV head rank % 2', lambda rank: [rank % 2]),
    ('KV head rank // 2', lambda rank: [rank // 2]),
):
    parts = [whole_attention(q.chunk(4, dim=1)[rank], k[:, kept(rank)], v[:, kept(rank)])
             for rank in range(4)]
    error = (torch.cat(parts, dim=1) - whole_attention(q, k, v)).abs().max()
    print(f'{name:<28} error {error:.2f}')

# %% [markdown] lang="zh"
# 没有一种报错，只有 rank // 2 是对的。第一种最容易写出来：q 切了，k 和 v 原样复制。rank 1 上的 Q2 和 Q3 本该都用 KV 头 0，可是本地有 2 个 Q 头、2 个 KV 头，于是 Q3 配上了 KV 头 1。
#
# 复制还有一笔账：一个 KV 头的两份拷贝各自只得到一部分梯度，反向要在拿着同一个头的 rank 之间再求和一次，Megatron-LM 就这样做。本课的规则简单一些：**tp 必须整除 KV 头数**。

# %% [markdown] lang="en"
# None raises an error, and only rank // 2 is right. The first is the easiest to write: q is cut, k and v are copied as they are. Q2 and Q3, on rank 1, should both use KV head 0. But that rank has 2 Q heads and 2 KV heads, so Q3 is paired with KV head 1.
#
# Copying has a price too: each copy of a KV head gets only a part of the gradient, and the ranks that hold the same head have to sum once more backward, as Megatron-LM does. This course's rule is simpler: **tp must divide the number of KV heads**.

# %% [markdown] lang="zh"
# ### 3.2 一个块，一个进程
#
# 下面是一个完整的块，和 Llama 的一样（省去位置编码：它逐头作用，和切分无关）。`whole_attention(q, k, v)` 是因果注意力，q 是 [b, 头, s, d]，k 和 v 是 [b, KV 头, s, d]，头的对应关系就是上面那条规则。

# %% [markdown] lang="en"
# ### 3.2 A block, in one process
#
# Here is a whole block as in Llama (without position encoding, which works head by head and has nothing to do with the cut). `whole_attention(q, k, v)` is causal attention; q is [b, heads, s, d], k and v are [b, KV heads, s, d], and heads are matched by the rule above.

# %%
def whole_block(x, weights, num_heads, num_kv_heads):
    normed = F.rms_norm(x, x.shape[-1:], weights['norm1'])
    q = (normed @ weights['wq']).unflatten(-1, (num_heads, -1)).transpose(1, 2)
    k = (normed @ weights['wk']).unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    v = (normed @ weights['wv']).unflatten(-1, (num_kv_heads, -1)).transpose(1, 2)
    mixed = whole_attention(q, k, v).transpose(1, 2).flatten(2)
    x = x + mixed @ weights['wo']
    normed = F.rms_norm(x, x.shape[-1:], weights['norm2'])
    return x + (F.silu(normed @ weights['w_gate']) * (normed @ weights['w_up'])) @ weights['w_down']

shapes = {'norm1': (12,), 'wq': (12, 32), 'wk': (12, 16), 'wv': (12, 16), 'wo': (32, 12),
          'norm2': (12,), 'w_gate': (12, 20), 'w_up': (12, 20), 'w_down': (20, 12)}
weights = {name: torch.randn(shape) / 4 for name, shape in shapes.items()}
print('y:', tuple(whole_block(torch.randn(2, 5, 12), weights, 8, 4).shape), '; d =', 32 // 8)

# %% [markdown] lang="zh"
# 头的宽度 d 是 wq 的列数除以头数，不一定等于隐藏维除以头数：这里 32 / 8 = 4，而 12 不能被 8 整除。
#
# ### 3.3 几次通信
#
# 块里有两段先列后行：q、k、v 到 wo，gate、up 到 w_down。每段前面一个 f，后面一个 g，所以前向 2 次 all-reduce，反向也是 2 次。
#
# 这里有个陷阱。先猜：如果 q、k、v、gate、up 各用一次你的 `column_parallel`，反向是几次 all-reduce？
#
# 答案是 5 次：每次调用都有自己的 f，每个 f 都单独把梯度求和一遍。结果一样，反向的通信却从 2 次变成 5 次，前向和反向合起来从 4 次变成 7 次。3 个投影共用**同一个** `enter` 的结果，autograd 会先在本地把 3 份梯度加起来，再求和一次。`torch` 的 `ColwiseParallel` 也有这个陷阱，要加 `PrepareModuleInput` 才是 2 次；末尾的证明会让你亲眼看到。
#
# f 的位置也要紧。norm 的权重每个 rank 都有一份，它的梯度也该完整。f 放在 norm **之后**，流到 norm 的已经是求过和的梯度。放在 norm 之前，x 的梯度还是对的，norm 权重的梯度却只剩一个加数，仍然没人报错。

# %% [markdown] lang="en"
# The width d of a head is the number of columns of wq over the number of heads. It need not be the hidden size over the heads: here 32 / 8 = 4, while 8 does not divide 12.
#
# ### 3.3 How many operations
#
# The block has two stretches of column, then row: q, k and v to wo; gate and up to w_down. Each has an f in front and a g behind, so 2 all-reduces forward and 2 backward.
#
# There is a trap. Predict: if q, k, v, gate and up each call your `column_parallel`, how many all-reduces are there backward?
#
# The answer is 5: every call has an f of its own, and each f sums its gradient by itself. The result is the same, but there are 5 operations backward in the place of 2, and 7 in the place of 4 both ways together. Let the 3 projections share the result of **one** `enter`: autograd first adds their 3 gradients locally, and one sum follows. `torch`'s `ColwiseParallel` has the same trap, and needs `PrepareModuleInput` to get to 2; the proof at the end lets you see it.
#
# Where f stands matters too. Every rank has a copy of the norm's weight, and its gradient should be complete. With f **behind** the norm, what flows back into the norm has been summed already. With f in front of it the gradient of x is still right, but that of the norm's weight is only a summand, and again nobody raises an error.

# %% [markdown] lang="zh"
# ### 3.4 一次 all-reduce 发多少字节
#
# rank 排成环，每个 rank 只发给下一个。数据切成 n 片。前一半的步骤里，每一步发出一片，对方加到自己的那片上：走完 n − 1 步，每片的总和都在某个 rank 上（这就是 reduce-scatter）。后一半再走 n − 1 步，把总和传给所有人（all-gather）。下图是 4 个 rank，颜色和数字是第几片。
#
# 先猜：4 个 rank 对 100 MB 的张量做 all-reduce，每个 rank 发出多少 MB？

# %% [markdown] lang="en"
# ### 3.4 How many bytes an all-reduce sends
#
# The ranks form a ring, and each sends to the next one only. The data are cut into n pieces. In the first half of the steps every rank sends one piece, which the next rank adds to its own: after n − 1 steps the sum of each piece is on some rank (that is a reduce-scatter). In the second half, another n − 1 steps pass the sums on to everybody (an all-gather). The picture has 4 ranks; colour and number say which piece.
#
# Predict: 4 ranks all-reduce a tensor of 100 MB. How many MB does each rank send?

# %%
draw_ring()

# %% [markdown] lang="zh"
# 一共 2(n − 1) 步，每步发 1/n 的数据：
#
# $$\text{sent} = \frac{2(n-1)}{n} \times \text{bytes}$$
#
# 4 个 rank 是 2 × 3 / 4 = 1.5 倍，150 MB。rank 再多，也不会超过 2 倍。`comm` 的记录里，`bytes` 是交给操作的字节数，`sent` 是一片一片数出来的发送量：

# %% [markdown] lang="en"
# That is 2(n − 1) steps, each of which sends 1/n of the data:
#
# $$\text{sent} = \frac{2(n-1)}{n} \times \text{bytes}$$
#
# With 4 ranks that is 2 × 3 / 4 = 1.5 times, 150 MB. However many ranks there are, it is never more than 2 times. In the records of `comm`, `bytes` is what was handed to the operation, and `sent` counts piece by piece what goes out:

# %%
for n in (1, 2, 4, 8, 16):
    (record,) = run_ranks(n, lambda comm: comm.all_reduce(torch.ones(160))).log_of(0)
    print(f'{n:>2} ranks: {record.bytes} bytes handed over, {record.sent:>4} sent by each rank')

# %% [markdown] lang="zh"
# ## TODO 3：一个 rank 上的整个块
#
# 写 `parallel_block(comm, x, weights, num_heads, num_kv_heads)`，返回 `(y, sent)`：
#
# - `x` 是 [b, s, hidden]，每个 rank 上都一样；`weights` 是名字到 `Stored` 的字典，名字和形状与 `whole_block` 相同；
# - 每个 rank 只读自己的块：wq、wk、wv、w_gate、w_up 的第 r 段列，wo、w_down 的第 r 段行，两个 norm 整个读；
# - `num_heads` 和 `num_kv_heads` 是整个模型的头数，都能被 `comm.size` 整除；
# - `y` 是 [b, s, hidden]，每个 rank 上都等于 `whole_block` 的结果；前向恰好 2 次 all-reduce，反向恰好 2 次，所有的梯度都对；
# - `sent` 是这个 rank 为这个块发出的字节数，前向加反向，是一个 int。每个数占几个字节由 `x` 的 dtype 决定（`x.element_size()`）。例如 `x` 是 [2, 5, 12]、float32，共 480 字节，4 个 rank：`sent` 是 2880。
#
# <details><summary>提示 1：方向</summary>
#
# 从 whole_block 出发，一行一行地改。矩阵换成自己的那一块，头数换成本地的头数，再在四个地方加上 f 和 g。残差和 norm 不变。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 先写一个小函数，按名字读出自己的列或自己的行。注意力一段：norm，f，三个投影，注意力，wo，g，加残差。MLP 一段：norm，f，gate 和 up，相乘，w_down，g，加残差。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 残差在求和之后加，否则会被加 tp 次。f 在 norm 之后。四次 all-reduce 的张量都和 x 一样大；先乘后整除，免得整除丢掉小数。
# </details>

# %% [markdown] lang="en"
# ## TODO 3: a whole block on one rank
#
# Write `parallel_block(comm, x, weights, num_heads, num_kv_heads)`, which returns `(y, sent)`:
#
# - `x` is [b, s, hidden] and the same on every rank; `weights` is a dict from name to `Stored`, with the names and shapes of `whole_block`;
# - each rank reads its own blocks only: run r of the columns of wq, wk, wv, w_gate and w_up, run r of the rows of wo and w_down, and the two norms whole;
# - `num_heads` and `num_kv_heads` are those of the whole model; `comm.size` divides both;
# - `y` is [b, s, hidden], on every rank equal to the result of `whole_block`; exactly 2 all-reduces forward and exactly 2 backward, and every gradient right;
# - `sent` is the number of bytes that this rank sends for the block, forward and backward together, an int. How many bytes a number takes follows from the dtype of `x` (`x.element_size()`). For example, with `x` [2, 5, 12] in float32, which is 480 bytes, and 4 ranks, `sent` is 2880.
#
# <details><summary>Hint 1: direction</summary>
#
# Start from whole_block and change it line by line. Put your own block in the place of each matrix and the local number of heads in the place of the whole one, then add f and g in four places. Residuals and norms stay as they are.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Write a small function first, which reads your own columns or your own rows by name. The attention stretch: norm, f, three projections, attention, wo, g, residual. The MLP stretch: norm, f, gate and up, multiply, w_down, g, residual.
# </details>
# <details><summary>Hint 3: details</summary>
#
# The residual is added after the sum, or it is added tp times. f comes behind the norm. The tensor of each of the four all-reduces is as large as x; multiply first and divide last, so that floor division drops nothing.
# </details>

# %% lang="zh"
# TODO 3 · parallel_block
def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    """x [b, s, hidden] -> (y [b, s, hidden], 这个 rank 发出的字节数)。"""
    # TODO 3：两段先列后行，每段一个 f、一个 g；头按顺序分给各 rank。
    # y, sent = ???
    # BEGIN SOLUTION
    def own(name, dim):
        size = weights[name].shape[dim] // comm.size
        mine = slice(comm.rank * size, (comm.rank + 1) * size)
        return weights[name][mine] if dim == 0 else weights[name][:, mine]

    entered = comm.enter(F.rms_norm(x, x.shape[-1:], weights['norm1'][:]))
    q, k, v = [
        (entered @ own(name, 1)).unflatten(-1, (heads // comm.size, -1)).transpose(1, 2)
        for name, heads in (('wq', num_heads), ('wk', num_kv_heads), ('wv', num_kv_heads))
    ]
    x = x + comm.all_reduce(whole_attention(q, k, v).transpose(1, 2).flatten(2) @ own('wo', 0))

    entered = comm.enter(F.rms_norm(x, x.shape[-1:], weights['norm2'][:]))
    wide = F.silu(entered @ own('w_gate', 1)) * (entered @ own('w_up', 1))
    y = x + comm.all_reduce(wide @ own('w_down', 0))
    sent = 4 * 2 * (comm.size - 1) * x.numel() * x.element_size() // comm.size
    # END SOLUTION
    return y, sent

# %% lang="en"
# TODO 3 · parallel_block
def parallel_block(comm, x, weights, num_heads, num_kv_heads):
    """x [b, s, hidden] -> (y [b, s, hidden], bytes that this rank sends)."""
    # TODO 3: two stretches of column, then row, each with an f and a g; heads go to ranks in order.
    # y, sent = ???
    # BEGIN SOLUTION
    def own(name, dim):
        size = weights[name].shape[dim] // comm.size
        mine = slice(comm.rank * size, (comm.rank + 1) * size)
        return weights[name][mine] if dim == 0 else weights[name][:, mine]

    entered = comm.enter(F.rms_norm(x, x.shape[-1:], weights['norm1'][:]))
    q, k, v = [
        (entered @ own(name, 1)).unflatten(-1, (heads // comm.size, -1)).transpose(1, 2)
        for name, heads in (('wq', num_heads), ('wk', num_kv_heads), ('wv', num_kv_heads))
    ]
    x = x + comm.all_reduce(whole_attention(q, k, v).transpose(1, 2).flatten(2) @ own('wo', 0))

    entered = comm.enter(F.rms_norm(x, x.shape[-1:], weights['norm2'][:]))
    wide = F.silu(entered @ own('w_gate', 1)) * (entered @ own('w_up', 1))
    y = x + comm.all_reduce(wide @ own('w_down', 0))
    sent = 4 * 2 * (comm.size - 1) * x.numel() * x.element_size() // comm.size
    # END SOLUTION
    return y, sent

# %% lang="zh"
# CHECK 3
with check_todo(3, 'parallel_block') as call:
    from parlab.lesson.tensor_cases import block_cases
    from parlab.lesson.tensor_check import block_findings
    from parlab.lesson.tensor_run import run_block
    rules = {
        'late': '每个 rank 都要在 5 秒内算完',
        'ranks': '每个 rank 都做同样的通信：前向 2 次 all-reduce',
        'pair': '返回两样东西：y 和 sent',
        'heads': 'rank r 拥有第 r 段 Q 头：wq 的第 r 段列，和它们用的 KV 头在同一个 rank 上',
        'kv_heads': 'rank r 拥有第 r 段 KV 头：wk 和 wv 的第 r 段列，一个 KV 头只在一个 rank 上',
        'block': 'w_gate、w_up 读第 r 段列，wo、w_down 读第 r 段行，norm 整个读',
        'shape': '每个 rank 返回完整的 y，形状和 x 一样',
        'graph': '结果要连着 x 和权重，反向才走得通',
        'forward': '前向恰好 2 次 all-reduce，形状和 x 一样：wo 之后一次，w_down 之后一次',
        'y': '每个 rank 的 y 都等于 whole_block 的结果；残差在求和之后加，否则会加 tp 次',
        'backward': '反向恰好 2 次 all-reduce：注意力一段、MLP 一段，各共用一个 enter',
        'norm.grad': 'norm 的权重每个 rank 都有，梯度也要完整：enter 放在 norm 之后',
        'weight.grad': '自己那一块权重的梯度等于完整梯度的那一块',
        'x.grad': '反向之后，每个 rank 都有 x 的完整梯度',
        'largest': '一个 rank 不该有完整的权重，也不该有比自己的激活更大的张量',
        'sent': 'sent 是这个 rank 发出的字节数：前向和反向的每次 all-reduce 都按 3.4 的公式，是 int',
    }
    for case in block_cases():
        ran = call.run(run_block, case)
        for aspect, expected, actual in block_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% lang="en"
# CHECK 3
with check_todo(3, 'parallel_block') as call:
    from parlab.lesson.tensor_cases import block_cases
    from parlab.lesson.tensor_check import block_findings
    from parlab.lesson.tensor_run import run_block
    rules = {
        'late': 'every rank must finish within 5 seconds',
        'ranks': 'every rank calls the same operations: 2 all-reduces forward',
        'pair': 'return two things: y and sent',
        'heads': 'rank r owns run r of the Q heads, the columns of wq, where their KV heads are',
        'kv_heads': 'rank r owns run r of the KV heads, in wk and wv: one KV head is on one rank',
        'block': 'run r of the columns of w_gate and w_up, of the rows of wo and w_down; norms whole',
        'shape': "each rank returns the whole y, of x's shape",
        'graph': 'the result must depend on x and the weights, or there is no backward',
        'forward': "exactly 2 all-reduces forward, of x's shape: after wo and after w_down",
        'y': "each rank's y equals whole_block's; add residuals after the sum, or they count tp times",
        'backward': 'exactly 2 all-reduces backward: one enter for attention, one for the MLP',
        'norm.grad': "every rank has the norms, with complete gradients: enter behind the norm",
        'weight.grad': "the gradient of a rank's block equals that block of the whole gradient",
        'x.grad': 'after backward every rank has the complete gradient of x',
        'largest': 'a rank needs no whole weight, and no tensor larger than its activations',
        'sent': 'sent is the bytes this rank sends: each all-reduce both ways, by 3.4, as an int',
    }
    for case in block_cases():
        ran = call.run(run_block, case)
        for aspect, expected, actual in block_findings(ran):
            assert actual == expected, call.wrong(rules[aspect], expected, actual)

# %% [markdown] lang="zh"
# ### 3.5 真实模型的账
#
# 让**你的**函数跑 Llama 3 的真实尺寸：一个 8192 token 的序列，bfloat16。放在 `meta` 设备上的张量只有形状、没有数据，所以 405B 的一层也能在笔记本里走一遍。
#
# 先猜：tp 从 2 变成 8，每个 rank 的权重变成几分之一？发出的字节数呢？

# %% [markdown] lang="en"
# ### 3.5 The bill of real models
#
# Let **your** function run at the real sizes of Llama 3: a sequence of 8192 tokens, in bfloat16. Tensors on the `meta` device have a shape and no data, so that even a layer of the 405B model can be walked through in a notebook.
#
# Predict: when tp goes from 2 to 8, by what factor do the weights of a rank shrink? And the bytes it sends?

# %%
def dry_run(model, tp, tokens=8192):
    def stored(*shape):
        return Stored(torch.empty(shape, dtype=torch.bfloat16, device='meta'))
    hidden, ffn, heads, kv_heads = (
        model[key] for key in ('hidden', 'ffn', 'num_heads', 'num_kv_heads'))
    q, kv = heads * model['head_dim'], kv_heads * model['head_dim']
    weights = {'norm1': stored(hidden), 'wq': stored(hidden, q), 'wk': stored(hidden, kv),
               'wv': stored(hidden, kv), 'wo': stored(q, hidden), 'norm2': stored(hidden),
               'w_gate': stored(hidden, ffn), 'w_up': stored(hidden, ffn),
               'w_down': stored(ffn, hidden)}
    x = torch.empty(1, tokens, hidden, dtype=torch.bfloat16, device='meta')
    run = run_ranks(tp, parallel_block, x, weights, heads, kv_heads, seconds=60)
    numbers = sum(block.numel() for w in weights.values() for _, block in w.reads) / tp
    return {'name': model['name'], 'tp': tp, 'sent': run.results[0][1], 'numbers': numbers,
            'compute_s': 6 * numbers * tokens / 400e12}

if ready('parallel_block'):
    bill = [dry_run(model, tp) for model in llama3() for tp in (1, 2, 4, 8)]
    print(f"{'one layer of':<14}{'tp':>3}{'weights, MB':>13}{'sent, MB':>10}  per rank")
    for row in bill:
        print(f"{row['name']:<14}{row['tp']:>3}{2 * row['numbers'] / 1e6:>13.0f}"
              f"{row['sent'] / 1e6:>10.0f}")

# %% [markdown] lang="zh"
# 权重变成四分之一，发送量却**增加**到 1.75 倍：从一倍涨到 2 × 7 / 8 倍。计算随 tp 变少，通信不变少，所以 tp 越大，通信占的时间越多。
#
# 下图左边是发送量。右边估一估 405B 的一层花在通信上的时间，按每张卡 400 TFLOP/s、6 次浮点运算一个参数，注意力分数不算在内，通信完全暴露。**这是推算，证据等级（evidence level）是 `analytic`。** 实线是机器内部的链路，虚线是机器之间的网络。

# %% [markdown] lang="en"
# The weights shrink to a quarter, but the traffic **grows** to 1.75 times: from once the size of the data to 2 × 7 / 8 times. Compute goes down with tp and communication does not, so the larger tp is, the more of the time goes into communication.
#
# On the left of the picture is the traffic. On the right an estimate of the time that a layer of the 405B model spends sending, at 400 TFLOP/s a device and 6 floating-point operations a parameter, without attention scores, with communication fully exposed. **This is computed, its evidence level is `analytic`.** The solid line is a link inside a machine, the dashed line the network between machines.

# %%
if ready('parallel_block'):
    draw_layer_traffic(bill)

# %% [markdown] lang="zh"
# 这就是 TP 组要待在一台机器里的原因。一台机器通常有 8 张卡，而 Megatron-LM 和 Llama 3 405B 的大模型正好都用 tp = 8。
#
# ## Step 4：序列并行改变了什么
#
# 块里还有没切的部分：norm 和残差，每个 rank 都拿着**全部** token 的激活（activation），算得也一模一样。序列并行（sequence parallelism, SP；arXiv 2205.05198）把这些部分按 token 切开，每个 rank 只留 1/tp 的 token。
#
# 进入矩阵乘之前要凑齐全部 token：all-gather。出来的时候求和并且各取一段：reduce-scatter。也就是把一次 all-reduce 拆成了它的两半。先猜：字节数变多、变少，还是不变？

# %% [markdown] lang="en"
# That is why a TP group should stay inside one machine. A machine usually has 8 devices, and the large models of Megatron-LM and Llama 3 405B use tp = 8 indeed.
#
# ## Step 4: what sequence parallelism changes
#
# Something in the block is not cut yet: norms and residuals. Every rank holds the activations of **all** tokens there and computes the same. Sequence parallelism (SP; arXiv 2205.05198) cuts these parts by tokens, so that each rank keeps 1/tp of them.
#
# Before the products all tokens have to come together: an all-gather. Behind them, sum and keep one part each: a reduce-scatter. So one all-reduce is split into its two halves. Predict: more bytes, fewer, or the same?

# %%
draw_regions()

# %%
def both_ways(comm, x):
    whole = comm.all_reduce(x)
    part = comm.reduce_scatter(x, dim=0)
    return torch.equal(whole, comm.all_gather(part, dim=0))

run = run_ranks(4, both_ways, torch.randn(8, 16))
print('the same result on every rank:', all(run.results))
for record in run.log_of(0):
    print(f'{record.operation:<15} {record.sent:>5} bytes sent')

# %% [markdown] lang="zh"
# 768 = 384 + 384：字节数**不变**，内存变少。（CPU 上的 gloo 后端例外：它的 reduce-scatter 其实是一次 all-reduce 再切一片，通信反而更多。）反向也一样：all-gather 的反向是 reduce-scatter，反过来也是。
#
# 省多少？GPT 结构、16 位、不保存注意力分数时，一层的激活是（s 序列，b 微批次，h 隐藏维，t 就是 tp）：
#
# | | 每个 rank 的字节数 |
# |---|---|
# | 只用 TP | $sbh\,(10 + 24/t)$ |
# | TP + SP | $sbh \cdot 34/t$ |
#
# 那个 10 就是没切开的 norm、残差和 dropout。下图是论文里的 3 个模型，tp = 8：

# %% [markdown] lang="en"
# 768 = 384 + 384: the **same** bytes, less memory. (The gloo backend on CPU is an exception: its reduce-scatter is in truth an all-reduce of which a part is kept, which means more traffic.) Backward is alike: backward of an all-gather is a reduce-scatter, and the other way round.
#
# How much is saved? For a GPT block in 16 bits, where attention scores are not stored, the activations of a layer are (s sequence, b microbatch, h hidden size, t is tp):
#
# | | bytes per rank |
# |---|---|
# | TP alone | $sbh\,(10 + 24/t)$ |
# | TP + SP | $sbh \cdot 34/t$ |
#
# That 10 is the norms, residuals and dropout that are not cut. The picture has 3 models of the paper, with tp = 8:

# %%
rows = []
for model in korthikanti():
    sbh = model['sequence_length'] * model['micro_batch'] * model['hidden']
    t = model['tp']
    rows.append({'name': model['name'], 'tp_mb': sbh * (10 + 24 / t) / 1e6,
                 'sp_mb': sbh * 34 / t / 1e6})
draw_activations(rows)

# %% [markdown] lang="zh"
# 13 对 4.25，少了三分之二。代价是序列长度要能被 tp 整除。
#
# ## Step 5：真实的进程
#
# 线程只是排练。下面的单元把**你的**三个函数写进文件，在 4 个真实的进程里运行（`torchrun`，gloo 后端），和两样不是我们写的东西比对：一个进程里没切的层，以及 `torch` 的 DTensor（`parallelize_module`，`ColwiseParallel`，`RowwiseParallel`）。比输出，也比每一个梯度，并且数一数通信。
#
# 默认不启动进程。把 `RUN_PROOF` 改成 True，一共通常 10 到 20 秒，机器忙的时候更久：启动不计时，4 个进程都就绪之后，最多再运行 20 秒。先猜：DTensor 不加 `PrepareModuleInput` 时，反向几次 all-reduce？

# %% [markdown] lang="en"
# 13 against 4.25: two thirds less. The price: tp has to divide the sequence length.
#
# ## Step 5: real processes
#
# Threads were the rehearsal. The cell below writes **your** three functions to a file and runs them in 4 real processes (`torchrun`, gloo backend), beside two things that we did not write: the uncut layers in one process, and `torch`'s DTensor (`parallelize_module`, `ColwiseParallel`, `RowwiseParallel`). Outputs are compared, and every gradient, and operations are counted.
#
# No process starts by default. Set `RUN_PROOF` to True; it usually takes 10 to 20 seconds in all, longer on a busy machine: start-up is not counted, and once all 4 processes are up they have 20 seconds. Predict: without `PrepareModuleInput`, how many all-reduces does DTensor do backward?

# %% lang="zh"
RUN_PROOF = False  # 改成 True：启动 4 个真实的进程

if ready('column_parallel', 'row_parallel', 'parallel_block'):
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_tensor',
                       [column_parallel, row_parallel, parallel_block], ranks=4)
    if report:
        show_proof(report)

# %% lang="en"
RUN_PROOF = False  # True: start 4 real processes

if ready('column_parallel', 'row_parallel', 'parallel_block'):
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_tensor',
                       [column_parallel, row_parallel, parallel_block], ranks=4)
    if report:
        show_proof(report)

# %% [markdown] lang="zh"
# ## 🛑 STOP HERE 🛑
#
# 先完成题目、通过检查，再看[参考答案](repo:solutions/02_tensor_parallel.ipynb)。
#
# **下一课** `03_context_parallel`：矩阵切开了，序列很长时激活还是放不下，于是把序列也切开。
#
# **延伸阅读**
#
# - Megatron-LM，先列后行，f 和 g：[arXiv 1909.08053](https://arxiv.org/abs/1909.08053) 第 3 节
# - 序列并行与激活显存的账：[arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - GQA：[arXiv 2305.13245](https://arxiv.org/abs/2305.13245)
# - `torch` 的张量并行：[教程](https://docs.pytorch.org/tutorials/intermediate/TP_tutorial.html)

# %% [markdown] lang="en"
# ## 🛑 STOP HERE 🛑
#
# Finish the tasks and pass the checks before you look at the [reference solution](repo:solutions/en/02_tensor_parallel.ipynb).
#
# **Next** `03_context_parallel`: the matrices are cut, but for long sequences the activations still do not fit, so the sequence is cut as well.
#
# **Further reading**
#
# - Megatron-LM, column then row, f and g: [arXiv 1909.08053](https://arxiv.org/abs/1909.08053), section 3
# - Sequence parallelism and what activations cost: [arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - GQA: [arXiv 2305.13245](https://arxiv.org/abs/2305.13245)
# - `torch`'s tensor parallelism: [tutorial](https://docs.pytorch.org/tutorials/intermediate/TP_tutorial.html)
