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
# # 04 · 模型内部并行：一个模型，一张 Device Mesh
#
# **难度** Hard | **环境** CPU-first，不需要 GPU | **标签** PP, TP, CP, Device Mesh
#
# **时间** 阅读约 25 分钟，动手约 40 分钟
#
# **前置** `01_pipeline_parallel`、`02_tensor_parallel`、`03_context_parallel`。只想先看全貌也可以：本课用到的概念都会重新说一遍。
#
# 一个模型放不进一张卡，就要切开。切法有三种：按层切、按矩阵切、按序列切。本课把三种切法放到同一张设备网格（Device Mesh）上，再回答一个实际的问题：
# **8 张卡有 10 种摆法，该选哪一种？**
#
# 你要写 3 个函数：检查一种摆法是否合法，按准入门槛（admission gate）淘汰候选（candidate），从合格的候选里选一个。每个函数后面都有检查，马上告诉你对错和原因。

# %% [markdown] lang="en"
# # 04 · Model-internal parallelism: one model, one Device Mesh
#
# **Difficulty** Hard | **Environment** CPU-first, no GPU needed | **Tags** PP, TP, CP, Device Mesh
#
# **Time** about 25 minutes to read, about 40 to do
#
# **Prerequisites** `01_pipeline_parallel`, `02_tensor_parallel`, `03_context_parallel`. You can also start here for the big picture: every idea that this lesson needs is explained again.
#
# A model that does not fit on one device has to be cut. There are three ways to cut: by layers, by matrices, by the sequence. This lesson puts all three on one device mesh and then answers a practical question:
# **8 devices can be arranged in 10 ways. Which one do you pick?**
#
# You write 3 functions: one checks whether an arrangement is legal, one rejects candidates at the admission gates, one picks among those that pass. A check follows each function and tells you at once what is right, what is wrong and why.

# %%
# SETUP
import torch

from parlab.lesson.checks import check_todo, ready
from parlab.lesson.draw_candidates import draw_gates, draw_steps
from parlab.lesson.draw_cuts import draw_cuts
from parlab.lesson.draw_layouts import draw_admission, draw_stages
from parlab.lesson.draw_mesh import draw_mesh
from parlab.lesson.fake_mesh import fake_mesh
from parlab.lesson.published import layout, llama3_405b, megatron

# %% [markdown] lang="zh"
# ## Step 1：从切分对象建立 Device Mesh
#
# 三个轴（axis）切的是不同的东西，所以可以叠在一起用。
#
# | 轴 | 切什么 | 每个 rank 拿到 | 主要代价 |
# |---|---|---|---|
# | 流水线并行（pipeline parallelism, PP） | 连续的层 | 一个阶段（stage） | 阶段之间传激活（activation）、气泡（bubble）、各阶段快慢不均 |
# | 张量并行（tensor parallelism, TP） | 层里的矩阵和注意力头（attention head） | 每一层的一部分 | 每层都要 all-reduce，或 all-gather 加 reduce-scatter |
# | 上下文并行（context parallelism, CP） | 序列 | 一段 token | 交换 K/V，序列越长越多 |
#
# 一个 rank 是一个进程，通常管一张卡。rank 之间有两种通信。点对点通信（point-to-point, P2P）是一个发、一个收。集合通信（collective）是一组 rank 一起做：all-reduce 让每个 rank 得到总和，all-gather 让每个 rank 得到全部分片，reduce-scatter 让每个 rank 得到总和的一片。
#
# 先猜：哪一种切法**不**减少每个 rank 上的权重？看图验证。图中方格是权重（行是层，列是头），下面的长条是 16 个 token，颜色表示归哪个 rank，灰色（有斜线）表示每个 rank 都有一份。

# %% [markdown] lang="en"
# ## Step 1: from what is cut to a Device Mesh
#
# The three axes cut different things, so they can be stacked.
#
# | axis | cuts | a rank gets | main cost |
# |---|---|---|---|
# | pipeline parallelism (PP) | consecutive layers | one stage | sending activations between stages, the bubble, uneven stages |
# | tensor parallelism (TP) | a layer's matrices and attention heads | a part of every layer | an all-reduce in every layer, or all-gather plus reduce-scatter |
# | context parallelism (CP) | the sequence | a contiguous chunk of tokens | exchanging K/V: the longer the sequence, the more there is |
#
# A rank is one process, usually with one device. Ranks communicate in two ways. Point-to-point (P2P): one sends and one receives. In a collective a whole group takes part: all-reduce gives every rank the sum, all-gather gives every rank all parts, reduce-scatter gives every rank one part of the sum.
#
# Predict first: which cut does **not** reduce the weights on each rank? Then look. The grid is the weights (rows are layers, columns are heads), the strip below is 16 tokens, the colour says which rank owns a part, and grey (hatched) means that every rank has a copy.

# %%
draw_cuts()

# %% [markdown] lang="zh"
# ### 1.1 全局形状与本地形状
#
# 把一个和 Llama 3 8B 一样大的模型放到 pp = 4、cp = 2、tp = 8 的网格上：32 层，32 个头，8 个 KV 头（KV head），隐藏维（hidden size）4096，序列 8192。每个头 128 维，所以 K 的宽度是 8 × 128 = 1024。
#
# 左边是完整的形状，右边是一个 rank 手里的形状。每一行只被**一个**轴切开，而且只切**一个**维（dim）。

# %% [markdown] lang="en"
# ### 1.1 Global shapes and local shapes
#
# Put a model of the size of Llama 3 8B on a mesh of pp = 4, cp = 2, tp = 8: 32 layers, 32 heads, 8 KV heads, hidden size 4096, sequence 8192. Each head has 128 dims, so K is 8 × 128 = 1024 wide.
#
# On the left the whole shape, on the right what one rank holds. Each row is cut by **one** axis only, along **one** dim only.

# %%
mesh = {'pp': 4, 'cp': 2, 'tp': 8}
tensors = {
    'layers': ((32,), 'pp'),
    'wq of a layer': ((4096, 4096), 'tp'),
    'wk of a layer': ((1024, 4096), 'tp'),
    'x (token, hidden)': ((8192, 4096), 'cp'),
}
print(f"{'':<20}{'global':<14}{'axis':<6}{'local'}")
for name, (shape, axis) in tensors.items():
    part = torch.empty(shape, device='meta').chunk(mesh[axis], dim=0)[0]
    print(f'{name:<20}{str(shape):<14}{axis:<6}{tuple(part.shape)}')

# %% [markdown] lang="zh"
# ### 1.2 把 world size 拆成三个因子
#
# world size 是 rank 的总数。三个轴的大小相乘必须正好等于它：
#
# $$pp \times tp \times cp = \text{world size}$$
#
# 先猜：8 个 rank 有几种拆法？7 个呢？24 个呢？

# %% [markdown] lang="en"
# ### 1.2 Factor the world size into three sizes
#
# The world size is the number of ranks. The sizes of the three axes, multiplied, must be exactly that:
#
# $$pp \times tp \times cp = \text{world size}$$
#
# Predict: in how many ways can 8 ranks be split? And 7? And 24?

# %%
def meshes(world):
    sizes = [n for n in range(1, world + 1) if world % n == 0]
    pairs = [(pp, tp) for pp in sizes for tp in sizes if world % (pp * tp) == 0]
    return [(pp, tp, world // (pp * tp)) for pp, tp in pairs]

for world in (7, 8, 24, 512):
    print(f'world {world:>3}: {len(meshes(world)):>2} meshes')
print('(pp, tp, cp) of 8:', *meshes(8)[:5])
print('                  ', *meshes(8)[5:])

# %% [markdown] lang="zh"
# ### 1.3 rank 怎样编号
#
# 24 个 rank，pp = 3，cp = 2，tp = 4。从外到内的顺序是 pp、cp、tp：最里面的轴变化最快，所以同一个 TP 组的 rank 号是相邻的。
#
# 整张网格就是一行代码，也就是 rank = (pp × 2 + cp) × 4 + tp。先猜 rank 11 的坐标，再运行。

# %% [markdown] lang="en"
# ### 1.3 How ranks are numbered
#
# 24 ranks, pp = 3, cp = 2, tp = 4. From outer to inner the order is pp, cp, tp: the innermost axis changes fastest, so the ranks of one TP group have neighbouring numbers.
#
# The whole mesh is one line of code, which means rank = (pp × 2 + cp) × 4 + tp. Guess the coordinate of rank 11, then run.

# %%
ranks = torch.arange(24).view(3, 2, 4)  # (pp, cp, tp)
print(ranks)
pp, cp, tp = (ranks == 11).nonzero()[0].tolist()
print(f'rank 11 is at pp={pp}, cp={cp}, tp={tp}')

# %% [markdown] lang="zh"
# ### 1.4 每个轴有自己的进程组
#
# 沿一个轴变化、另外两个坐标固定的那些 rank，组成一个进程组（process group）。下图画出同一张网格的 3 种分组，连在一条线上的 rank 是一组，红色是 rank 11 所在的组；每个 pp 下的两行是 cp = 0 和 1。
#
# 每个 rank 恰好属于 3 个组，每个轴一个。

# %% [markdown] lang="en"
# ### 1.4 Every axis has its own process groups
#
# The ranks along one axis, with the other two coordinates fixed, form a process group. The picture shows the 3 groupings of the same mesh: ranks on one line are one group, red marks the groups of rank 11; the two rows of each pp are cp = 0 and 1.
#
# Every rank belongs to exactly 3 groups, one for each axis.

# %%
draw_mesh(pp=3, cp=2, tp=4, highlight=11)

# %% [markdown] lang="zh"
# 组不能混。假设每个 rank 手里的数就是自己的编号，rank 11 参加一次求和（all-reduce）。在 4 种组里求和，得到 4 个不同的结果，而且**没有一个会报错**：数值错得无声无息。

# %% [markdown] lang="en"
# Groups must not be mixed. Say each rank holds one number, its own rank number, and rank 11 takes part in a sum (an all-reduce). 4 kinds of group give 4 different results, and **none of them raises an error**: the number is silently wrong.

# %%
groups = {'tp': ranks[1, 0, :], 'cp': ranks[1, :, 3], 'pp': ranks[:, 0, 3]}
for axis, group in groups.items():
    print(f'sum over the {axis} group of rank 11: {group.tolist()} -> {group.sum()}')
print(f'sum over the whole world: {ranks.sum()}')

# %% [markdown] lang="zh"
# ### 1.5 问一问真正的 DeviceMesh
#
# 上面的坐标是我们自己算的。现在问 `torch`：`init_device_mesh` 建出真正的 DeviceMesh。这里用 `fake` 后端（backend），一个进程就能扮演 24 个 rank 中的任何一个：组和坐标都是真的，只是通信什么也不做。

# %% [markdown] lang="en"
# ### 1.5 Ask a real DeviceMesh
#
# So far we computed the coordinates ourselves. Now ask `torch`: `init_device_mesh` builds a real DeviceMesh. We use the `fake` backend, so that one process can play any of the 24 ranks: groups and coordinates are real, collectives do nothing.

# %%
with fake_mesh({'pp': 3, 'cp': 2, 'tp': 4}, rank=11) as device_mesh:
    print('coordinate of rank 11:', list(device_mesh.get_coordinate()))
    for axis in ('pp', 'cp', 'tp'):
        print(f'its {axis} group:', device_mesh[axis].mesh.tolist())

agree = 0
for rank in range(24):
    with fake_mesh({'pp': 3, 'cp': 2, 'tp': 4}, rank) as device_mesh:
        agree += list(device_mesh.get_coordinate()) == (ranks == rank).nonzero()[0].tolist()
print(f'{agree} of 24 coordinates agree with arange(24).view(3, 2, 4)')

# %% [markdown] lang="zh"
# ### 1.6 顺序写反了会怎样
#
# TP 在每一层都要通信，所以它的组应该待在一台机器里。假设一台机器有 8 张卡，rank 0–7 在第 0 台。把轴的顺序写成 tp、cp、pp，`torch` 照样接受，不给任何提示。先猜：rank 11 的 TP 组会跨几台机器？

# %% [markdown] lang="en"
# ### 1.6 What if the order is reversed
#
# TP communicates in every layer, so its group should stay inside one machine. Say a machine has 8 devices, ranks 0–7 in machine 0. Write the axes in the order tp, cp, pp and `torch` accepts it with no warning. Predict: how many machines does the TP group of rank 11 span?

# %%
for order in ({'pp': 3, 'cp': 2, 'tp': 4}, {'tp': 4, 'cp': 2, 'pp': 3}):
    with fake_mesh(order, rank=11) as device_mesh:
        group = device_mesh['tp'].mesh.tolist()
    machines = sorted({rank // 8 for rank in group})
    print(f"order {', '.join(order)}: tp group {group} on machines {machines}")

# %% [markdown] lang="zh"
# ## Step 2：检查布局兼容性
#
# 网格的大小对了，模型还要能放上去。本课的规则有 5 条，每条有一个名字，出错时就报告这个名字。
#
# | 名字 | 规则 | 不满足时会看到什么 |
# |---|---|---|
# | `mesh_product` | pp × tp × cp 等于 world size | 乘积太大，`torch` 报错；乘积太小，多出来的 rank 闲着，没有提示 |
# | `pipeline_layers` | 层数能被 pp 整除 | 少建几层，或者某个阶段更慢 |
# | `attention_heads` | 头数能被 tp 整除 | `shape '[2, 32, -1, 8]' is invalid` 这类看不懂的错误 |
# | `kv_heads` | 如果给出 KV 头数，它能被 tp 整除 | 结果算错，没有提示 |
# | `context_blocks` | 序列长度能被 cp 整除 | 一个不带任何说明的 AssertionError |
#
# 5 条规则互相独立。要把**所有**不满足的名字都报告出来：只报第一个，使用者就得改一处、跑一次，再改下一处。

# %% [markdown] lang="en"
# ## Step 2: check that the layout is compatible
#
# A mesh of the right size is not enough; the model has to fit on it. This course has 5 rules. Each has a name, and the name is what gets reported.
#
# | name | rule | what people see when it is broken |
# |---|---|---|
# | `mesh_product` | pp × tp × cp equals the world size | product too large: an error from `torch`; too small: the left-over ranks idle, with no warning |
# | `pipeline_layers` | pp divides the number of layers | a few layers are never built, or one stage is slower |
# | `attention_heads` | tp divides the number of heads | cryptic errors such as `shape '[2, 32, -1, 8]' is invalid` |
# | `kv_heads` | where KV heads are given, tp divides their number | wrong numbers, with no warning |
# | `context_blocks` | cp divides the sequence length | a bare AssertionError |
#
# The 5 rules are independent. Report **every** name that is broken: with only the first, the user has to fix one and run again, over and over.

# %% [markdown] lang="zh"
# ### 2.1 能整除，还不等于分得匀
#
# 整除只是最低条件。因果注意力（causal attention）里，靠后的 token 要看更多的 K/V。把 1024 个 token 按顺序切成 4 段，看每个 CP rank 要算多少个注意力分数（attention score）。先猜：最忙的 rank 是平均的多少倍？

# %% [markdown] lang="en"
# ### 2.1 Divisible is not yet balanced
#
# Divisibility is only the minimum. In causal attention, later tokens look at more K/V. Cut 1024 tokens into 4 contiguous chunks and count the attention scores each CP rank has to compute. Predict: how many times the mean does the busiest rank do?

# %%
scores = torch.ones(1024, 1024, dtype=torch.long).tril()
work = scores.reshape(4, -1).sum(dim=1)
print('scores per cp rank:', work.tolist())
print(f'busiest / mean = {work.max() / work.float().mean():.3f}')

# %% [markdown] lang="zh"
# 接近 2 − 1/cp = 1.75。第 03 课用首尾配对（zigzag）切分消掉这种不均，代价是序列长度要能被 2 × cp 整除。层也一样：词嵌入（embedding）和 LM head 会让首尾两个阶段更慢。

# %% [markdown] lang="en"
# Close to 2 − 1/cp = 1.75. Lesson 03 removes this imbalance with the head-tail (zigzag) split, at the price that 2 × cp must divide the sequence length. Layers are no different: the embedding and the LM head make the first and the last stage slower.

# %% [markdown] lang="zh"
# ## Step 3：用容量与关键路径比较组合
#
# 合法的布局往往不止一种。按这个顺序比较：
#
# 1. **容量**：单 rank 峰值显存放得下吗？放不下，其余免谈。
# 2. **气泡**（bubble）：流水线里有多少时间在等？
# 3. **暴露通信**（exposed communication）：没有被计算盖住的通信占多少？
# 4. **吞吐**（throughput）：每秒处理多少 token？
#
# 一步要多久，由最长的一条依赖链决定，它叫关键路径（critical path）。计算、等待和没被盖住的通信都在上面；盖住了的通信不在。
#
# GPipe 和 1F1B（one forward, one backward：每个阶段前向、反向交替）的气泡占比（bubble ratio）相同。p 个阶段快慢一样，m 个微批次（microbatch），空转占总时间的比例是
#
# $$\frac{p-1}{m+p-1}$$
#
# Megatron-LM（arXiv 2104.04473 §2.2）写成 (p−1)/m，那是和没有气泡的理想时间相比。
#
# 先猜：p = 4 时，要让气泡占比低于 0.2，微批次至少要几个？

# %% [markdown] lang="en"
# ## Step 3: compare combinations by capacity and critical path
#
# Usually more than one layout is legal. Compare them in this order:
#
# 1. **Capacity**: does the peak memory per rank fit? If not, nothing else matters.
# 2. **Bubble**: how much of the time does the pipeline wait?
# 3. **Exposed communication**: how much communication is not hidden behind compute?
# 4. **Throughput**: how many tokens per second?
#
# How long a step takes is decided by the longest chain of dependent work, the critical path. Compute, waiting and exposed communication lie on it; hidden communication does not.
#
# GPipe and 1F1B (one forward, one backward: each stage alternates them) have the same bubble ratio. With p equally fast stages and m microbatches, the idle share of the total time is
#
# $$\frac{p-1}{m+p-1}$$
#
# Megatron-LM (arXiv 2104.04473 §2.2) writes (p−1)/m, which compares with the ideal time without a bubble.
#
# Predict: with p = 4, at least how many microbatches keep the bubble ratio below 0.2?

# %%
print('p \\ m ' + ''.join(f'{m:>7}' for m in (4, 8, 12, 13, 16, 32)))
for p in (1, 2, 4, 8):
    print(f'{p:>5} ' + ''.join(f'{(p - 1) / (m + p - 1):>7.3f}' for m in (4, 8, 12, 13, 16, 32)))

# %% [markdown] lang="zh"
# 答案是 13：m = 12 时恰好等于 0.2，不算低于。
#
# ### 3.1 给 10 种摆法估一笔账
#
# 没有 8 张 GPU，也可以先估算。下面用一个 8B 模型、序列 8192、8 个微批次。**这些数是推算的，证据等级（evidence level）是 `analytic`**：假设每张卡跑到 400 TFLOP/s，链路 200 GB/s，通信完全暴露。真实的数要靠 Step 5 测量。
#
# 代码的依据：
#
# - 计算：每个 token 对每个参数 6 次浮点运算，注意力另加 6 × 层数 × 隐藏维 × 序列（因果注意力只算一半）。
# - 显存：混合精度加 Adam，每个参数 18 字节；激活每层 34 × 序列 × 隐藏维字节（GPT 结构，TP 配合序列并行，注意力分数不保存）。TP 和 CP 都会切小激活，PP 不会：1F1B 的第一个阶段同时存着 p 个微批次（arXiv 2205.05198）。
# - 通信：TP 每层 4 次 all-reduce，前向 2 次，反向 2 次。CP 沿环传 K/V：前向 1 遍，反向再传 1 遍 K/V 和 1 遍它们的梯度；最后把权重的梯度相加（all-reduce，每个数 2 字节）。PP 在阶段之间传激活。

# %% [markdown] lang="en"
# The answer is 13: with m = 12 it is exactly 0.2, not below.
#
# ### 3.1 An estimate for the 10 arrangements
#
# Without 8 GPUs you can still estimate. Take an 8B model, sequence 8192, 8 microbatches. **These numbers are computed, not measured; their evidence level is `analytic`**: we assume that a device reaches 400 TFLOP/s, that a link moves 200 GB/s, and that communication is fully exposed. Real numbers have to be measured: that is Step 5.
#
# Where the code's formulas come from:
#
# - Compute: 6 floating-point operations a token and parameter, plus 6 × layers × hidden size × sequence for attention (causal, so half).
# - Memory: mixed precision with Adam needs 18 bytes a parameter; activations need 34 × sequence × hidden size bytes a layer (a GPT block, TP with sequence parallelism, attention scores not stored). TP and CP both cut activations, PP does not: the first stage of 1F1B holds p microbatches at a time (arXiv 2205.05198).
# - Communication: TP does 4 all-reduces a layer, 2 forward and 2 backward. CP passes K/V round a ring: 1 time forward, 1 time again backward, and 1 time their gradients; then the weights' gradients are summed (all-reduce, 2 bytes a number). PP sends activations between stages.

# %%
def estimate(pp, tp, cp):
    params, layers, hidden, kv_width, tokens, micro = 8.0e9, 32, 4096, 1024, 8192, 8
    ring = {n: 2 * (n - 1) / n for n in (tp, cp)}  # what a ring all-reduce sends, per byte
    act = tokens / cp * hidden * 2  # bytes of one activation, 2 bytes a number
    flops = (6 * params + 6 * layers * hidden * tokens) * tokens * micro
    sent = {
        'tp': 4 * ring[tp] * act * layers / pp * micro,
        'cp': 3 * 4 * tokens / cp * kv_width / tp * (cp - 1) * layers / pp * micro
        + ring[cp] * 2 * params / (pp * tp),
        'pp': 2 * act / tp * micro if pp > 1 else 0,
    }
    compute, exposed = flops / (pp * tp * cp) / 400e12, sum(sent.values()) / 200e9
    bubble = (pp - 1) / (micro + pp - 1)
    step = (compute + exposed) / (1 - bubble)
    memory = 18 * params / (pp * tp) + 34 * tokens / cp * hidden * layers / tp
    return {
        'name': f'pp{pp}_tp{tp}_cp{cp}',
        'peak_memory_mb': round(memory / 1e6),
        'bubble_ratio': round(bubble, 3),
        'communication_ratio': round(exposed / step, 3),
        'throughput': round(tokens * micro / step),
        'step_ms': round(step * 1e3),
        'failure': None,
    }

estimates = [estimate(*sizes) for sizes in meshes(8)]

# %% [markdown] lang="zh"
# 先猜：10 种里哪一种最快？下图每个长条是一步的时间，从左到右是计算、暴露通信、空转。计算部分都一样长，差别全在后两段。

# %% [markdown] lang="en"
# Predict: which of the 10 is fastest? In the picture each bar is the time of one step: compute, exposed communication, idle. The compute part is the same for all; the difference is in the other two.

# %%
draw_steps(estimates)
for item in sorted(estimates, key=lambda item: item['step_ms'])[:4]:
    memory = item['peak_memory_mb'] / 1e3
    print(f"{item['name']}: {item['step_ms']} ms, {memory:.1f} GB per rank")

# %% [markdown] lang="zh"
# 增加一个并行轴不会自动变快：TP 和 CP 加层内同步，PP 加空转，三者还会抢同一条链路。最快的几种还很占显存：CP 不切权重，同一个 CP 组里的每个 rank 都放着同样的权重。所以不能只看速度，要先过门槛。

# %% [markdown] lang="en"
# Adding a parallel axis does not make a step faster by itself: TP and CP add synchronisation inside layers, PP adds idle time, and all three may compete for the same link. The fastest ones also need a lot of memory: CP does not cut the weights, so every rank of a CP group holds the same ones. Speed alone cannot decide; the gates come first.

# %% [markdown] lang="zh"
# ## Step 4：实现 Mesh 校验、候选准入与选择
#
# | TODO | 函数 | 责任 |
# |---|---|---|
# | TODO 1 | `validate_mesh_layout` | 校验 world size 与 PP/TP/CP 布局 |
# | TODO 2 | `evaluate_internal_parallel_candidate` | 应用容量、气泡与通信门槛，保留全部失败原因 |
# | TODO 3 | `select_internal_parallel_candidate` | 从合格候选里选：吞吐优先，再看通信和显存 |
#
# 每个函数后面的检查有 3 种状态：⏳ 还没做，❌ 错在哪里，✅ 通过。“全部运行”会停在第一个没通过的检查上，这是正常的：做完它，再往下走。JupyterLab 会跳到页尾：向上翻，找到第一个红框。重启内核之后，先运行第一个代码单元。

# %% [markdown] lang="en"
# ## Step 4: implement mesh validation, admission and selection
#
# | TODO | function | job |
# |---|---|---|
# | TODO 1 | `validate_mesh_layout` | check the world size and the PP/TP/CP layout |
# | TODO 2 | `evaluate_internal_parallel_candidate` | apply the capacity, bubble and communication gates, keep every reason for failure |
# | TODO 3 | `select_internal_parallel_candidate` | choose among those that pass: throughput first, then communication and memory |
#
# The check after each function has 3 states: ⏳ not done yet, ❌ what is wrong, ✅ passed. "Run All" stops at the first check that has not passed. That is as it should be: finish it and go on. JupyterLab then shows the end of the page: scroll up to the first red box. After restarting the kernel, run the first code cell first.

# %% [markdown] lang="zh"
# ### TODO 1：校验布局
#
# 把 Step 2 的 5 条规则写进 `validate_mesh_layout(config)`。返回 `{'valid': ..., 'errors': [...]}`，`errors` 里是所有没满足的规则的名字，顺序随意。`num_kv_heads` 可能没有，也可能是 None：两种情况都不检查 KV 头。不要改动 `config`。
#
# <details><summary>提示 1：方向</summary>
#
# 5 条规则是 5 个独立的问题。不要在发现第一个错误时就返回。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 从空列表开始。每条规则一个 if，不满足就 append 它的名字。取余运算符告诉你能不能整除。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 层对 pp，头和 KV 头对 tp，序列对 cp。字典的 get 方法在键不存在时返回 None，正好和“值就是 None”合成一种情况。乘积要“等于”world size，不是整除它。
# </details>

# %% [markdown] lang="en"
# ### TODO 1: validate the layout
#
# Put the 5 rules of Step 2 into `validate_mesh_layout(config)`. Return `{'valid': ..., 'errors': [...]}` with the names of all broken rules in `errors`, in any order. `num_kv_heads` may be absent or None: in both cases KV heads are not checked. Do not change `config`.
#
# <details><summary>Hint 1: direction</summary>
#
# 5 rules are 5 independent questions. Do not return at the first error.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Start from an empty list. One if for each rule; where it is broken, append its name. The remainder operator tells you whether it divides evenly.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Layers go with pp, heads and KV heads with tp, the sequence with cp. A dict's get method returns None for a missing key, which makes it one case with "the value is None". The product must equal the world size, not just divide it.
# </details>

# %% lang="zh"
# TODO 1 · validate_mesh_layout
def validate_mesh_layout(config):
    """校验 PP、TP、CP 的 Device Mesh 与模型布局。"""
    # TODO 1：模型内部切分机制——检查 mesh 乘积以及层、头、KV 头、序列的整除关系。
    # errors = ???
    # BEGIN SOLUTION
    errors = []
    if config['pp'] * config['tp'] * config['cp'] != config['world_size']:
        errors.append('mesh_product')
    if config['num_layers'] % config['pp'] != 0:
        errors.append('pipeline_layers')
    if config['num_heads'] % config['tp'] != 0:
        errors.append('attention_heads')
    kv_heads = config.get('num_kv_heads')
    if kv_heads is not None and kv_heads % config['tp'] != 0:
        errors.append('kv_heads')
    if config['sequence_length'] % config['cp'] != 0:
        errors.append('context_blocks')
    # END SOLUTION
    return {'valid': not errors, 'errors': errors}

# %% lang="en"
# TODO 1 · validate_mesh_layout
def validate_mesh_layout(config):
    """Check the Device Mesh of PP, TP and CP against the model's layout."""
    # TODO 1: check the mesh product, and that layers, heads, KV heads and the sequence
    # divide evenly.
    # errors = ???
    # BEGIN SOLUTION
    errors = []
    if config['pp'] * config['tp'] * config['cp'] != config['world_size']:
        errors.append('mesh_product')
    if config['num_layers'] % config['pp'] != 0:
        errors.append('pipeline_layers')
    if config['num_heads'] % config['tp'] != 0:
        errors.append('attention_heads')
    kv_heads = config.get('num_kv_heads')
    if kv_heads is not None and kv_heads % config['tp'] != 0:
        errors.append('kv_heads')
    if config['sequence_length'] % config['cp'] != 0:
        errors.append('context_blocks')
    # END SOLUTION
    return {'valid': not errors, 'errors': errors}

# %% lang="zh"
# CHECK 1
with check_todo(1, 'validate_mesh_layout') as call:
    good = {'world_size': 30, 'pp': 2, 'tp': 3, 'cp': 5, 'num_layers': 14, 'num_heads': 21,
            'num_kv_heads': 9, 'sequence_length': 35, 'tags': ['x']}
    bad = {'world_size': 29, 'num_layers': 15, 'num_heads': 20, 'num_kv_heads': 8,
           'sequence_length': 36}
    small = {'num_layers': 2, 'num_heads': 4, 'num_kv_heads': 2, 'sequence_length': 6}
    names = ['mesh_product', 'pipeline_layers', 'attention_heads', 'kv_heads', 'context_blocks']
    for change, broken, rule in [
        ({}, [], '5 条规则都满足，errors 应为空'),
        ({'world_size': 31}, names[:1], 'pp × tp × cp = 2 × 3 × 5 = 30 ≠ 31'),
        ({'world_size': 60}, names[:1], '30 整除 60，但不等于 60：有 30 个 rank 闲着'),
        ({'world_size': 10}, names[:1], '是乘积 30，不是和 2 + 3 + 5 = 10'),
        ({'num_layers': 15}, names[1:2], '15 层分给 pp = 2 个阶段，余 1'),
        ({'num_heads': 20}, names[2:3], '20 个头分给 tp = 3，余 2'),
        ({'num_kv_heads': 1}, names[3:4], '1 个 KV 头不能分给 tp = 3'),
        ({'num_kv_heads': None}, [], 'num_kv_heads 是 None，不检查 KV 头'),
        ({'sequence_length': 36}, names[4:], '36 个 token 分给 cp = 5，余 1'),
        ({'world_size': 8, 'pp': 2, 'tp': 2, 'cp': 2, **small}, [], '2 × 2 × 2 = 8：三个轴可以一样大'),
        ({'world_size': 1, 'pp': 1, 'tp': 1, 'cp': 1}, [], '1 × 1 × 1 = 1：一个 rank 也是网格'),
        (bad, names, '5 条规则都不满足，5 个名字都要报告'),
    ]:
        got, expected = call({**good, **change}), {'valid': not broken, 'errors': broken}
        assert call.same(got, expected, any_order=['errors']), call.wrong(rule, expected)

    from parlab.lesson.cases import layouts
    for config, broken in layouts():  # 规则的每一种组合，键的顺序打乱
        got, expected = call(config), {'valid': not broken, 'errors': broken}
        assert call.same(got, expected, any_order=['errors']), call.wrong(
            '恰好报告不满足的规则，一条不多，一条不少', expected)

# %% lang="en"
# CHECK 1
with check_todo(1, 'validate_mesh_layout') as call:
    good = {'world_size': 30, 'pp': 2, 'tp': 3, 'cp': 5, 'num_layers': 14, 'num_heads': 21,
            'num_kv_heads': 9, 'sequence_length': 35, 'tags': ['x']}
    bad = {'world_size': 29, 'num_layers': 15, 'num_heads': 20, 'num_kv_heads': 8,
           'sequence_length': 36}
    small = {'num_layers': 2, 'num_heads': 4, 'num_kv_heads': 2, 'sequence_length': 6}
    names = ['mesh_product', 'pipeline_layers', 'attention_heads', 'kv_heads', 'context_blocks']
    for change, broken, rule in [
        ({}, [], 'all 5 rules hold, errors should be empty'),
        ({'world_size': 31}, names[:1], 'pp × tp × cp = 2 × 3 × 5 = 30 ≠ 31'),
        ({'world_size': 60}, names[:1], '30 divides 60 but is not 60: 30 ranks would idle'),
        ({'world_size': 10}, names[:1], 'the product 30, not the sum 2 + 3 + 5 = 10'),
        ({'num_layers': 15}, names[1:2], '15 layers over pp = 2 stages leave 1'),
        ({'num_heads': 20}, names[2:3], '20 heads over tp = 3 leave 2'),
        ({'num_kv_heads': 1}, names[3:4], '1 KV head cannot be split over tp = 3'),
        ({'num_kv_heads': None}, [], 'num_kv_heads is None: KV heads are not checked'),
        ({'sequence_length': 36}, names[4:], '36 tokens over cp = 5 leave 1'),
        ({'world_size': 8, 'pp': 2, 'tp': 2, 'cp': 2, **small}, [], '2 × 2 × 2 = 8: axes may be equal'),
        ({'world_size': 1, 'pp': 1, 'tp': 1, 'cp': 1}, [], '1 × 1 × 1 = 1: one rank is a mesh too'),
        (bad, names, 'all 5 rules are broken, all 5 names must be reported'),
    ]:
        got, expected = call({**good, **change}), {'valid': not broken, 'errors': broken}
        assert call.same(got, expected, any_order=['errors']), call.wrong(rule, expected)

    from parlab.lesson.cases import layouts
    for config, broken in layouts():  # every combination of rules, keys in any order
        got, expected = call(config), {'valid': not broken, 'errors': broken}
        assert call.same(got, expected, any_order=['errors']), call.wrong(
            'exactly the broken rules are reported, none more and none less', expected)

# %% [markdown] lang="zh"
# #### 一张准入地图
#
# 现在用**你的**函数。模型还是 32 层、32 个头、8 个 KV 头、序列 8192。下图每格是一种 (pp, tp, cp)：深色的格子可行，其余写着不满足的规则：L 层，H 头，K KV 头，S 序列。
#
# 先猜：tp = 16 时，32 个头可以平分，为什么还是整列都不行？

# %% [markdown] lang="en"
# #### A map of what is admitted
#
# Now **your** function goes to work. The model still has 32 layers, 32 heads, 8 KV heads and a sequence of 8192. Each cell is one (pp, tp, cp): dark cells are fine, the others name the broken rules: L layers, H heads, K KV heads, S sequence.
#
# Predict: with tp = 16 the 32 heads divide evenly. Why is the whole column still rejected?

# %%
MODEL = {'num_layers': 32, 'num_heads': 32, 'num_kv_heads': 8, 'sequence_length': 8192}
if ready('validate_mesh_layout'):
    pps, tps, cps = (1, 2, 3, 4, 6, 8), (1, 2, 3, 4, 8, 16), (1, 3, 4)
    admitted = draw_admission(validate_mesh_layout, MODEL, pps, tps, cps)
    print(f'{admitted} of {len(pps) * len(tps) * len(cps)} meshes are admitted')

# %% [markdown] lang="zh"
# 答案是 K：8 个 KV 头分不给 16 个 rank。Megatron 允许复制 KV 头来绕开，本课的规则不允许。
#
# #### 拿真实的布局试一试
#
# 下面是公开发表过的训练布局：Megatron-LM 的 10 个（arXiv 2104.04473 表 1）和 Llama 3 405B 的 3 个（arXiv 2407.21783 表 4）。它们还用了数据并行（data parallelism, DP），所以一个副本的 world size 是 GPU 数除以 DP。
#
# 先猜：你的函数会拒绝哪几个？

# %% [markdown] lang="en"
# The answer is K: 8 KV heads cannot be shared out over 16 ranks. Megatron gets round this by copying KV heads; this course's rule does not allow it.
#
# #### Try it on real layouts
#
# Here are layouts that have been published: 10 from Megatron-LM (arXiv 2104.04473, Table 1) and 3 from Llama 3 405B (arXiv 2407.21783, Table 4). They use data parallelism (DP) on top, so the world size of one replica is the number of GPUs divided by DP.
#
# Predict: which of them will your function reject?

# %%
if ready('validate_mesh_layout'):
    print(f"{'run':<21}{'GPUs':>6}{'DP':>5}{'world':>7}{'pp':>4}{'tp':>4}{'cp':>4}  errors")
    for row in megatron() + llama3_405b():
        config = layout(row)
        errors = validate_mesh_layout(config)['errors']
        sizes = f"{config['world_size']:>7}{row['pp']:>4}{row['tp']:>4}{row['cp']:>4}"
        run = f"{row['name']:<21}{row['gpus']:>6}{row['dp']:>5}"
        print(run + sizes + '  ' + (', '.join(errors) or 'ok'))

# %% [markdown] lang="zh"
# #### 126 层，16 个阶段，照样能跑
#
# 126 不能被 16 整除，你的函数报告了 `pipeline_layers`，可 Llama 3 405B 确实这样训练。原因：词嵌入和 LM head 也要花时间。Meta 把它们各算一个位置，(126 + 2) / 16 = 8，于是首尾两个阶段各少放一层。
#
# 所以整除是本课的**入门规则**，不是终点：它保证平均分的做法不出错，而真实系统按代价决定每个阶段放几层。第 01 课的 TODO 1 就做这件事。

# %% [markdown] lang="en"
# #### 126 layers over 16 stages, and it runs all the same
#
# 16 does not divide 126, and your function reports `pipeline_layers`, yet Llama 3 405B was trained like this. The reason: the embedding and the LM head take time too. Meta counts each of them as one slot, (126 + 2) / 16 = 8, so the first and the last stage hold one layer less.
#
# Divisibility is this course's **entry rule**, not the end of the story: it keeps an even split from going wrong, while real systems place layers by cost. That is TODO 1 of lesson 01.

# %%
layers = [7] + [8] * 14 + [7]
draw_stages(layers, extras=[1] + [0] * 14 + [1], label='embedding, LM head')
print(f'{sum(layers)} layers + 2 = {sum(layers) + 2} slots over {len(layers)} stages')

# %% [markdown] lang="zh"
# ### TODO 2：过门槛
#
# `evaluate_internal_parallel_candidate(metrics, limits)` 决定一个候选能否准入。准入门槛有 4 道：
#
# | 名字 | 不通过的条件 |
# |---|---|
# | `runtime` | `metrics['failure']` 不是空的（None 和没有这个键都算空） |
# | `memory` | `metrics['peak_memory_mb']` 大于 `limits['memory_mb']` |
# | `bubble` | `metrics['bubble_ratio']` 大于 `limits['bubble_ratio']` |
# | `communication` | `metrics['communication_ratio']` 大于 `limits['communication_ratio']` |
#
# 恰好等于上限算通过。全部失败原因都要保留在 `gate_failures` 里，顺序随意。返回的是 `metrics` 的副本，加上 `eligible` 和 `gate_failures` 两项；输入不能变。
#
# 运行失败的候选没有测量值，调用者会把没测到的项填成 0，这时失败原因恰好只有 `runtime`。
#
# <details><summary>提示 1：方向</summary>
#
# 4 道门槛是 4 个独立的问题，和 TODO 1 一样全部问完。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 从空列表 failures 开始。第一道门槛看 metrics，后三道拿 metrics 的值和 limits 的值比较。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 等于上限要通过，所以判断失败用大于，不用大于等于。failure 这个键可能不存在，用字典的 get 方法。result 已经是深拷贝，不要再写回 metrics。
# </details>

# %% [markdown] lang="en"
# ### TODO 2: the gates
#
# `evaluate_internal_parallel_candidate(metrics, limits)` decides whether a candidate is admitted. There are 4 admission gates:
#
# | name | fails when |
# |---|---|
# | `runtime` | `metrics['failure']` is not empty (None and a missing key count as empty) |
# | `memory` | `metrics['peak_memory_mb']` is above `limits['memory_mb']` |
# | `bubble` | `metrics['bubble_ratio']` is above `limits['bubble_ratio']` |
# | `communication` | `metrics['communication_ratio']` is above `limits['communication_ratio']` |
#
# A value that equals its limit passes. Keep every reason for failure in `gate_failures`, in any order. Return a copy of `metrics` with two more entries, `eligible` and `gate_failures`; the input must not change.
#
# A candidate whose run failed has no measurements. The caller fills in 0 for what was not measured, so that the only reason for failure is `runtime`.
#
# <details><summary>Hint 1: direction</summary>
#
# 4 gates are 4 independent questions. As in TODO 1, ask them all.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Start from an empty list called failures. The first gate looks at metrics alone, the other three compare a value of metrics with one of limits.
# </details>
# <details><summary>Hint 3: details</summary>
#
# A value equal to its limit passes, so failure takes a strict greater-than. The key failure may be missing: use the dict's get method. result is a deep copy already; do not write back into metrics.
# </details>

# %% lang="zh"
# TODO 2 · evaluate_internal_parallel_candidate
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    """按运行状态、容量、气泡和通信占比判断候选是否准入。"""
    result = deepcopy(metrics)
    # TODO 2：候选准入机制——保留全部失败原因，不只返回布尔值。
    # failures = ???
    # BEGIN SOLUTION
    failures = []
    if metrics.get('failure'):
        failures.append('runtime')
    if metrics['peak_memory_mb'] > limits['memory_mb']:
        failures.append('memory')
    if metrics['bubble_ratio'] > limits['bubble_ratio']:
        failures.append('bubble')
    if metrics['communication_ratio'] > limits['communication_ratio']:
        failures.append('communication')
    # END SOLUTION
    result['eligible'] = not failures
    result['gate_failures'] = failures
    return result

# %% lang="en"
# TODO 2 · evaluate_internal_parallel_candidate
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    """Decide by run state, capacity, bubble and communication whether a candidate is admitted."""
    result = deepcopy(metrics)
    # TODO 2: keep every reason for failure, not just True or False.
    # failures = ???
    # BEGIN SOLUTION
    failures = []
    if metrics.get('failure'):
        failures.append('runtime')
    if metrics['peak_memory_mb'] > limits['memory_mb']:
        failures.append('memory')
    if metrics['bubble_ratio'] > limits['bubble_ratio']:
        failures.append('bubble')
    if metrics['communication_ratio'] > limits['communication_ratio']:
        failures.append('communication')
    # END SOLUTION
    result['eligible'] = not failures
    result['gate_failures'] = failures
    return result

# %% lang="zh"
# CHECK 2
with check_todo(2, 'evaluate_internal_parallel_candidate') as call:
    limits = {'memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    base = {'name': 'tp2', 'peak_memory_mb': 11000, 'bubble_ratio': 0.1, 'throughput': 120,
            'communication_ratio': 0.22, 'ranks': [{'peak_mb': [11000]}]}
    edge = {'peak_memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    bad = {'peak_memory_mb': 12001, 'bubble_ratio': 0.21, 'communication_ratio': 0.31}
    zero = {'peak_memory_mb': 0, 'bubble_ratio': 0, 'communication_ratio': 0, 'throughput': 0}
    names = ['runtime', 'memory', 'bubble', 'communication']
    for change, failed, rule in [
        ({}, [], '没有 failure，4 道门槛都通过'),
        ({**edge, 'failure': None}, [], 'failure 是 None，没有失败；等于上限算通过'),
        ({'peak_memory_mb': 12000.5}, names[1:2], '12000.5 > memory_mb = 12000，不要取整'),
        ({'bubble_ratio': 0.2001}, names[2:3], '0.2001 > bubble_ratio = 0.2，没有容差'),
        ({'communication_ratio': 0.3001}, names[3:], '0.3001 > communication_ratio = 0.3'),
        (bad, names[1:], '3 道门槛不通过，3 个原因都要保留'),
        ({**bad, 'failure': 'OOM'}, names, '4 道门槛都不通过，4 个原因都要保留'),
        ({**zero, 'failure': {'kind': 'timeout'}}, names[:1], '运行失败：没测到的项是 0'),
        ({'ranks': [{'peak_mb': [99999]}], 'throughput': 0}, [], '只看 4 道门槛：吞吐没有，ranks 也没有'),
        ({**bad, 'eligible': True, 'gate_failures': ['old']}, names[1:], '上一次的结论要被这一次覆盖'),
    ]:
        metrics = {**base, **change}
        expected = {**metrics, 'eligible': not failed, 'gate_failures': failed}
        got = call(metrics, limits)
        assert call.same(got, expected, any_order=['gate_failures']), call.wrong(rule, expected)
        assert not call.shares_with_input(), call.wrong(
            '结果是深拷贝，嵌套的值也不和输入共用',
            '新的列表和字典', '结果里有和 metrics 共用的列表或字典')

    from parlab.lesson.cases import runs
    for metrics, limits, failed in runs():  # 门槛的每一种组合，上限各不相同
        expected = {**metrics, 'eligible': not failed, 'gate_failures': failed}
        got = call(metrics, limits)
        assert call.same(got, expected, any_order=['gate_failures']), call.wrong(
            '按这一次的 limits 判断，恰好报告不通过的门槛', expected)

# %% lang="en"
# CHECK 2
with check_todo(2, 'evaluate_internal_parallel_candidate') as call:
    limits = {'memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    base = {'name': 'tp2', 'peak_memory_mb': 11000, 'bubble_ratio': 0.1, 'throughput': 120,
            'communication_ratio': 0.22, 'ranks': [{'peak_mb': [11000]}]}
    edge = {'peak_memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    bad = {'peak_memory_mb': 12001, 'bubble_ratio': 0.21, 'communication_ratio': 0.31}
    zero = {'peak_memory_mb': 0, 'bubble_ratio': 0, 'communication_ratio': 0, 'throughput': 0}
    names = ['runtime', 'memory', 'bubble', 'communication']
    for change, failed, rule in [
        ({}, [], 'no failure, all 4 gates pass'),
        ({**edge, 'failure': None}, [], 'failure is None: none; equal to the limit passes'),
        ({'peak_memory_mb': 12000.5}, names[1:2], '12000.5 > memory_mb = 12000: no rounding'),
        ({'bubble_ratio': 0.2001}, names[2:3], '0.2001 > bubble_ratio = 0.2: no tolerance'),
        ({'communication_ratio': 0.3001}, names[3:], '0.3001 > communication_ratio = 0.3'),
        (bad, names[1:], '3 gates fail, all 3 reasons must be kept'),
        ({**bad, 'failure': 'OOM'}, names, 'all 4 gates fail, all 4 reasons must be kept'),
        ({**zero, 'failure': {'kind': 'timeout'}}, names[:1], 'the run failed: what was not measured is 0'),
        ({'ranks': [{'peak_mb': [99999]}], 'throughput': 0}, [], 'there are 4 gates: none for throughput or ranks'),
        ({**bad, 'eligible': True, 'gate_failures': ['old']}, names[1:], 'an earlier verdict is replaced'),
    ]:
        metrics = {**base, **change}
        expected = {**metrics, 'eligible': not failed, 'gate_failures': failed}
        got = call(metrics, limits)
        assert call.same(got, expected, any_order=['gate_failures']), call.wrong(rule, expected)
        assert not call.shares_with_input(), call.wrong(
            'the result is a deep copy and shares no nested value with the input',
            'new lists and dicts', 'the result holds a list or dict of metrics itself')

    from parlab.lesson.cases import runs
    for metrics, limits, failed in runs():  # every combination of gates, other limits
        expected = {**metrics, 'eligible': not failed, 'gate_failures': failed}
        got = call(metrics, limits)
        assert call.same(got, expected, any_order=['gate_failures']), call.wrong(
            'judged by the limits of this call, exactly the failing gates are reported', expected)

# %% [markdown] lang="zh"
# ### TODO 3：选一个
#
# `select_internal_parallel_candidate(candidates)` 只在 `eligible` 为真的候选里选。排序规则：
#
# 1. `throughput` 最高；
# 2. 吞吐相同，选 `communication_ratio` 最低；
# 3. 还相同，选 `peak_memory_mb` 最低。
#
# 后两条是平局规则（tie-break）。一个合格的都没有，就返回 reject 的结论。不要改动候选列表，也不要改动它的顺序。
#
# <details><summary>提示 1：方向</summary>
#
# 把 3 条规则写成一个排序键，让 Python 按元组逐项比较。
# </details>
# <details><summary>提示 2：结构</summary>
#
# min 和 sorted 都接受 key 参数。key 对每个候选返回一个元组，元组的第一项最重要。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 吞吐越大越好，通信和显存越小越好。方向相反的那一项取负号，三项就同向了。不要用 list.sort，它会改动列表本身。
# </details>

# %% [markdown] lang="en"
# ### TODO 3: pick one
#
# `select_internal_parallel_candidate(candidates)` chooses only among candidates whose `eligible` is true. The ranking:
#
# 1. the highest `throughput`;
# 2. on equal throughput, the lowest `communication_ratio`;
# 3. if that is equal too, the lowest `peak_memory_mb`.
#
# The last two are tie-breaks. If no candidate is eligible, return the reject decision. Do not change the list of candidates, nor its order.
#
# <details><summary>Hint 1: direction</summary>
#
# Write the 3 rules as one sort key and let Python compare tuples item by item.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# min and sorted both take a key argument. The key returns a tuple for each candidate; the first item of the tuple matters most.
# </details>
# <details><summary>Hint 3: details</summary>
#
# More throughput is better, less communication and less memory are better. Negate the one that points the other way and all three agree. Do not use list.sort: it changes the list itself.
# </details>

# %% lang="zh"
# TODO 3 · select_internal_parallel_candidate
def select_internal_parallel_candidate(candidates):
    """从通过门槛的 PP/TP/CP 组合中选择候选。"""
    eligible = [item for item in candidates if item['eligible']]
    if not eligible:
        return {'decision': 'reject', 'candidate': None}
    # TODO 3：优先吞吐，其次通信占比和单 rank 峰值显存。
    # selected = ???
    # BEGIN SOLUTION
    selected = min(
        eligible,
        key=lambda item: (-item['throughput'], item['communication_ratio'], item['peak_memory_mb']),
    )
    # END SOLUTION
    return {'decision': 'accept', 'candidate': selected['name']}

# %% lang="en"
# TODO 3 · select_internal_parallel_candidate
def select_internal_parallel_candidate(candidates):
    """Choose among the PP/TP/CP combinations that passed the gates."""
    eligible = [item for item in candidates if item['eligible']]
    if not eligible:
        return {'decision': 'reject', 'candidate': None}
    # TODO 3: throughput first, then communication ratio and peak memory per rank.
    # selected = ???
    # BEGIN SOLUTION
    selected = min(
        eligible,
        key=lambda item: (-item['throughput'], item['communication_ratio'], item['peak_memory_mb']),
    )
    # END SOLUTION
    return {'decision': 'accept', 'candidate': selected['name']}

# %% lang="zh"
# CHECK 3
with check_todo(3, 'select_internal_parallel_candidate') as call:
    from parlab.lesson.cases import candidate, contests
    a, b = candidate('a', 120, 0.2, 9000), candidate('b', 121, 0.3, 9900)
    c, d = candidate('c', 120, 0.1, 9900), candidate('d', 120, 0.1, 9500)
    e, f = candidate('e', 500, 0.0, 10, eligible=False), candidate('f', 120.001, 0.9, 99000)
    g, h = candidate('g', 400, 0.0, 10, eligible=False), candidate('h', 120, 0.1001, 10)
    i, j = candidate('i', 120, 0.1, 9500.5), candidate('j', 120, 0.1, 10000)
    k = candidate('k', 120, 0.00005, 9900)
    for candidates, winner, rule in [
        ([a], 'a', '只有一个合格，就选它'),
        ([a, b], 'b', '吞吐优先：121 > 120，通信和显存更高也选它'),
        ([a, f], 'f', '120.001 > 120：不要取整，再小的领先也算'),
        ([a, c], 'c', '吞吐都是 120，选通信占比更低的：0.1 < 0.2'),
        ([c, d], 'd', '吞吐和通信都相同，选显存更低的：9500 < 9900'),
        ([h, c], 'c', '0.1 < 0.1001：不要取整'),
        ([i, d], 'd', '9500 < 9500.5：不要取整'),
        ([j, d], 'd', '比较数，不是比较字符串：9500 < 10000'),
        ([c, k], 'k', '比较数，不是比较字符串：0.00005 < 0.1'),
        ([e, g, a], 'a', 'e 和 g 更快，但没有通过门槛'),
        ([e, g], None, '没有合格的候选'),
        ([], None, '没有候选'),
    ]:
        expected = {'decision': 'accept' if winner else 'reject', 'candidate': winner}
        for order in (candidates, candidates[::-1]):
            assert call.same(call(order), expected), call.wrong(rule, expected)

    for candidates, winner in contests():  # 每组 6 个候选，先后顺序各不相同
        expected = {'decision': 'accept', 'candidate': winner}
        assert call.same(call(candidates), expected), call.wrong(
            '吞吐优先，再看通信占比，再看峰值显存；列表的先后顺序不影响结果', expected)

# %% lang="en"
# CHECK 3
with check_todo(3, 'select_internal_parallel_candidate') as call:
    from parlab.lesson.cases import candidate, contests
    a, b = candidate('a', 120, 0.2, 9000), candidate('b', 121, 0.3, 9900)
    c, d = candidate('c', 120, 0.1, 9900), candidate('d', 120, 0.1, 9500)
    e, f = candidate('e', 500, 0.0, 10, eligible=False), candidate('f', 120.001, 0.9, 99000)
    g, h = candidate('g', 400, 0.0, 10, eligible=False), candidate('h', 120, 0.1001, 10)
    i, j = candidate('i', 120, 0.1, 9500.5), candidate('j', 120, 0.1, 10000)
    k = candidate('k', 120, 0.00005, 9900)
    for candidates, winner, rule in [
        ([a], 'a', 'only one is eligible, so it is chosen'),
        ([a, b], 'b', 'throughput first: 121 > 120, despite communication and memory'),
        ([a, f], 'f', '120.001 > 120: no rounding, the smallest lead counts'),
        ([a, c], 'c', 'throughput is 120 for both; lower communication wins: 0.1 < 0.2'),
        ([c, d], 'd', 'throughput and communication tie; lower memory wins: 9500 < 9900'),
        ([h, c], 'c', '0.1 < 0.1001: do not round'),
        ([i, d], 'd', '9500 < 9500.5: do not round'),
        ([j, d], 'd', 'compare numbers, not strings: 9500 < 10000'),
        ([c, k], 'k', 'compare numbers, not strings: 0.00005 < 0.1'),
        ([e, g, a], 'a', 'e and g are faster but did not pass the gates'),
        ([e, g], None, 'no candidate is eligible'),
        ([], None, 'there is no candidate'),
    ]:
        expected = {'decision': 'accept' if winner else 'reject', 'candidate': winner}
        for order in (candidates, candidates[::-1]):
            assert call.same(call(order), expected), call.wrong(rule, expected)

    for candidates, winner in contests():  # 6 candidates each, in many orders
        expected = {'decision': 'accept', 'candidate': winner}
        assert call.same(call(candidates), expected), call.wrong(
            'throughput, then communication ratio, then peak memory; list order is free', expected)

# %% [markdown] lang="zh"
# ### 4.1 更快的候选为什么会输
#
# 把三个函数连起来：Step 3 估算的 10 个候选，先校验布局，再过门槛，最后选一个。上限是：显存 72 GB（卡有 80 GB，要给碎片和通信缓冲区留一些），气泡占比 0.2，通信占比 0.3。
#
# 先猜：吞吐最高的那个会当选吗？

# %% [markdown] lang="en"
# ### 4.1 Why a faster candidate loses
#
# Chain the three functions: the 10 candidates estimated in Step 3, first validated, then through the gates, then one is chosen. The limits: 72 GB of memory (a device has 80 GB; some is left for fragmentation and communication buffers), bubble ratio 0.2, communication ratio 0.3.
#
# Predict: is the one with the highest throughput chosen?

# %%
LIMITS = {'memory_mb': 72_000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
THREE = ('validate_mesh_layout', 'evaluate_internal_parallel_candidate',
         'select_internal_parallel_candidate')

def decide(limits):
    judged = []
    for item, (pp, tp, cp) in zip(estimates, meshes(8)):
        config = {**MODEL, 'world_size': 8, 'pp': pp, 'tp': tp, 'cp': cp}
        if validate_mesh_layout(config)['valid']:
            judged.append(evaluate_internal_parallel_candidate(item, limits))
    return judged, select_internal_parallel_candidate(judged)

if ready(*THREE):
    judged, choice = decide(LIMITS)
    for item in sorted(judged, key=lambda item: item['step_ms']):
        verdict = ', '.join(item['gate_failures']) or 'eligible'
        print(f"{item['name']}  {item['throughput']:>6} tokens/s  {verdict}")
    print(choice)

# %% [markdown] lang="zh"
# 最快的 3 个都放不下，第 4 名当选。下图横轴是单 rank 峰值显存，纵轴是吞吐，红色虚线是显存门槛，右边的区域不可用。字母是没通过的门槛，星号是选中的候选。

# %% [markdown] lang="en"
# The fastest 3 do not fit; number 4 is chosen. In the picture the x axis is the peak memory per rank, the y axis the throughput; the red dashed line is the memory gate, and whatever lies to its right does not fit. Letters are failed gates, the star is the chosen candidate.

# %%
if ready(*THREE):
    draw_gates(judged, LIMITS, choice['candidate'])

# %% [markdown] lang="zh"
# 门槛定在哪里，结论就落在哪里。先猜：显存上限放宽到 78 GB，谁当选？显存仍是 72 GB，通信占比收紧到 0.05，又是谁？

# %% [markdown] lang="en"
# Where the gates stand decides the outcome. Predict: who is chosen with a memory limit of 78 GB? And with 72 GB again but a communication limit of 0.05?

# %%
if ready(*THREE):
    for change in ({'memory_mb': 78_000}, {'communication_ratio': 0.05}):
        print(change, '->', decide({**LIMITS, **change})[1])

# %% [markdown] lang="zh"
# 放宽显存，最快的 pp1_tp2_cp4 就进来了。通信占比低于 0.05 的只有 pp4_tp1_cp2 和 pp8_tp1_cp1，它们都过不了气泡门槛，所以一个都不剩。
#
# 这个排序表达的是当前工作负载（workload）的目标，它代替不了真实的多卡时间线和正确性证据。

# %% [markdown] lang="en"
# With more memory the fastest, pp1_tp2_cp4, gets in. Only pp4_tp1_cp2 and pp8_tp1_cp1 communicate less than 0.05, and both fail the bubble gate, so nobody is left.
#
# The ranking states what this workload wants; it does not replace a real timeline over several devices, nor evidence that the result is correct.

# %% [markdown] lang="zh"
# ### 4.2 选做：尺寸本身合理吗
#
# `validate_mesh_layout` 相信每个尺寸都是正整数。调用者应当先检查。写 `find_bad_sizes(config)`，返回有问题的键名列表，顺序随意。这一题可以跳过：它的检查不会让笔记本停下。
#
# - 必须有的 7 个键：`world_size`、`pp`、`tp`、`cp`、`num_layers`、`num_heads`、`sequence_length`，缺了就报告；
# - 值必须是大于 0 的 int；`4.0`、`'4'` 和 `True` 都不算；
# - `num_kv_heads` 可以没有，也可以是 None，否则同样要求。

# %% [markdown] lang="en"
# ### 4.2 Optional: are the sizes themselves sensible
#
# `validate_mesh_layout` trusts that every size is a positive whole number. Its caller should check first. Write `find_bad_sizes(config)`, which returns the list of keys whose size is bad, in any order. You may skip this one: its check never stops the notebook.
#
# - 7 keys are required: `world_size`, `pp`, `tp`, `cp`, `num_layers`, `num_heads`, `sequence_length`; report those that are missing;
# - a value must be an int greater than 0; `4.0`, `'4'` and `True` do not count;
# - `num_kv_heads` may be absent or None, else the same holds for it.

# %% lang="zh"
# EXTRA · find_bad_sizes
def find_bad_sizes(config):
    """返回缺失的、或者不是正整数的尺寸的键名。"""
    # 选做：不写也不影响下面的单元。
    # bad = ???
    # BEGIN SOLUTION
    required = ('world_size', 'pp', 'tp', 'cp', 'num_layers', 'num_heads', 'sequence_length')
    sizes = {key: config.get(key) for key in required}
    if config.get('num_kv_heads') is not None:
        sizes['num_kv_heads'] = config['num_kv_heads']
    bad = [key for key, size in sizes.items() if type(size) is not int or size <= 0]
    # END SOLUTION
    return bad

# %% lang="en"
# EXTRA · find_bad_sizes
def find_bad_sizes(config):
    """The keys of sizes that are missing or not positive whole numbers."""
    # Optional: the cells below do not need it.
    # bad = ???
    # BEGIN SOLUTION
    required = ('world_size', 'pp', 'tp', 'cp', 'num_layers', 'num_heads', 'sequence_length')
    sizes = {key: config.get(key) for key in required}
    if config.get('num_kv_heads') is not None:
        sizes['num_kv_heads'] = config['num_kv_heads']
    bad = [key for key, size in sizes.items() if type(size) is not int or size <= 0]
    # END SOLUTION
    return bad

# %% lang="zh"
# CHECK EXTRA
with check_todo('EXTRA', 'find_bad_sizes') as call:
    good = {'world_size': 30, 'pp': 2, 'tp': 3, 'cp': 5, 'num_layers': 14, 'num_heads': 21,
            'sequence_length': 35}
    many = {'pp': None, 'tp': 0, 'num_heads': -2, 'num_kv_heads': '8'}
    cases = [
        ({**good, 'name': 'x', 'dropout': 0.0}, [], '7 个尺寸都是正整数，别的键不管'),
        ({}, [*good], '有问题的键都要报告'),
        ({**good, **many}, [*many], '有问题的键都要报告'),
    ]
    for heads in (None, 1, 9):
        cases.append(({**good, 'num_kv_heads': heads}, [], 'num_kv_heads 可以没有，也可以是 None'))
    for key in (*good, 'num_kv_heads'):
        for size in (0, -1, 5.0, '4', True, False):
            cases.append(({**good, key: size}, [key], f'{key} 应是大于 0 的 int，不是 {size!r}'))
    for missing in good:
        left = {key: size for key, size in good.items() if key != missing}
        cases.append((left, [missing], f'缺少 {missing}'))
    for config, expected, rule in cases:
        assert call.same(call(config), expected, any_order=True), call.wrong(rule, expected)

# %% lang="en"
# CHECK EXTRA
with check_todo('EXTRA', 'find_bad_sizes') as call:
    good = {'world_size': 30, 'pp': 2, 'tp': 3, 'cp': 5, 'num_layers': 14, 'num_heads': 21,
            'sequence_length': 35}
    many = {'pp': None, 'tp': 0, 'num_heads': -2, 'num_kv_heads': '8'}
    cases = [
        ({**good, 'name': 'x', 'dropout': 0.0}, [], 'all 7 sizes are sound; other keys do not matter'),
        ({}, [*good], 'every bad key must be reported'),
        ({**good, **many}, [*many], 'every bad key must be reported'),
    ]
    for heads in (None, 1, 9):
        cases.append(({**good, 'num_kv_heads': heads}, [], 'num_kv_heads may be absent or None'))
    for key in (*good, 'num_kv_heads'):
        for size in (0, -1, 5.0, '4', True, False):
            cases.append(({**good, key: size}, [key], f'{key} should be an int above 0, not {size!r}'))
    for missing in good:
        left = {key: size for key, size in good.items() if key != missing}
        cases.append((left, [missing], f'{missing} is missing'))
    for config, expected, rule in cases:
        assert call.same(call(config), expected, any_order=True), call.wrong(rule, expected)

# %% [markdown] lang="zh"
# ### 4.3 项目的基础测试
#
# 最后运行项目说明里给出的测试。它只看几个典型情形，上面的检查更严格：三个 ✅ 都有了，它一定通过。

# %% [markdown] lang="en"
# ### 4.3 The project's own test
#
# Finally, run the test that the project's specification gives. It looks at a few typical cases only; the checks above are stricter: with three ✅ it is sure to pass.

# %% lang="zh"
def run_model_internal_parallel_tests():
    valid = {'world_size': 8, 'pp': 2, 'tp': 2, 'cp': 2,
             'num_layers': 24, 'num_heads': 16, 'sequence_length': 4096}
    invalid = {**valid, 'world_size': 4, 'num_heads': 15}
    assert validate_mesh_layout(valid) == {'valid': True, 'errors': []}
    assert set(validate_mesh_layout(invalid)['errors']) == {'mesh_product', 'attention_heads'}
    limits = {'memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    tp = evaluate_internal_parallel_candidate(
        {'name': 'tp2', 'peak_memory_mb': 11000, 'bubble_ratio': 0.0,
         'communication_ratio': 0.22, 'throughput': 120, 'failure': None}, limits)
    hybrid = evaluate_internal_parallel_candidate(
        {'name': 'pp2_tp2', 'peak_memory_mb': 9000, 'bubble_ratio': 0.25,
         'communication_ratio': 0.28, 'throughput': 130, 'failure': None}, limits)
    assert tp['eligible'] is True
    assert hybrid['gate_failures'] == ['bubble']
    assert select_internal_parallel_candidate([tp, hybrid]) == {
        'decision': 'accept', 'candidate': 'tp2'}
    assert select_internal_parallel_candidate([])['decision'] == 'reject'
    print('✅ Device Mesh、候选准入与组合选择通过基础校验。')

# %% lang="en"
def run_model_internal_parallel_tests():
    valid = {'world_size': 8, 'pp': 2, 'tp': 2, 'cp': 2,
             'num_layers': 24, 'num_heads': 16, 'sequence_length': 4096}
    invalid = {**valid, 'world_size': 4, 'num_heads': 15}
    assert validate_mesh_layout(valid) == {'valid': True, 'errors': []}
    assert set(validate_mesh_layout(invalid)['errors']) == {'mesh_product', 'attention_heads'}
    limits = {'memory_mb': 12000, 'bubble_ratio': 0.2, 'communication_ratio': 0.3}
    tp = evaluate_internal_parallel_candidate(
        {'name': 'tp2', 'peak_memory_mb': 11000, 'bubble_ratio': 0.0,
         'communication_ratio': 0.22, 'throughput': 120, 'failure': None}, limits)
    hybrid = evaluate_internal_parallel_candidate(
        {'name': 'pp2_tp2', 'peak_memory_mb': 9000, 'bubble_ratio': 0.25,
         'communication_ratio': 0.28, 'throughput': 130, 'failure': None}, limits)
    assert tp['eligible'] is True
    assert hybrid['gate_failures'] == ['bubble']
    assert select_internal_parallel_candidate([tp, hybrid]) == {
        'decision': 'accept', 'candidate': 'tp2'}
    assert select_internal_parallel_candidate([])['decision'] == 'reject'
    print('✅ Device Mesh, admission and selection pass the basic test.')

# %%
if ready(*THREE):
    run_model_internal_parallel_tests()

# %% [markdown] lang="zh"
# ## 🛑 STOP HERE 🛑
#
# 先完成题目、通过检查，再看[参考答案](repo:solutions/04_model_internal_parallel.ipynb)。
#
# **Step 5（可选）** 在真实的多个进程、多张 GPU 上测量这些候选，然后用你写的这三个函数做决定。它是单独的一课：[`05_multi_gpu_experiments`](repo:notebooks/05_multi_gpu_experiments.ipynb)。
#
# **延伸阅读**
#
# - Megatron-LM 怎样组合 PP 与 TP：[arXiv 2104.04473](https://arxiv.org/abs/2104.04473)
# - Llama 3 的 4 维并行与轴的顺序：[arXiv 2407.21783](https://arxiv.org/abs/2407.21783) 3.3.2 节
# - 序列并行与激活显存的账：[arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - `torch` 的 DeviceMesh：[教程](https://docs.pytorch.org/tutorials/recipes/distributed_device_mesh.html)

# %% [markdown] lang="en"
# ## 🛑 STOP HERE 🛑
#
# Finish the tasks and pass the checks before you look at the [reference solution](repo:solutions/en/04_model_internal_parallel.ipynb).
#
# **Step 5 (optional)** measures these candidates on real processes and several GPUs and then lets your three functions decide. It is a lesson of its own: [`05_multi_gpu_experiments`](repo:notebooks/en/05_multi_gpu_experiments.ipynb).
#
# **Further reading**
#
# - How Megatron-LM combines PP and TP: [arXiv 2104.04473](https://arxiv.org/abs/2104.04473)
# - Llama 3's 4 parallel dimensions and the order of its axes: [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2
# - Sequence parallelism and what activations cost: [arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - `torch`'s DeviceMesh: [tutorial](https://docs.pytorch.org/tutorials/recipes/distributed_device_mesh.html)
