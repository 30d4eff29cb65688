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
# # 01 · 流水线并行：把层切成阶段，让微批次流起来
#
# **难度** Medium | **环境** CPU-first，不需要 GPU | **标签** PP, 1F1B, microbatch, bubble
#
# **时间** 阅读约 30 分钟，动手约 45 分钟
#
# **前置** 会用 PyTorch 写一次前向和反向。不需要并行的经验。
#
# 一个模型放不进一张卡，最直接的办法是按层切：前几层放第 0 张卡，后几层放第 1 张卡。切开以后马上有 3 个问题：
# **切在哪里？先算谁？要等多久？** 本课各用一个函数回答。
#
# 你要写 3 个函数：按代价切分层，排出每个 rank 的 1F1B 顺序，再写一个模拟器，算出任何一种顺序要多久、等多久、占多少内存。每个函数后面都有检查，马上告诉你对错和原因。最后（可选）把你排的顺序放到 4 个真实的进程里运行，和模拟的结果对一对。

# %% [markdown] lang="en"
# # 01 · Pipeline parallelism: cut the layers into stages, let microbatches flow
#
# **Difficulty** Medium | **Environment** CPU-first, no GPU needed | **Tags** PP, 1F1B, microbatch, bubble
#
# **Time** about 30 minutes to read, about 45 to do
#
# **Prerequisites** You can write a forward and a backward pass in PyTorch. No experience with parallelism is needed.
#
# When a model does not fit on one device, the most direct way out is to cut it by layers: the first ones go on device 0, the rest on device 1. That raises 3 questions at once:
# **where to cut, what to run first, and how long does everybody wait?** This lesson answers each with a function.
#
# You write 3 functions: one splits layers by cost, one gives every rank its 1F1B order, one simulates any order and tells how long it takes, how long it waits and how much memory it needs. A check follows each function and tells you at once what is right, what is wrong and why. At the end (optional) your order runs in 4 real processes, and you compare it with the simulation.

# %%
# SETUP
import torch

from parlab.lesson import pipeline_charts as charts
from parlab.lesson import prove_pipeline
from parlab.lesson.checks import check_todo, ready
from parlab.lesson.draw_pipeline import draw_bubble, draw_in_flight, draw_splits, draw_stage_chain
from parlab.lesson.draw_timeline import Timeline, draw_timelines, uniform
from parlab.lesson.pipeline_charts import orders_of, spans_of
from parlab.lesson.proof import run_proof
from parlab.lesson.published import korthikanti

# %% [markdown] lang="zh"
# ## Step 1：一个阶段是什么
#
# 流水线并行（pipeline parallelism, PP）把**连续的**层分给不同的 rank。一个 rank 是一个进程，通常管一张卡；它手里的那一段层叫一个阶段（stage）。
#
# - 前向（forward）：每个阶段把自己的输出，也就是激活（activation），传给下一个阶段。
# - 反向（backward）：每个阶段把“损失对自己输入的梯度”传回上一个阶段。
#
# 除此之外什么都不传：权重、权重的梯度、优化器的状态都只待在自己的 rank 上。传输只发生在相邻的两个 rank 之间，叫点对点通信（point-to-point, P2P）。
#
# 先猜：图里有 4 个 rank，做一次前向加一次反向，一共传几次？

# %% [markdown] lang="en"
# ## Step 1: what a stage is
#
# Pipeline parallelism (PP) gives **consecutive** layers to different ranks. A rank is one process, usually with one device; the run of layers that it holds is a stage.
#
# - Forward: each stage sends its output, the activations, to the next stage.
# - Backward: each stage sends the gradient of the loss with respect to its input back to the previous stage.
#
# Nothing else is sent: weights, their gradients and the optimizer's state stay on their rank. What is sent goes between two neighbouring ranks only, which is called point-to-point (P2P).
#
# Predict: the picture has 4 ranks. One forward and one backward pass: how many sends are there in all?

# %%
draw_stage_chain()

# %% [markdown] lang="zh"
# 答案是 6：3 处边界，每处前向一次、反向一次。词嵌入（embedding）在第一个阶段，LM head 在最后一个阶段，它们也要花时间，Step 2 会用到。
#
# ### 1.1 真的切一次
#
# 下面把 7 层切成 3 个阶段，在一个进程里轮流扮演 3 个 rank。阶段之间只递过去一个张量：`detach()` 剪断计算图，就像数据从网络上收来的一样。

# %% [markdown] lang="en"
# The answer is 6: 3 boundaries, each crossed once forward and once backward. The embedding is in the first stage and the LM head in the last; they take time too, and Step 2 will need that.
#
# ### 1.1 Cut for real
#
# Here 7 layers are cut into 3 stages, and one process plays the 3 ranks in turn. Only one tensor is handed from stage to stage: `detach()` cuts the graph, just as if the numbers had come over the network.

# %%
torch.manual_seed(0)
layers = [torch.nn.Linear(5, 5, dtype=torch.float64) for _ in range(7)]
batch = torch.randn(12, 5, dtype=torch.float64)
stages = [torch.nn.Sequential(*layers[a:b]) for a, b in [(0, 2), (2, 5), (5, 7)]]

def train(stages, batch):
    kept, x = [], batch
    for stage in stages:                    # forward, first stage to last
        x = x.detach().requires_grad_()     # received: numbers, no graph
        kept.append((x, stage(x)))          # kept until this stage's backward
        x = kept[-1][1]
    received, sent = kept.pop()
    sent.square().sum().backward()          # the loss is on the last stage
    while kept:                             # backward, last stage to first
        gradient = received.grad            # received from the next stage
        received, sent = kept.pop()
        sent.backward(gradient)

# %%
def gradients(stages, *batches):
    for layer in layers:
        layer.zero_grad()
    for part in batches:
        train(stages, part)
    return [layer.weight.grad.clone() for layer in layers]

whole = gradients([torch.nn.Sequential(*layers)], batch)
cut = gradients(stages, batch)
print('3 stages, same gradients as 1:', all(map(torch.allclose, whole, cut)))

# %% [markdown] lang="zh"
# 注意 `kept`：一个阶段做完前向，要把输入和计算图一直留到自己的反向。**从前向到反向的这段时间里，激活占着内存。** Step 3 的调度，很大一部分就是为了让它们少留一会儿。
#
# ### 1.2 微批次
#
# 把一批样本切成几份，每份叫一个微批次（microbatch），一份一份地做前向和反向，梯度累加起来。损失是对样本求和，所以总和不变。先猜：12 个样本切成 4 份，梯度会不会差一点？

# %% [markdown] lang="en"
# Look at `kept`: after its forward, a stage keeps its input and its graph until its own backward. **From forward to backward the activations occupy memory.** Much of what the schedules of Step 3 are about is to keep them for less time.
#
# ### 1.2 Microbatches
#
# Cut the batch into parts, each of them a microbatch, do forward and backward part by part, and let the gradients add up. The loss is a sum over samples, so the total is the same. Predict: with 12 samples in 4 parts, will the gradients be a little different?

# %%
parts = gradients(stages, *batch.chunk(4))
print('4 microbatches, same gradients:', all(map(torch.allclose, whole, parts)))

# %% [markdown] lang="zh"
# ## Step 2：切在哪里
#
# 流水线转起来以后，每隔一段时间出来一个微批次，这段时间等于**最慢的阶段**做一个微批次的时间。别的阶段再快，也只能等它。所以切分的目标不是每个阶段层数一样，而是最慢的阶段尽可能快。
#
# 层的代价不一样。拿一个和 Llama 3 8B 一样大的模型（32 层，隐藏维（hidden size）4096，FFN 14336，词表 128256，序列 8192），数一数每个 token 前向要多少浮点运算，单位是百万。词嵌入只是查表，算作 0。
#
# 先猜：LM head 抵得上几层？

# %% [markdown] lang="en"
# ## Step 2: where to cut
#
# Once a pipeline is running, one microbatch comes out of it every so often: as often as **the slowest stage** can do one. The other stages, however fast, have to wait. So the aim of a split is not the same number of layers in each stage, but a slowest stage that is as fast as possible.
#
# Layers do not cost the same. Take a model of the size of Llama 3 8B (32 layers, hidden size 4096, FFN 14336, vocabulary 128256, sequence 8192) and count the floating-point operations of a forward pass for one token, in millions. The embedding is a look-up and counts as 0.
#
# Predict: how many layers does the LM head weigh?

# %%
hidden, ffn, kv_width, tokens = 4096, 14336, 1024, 8192
weights = 2 * hidden * hidden + 2 * hidden * kv_width + 3 * hidden * ffn   # q o, k v, FFN
layer = (2 * weights + 2 * hidden * tokens) // 10**6   # matrices, then causal attention
head = 2 * hidden * 128256 // 10**6
costs_8b = [0] + [layer] * 32 + [head]   # embedding, 32 layers, LM head
print(f'layer {layer}, LM head {head}: as much as {head / layer:.2f} layers')

# %% [markdown] lang="zh"
# 所以平均分 32 层并不平均。下图是 8 个阶段、每个阶段 4 层时的代价，每一小格是一层，有斜线的是词嵌入（看不见，因为是 0）和 LM head。红线是最慢的阶段：最后一个。

# %% [markdown] lang="en"
# So an even split of the 32 layers is not even. The picture shows the cost of 8 stages with 4 layers each. Every small box is a layer; hatched are the embedding (which cannot be seen, since it is 0) and the LM head. The red line is the slowest stage: the last one.

# %%
even_8b = [5, 4, 4, 4, 4, 4, 4, 5]   # embedding and LM head are counted too
draw_splits(costs_8b, ('8B model, 4 layers a stage', even_8b))
print(f'a stage costs {sum(costs_8b) / 8:.0f} on average, the slowest 4 × {layer} + {head}')

# %% [markdown] lang="zh"
# ### TODO 1：按代价切分
#
# `split_layers(costs, stages)`：`costs` 是每一层的代价，不小于 0 的整数，第一个是词嵌入，最后一个是 LM head，它们和别的层一样处理。`stages` 是阶段数，不超过层数。返回一个列表：每个阶段有几层。每个阶段至少一层，顺序不能变。规则有 3 条，前一条分不出高下，才看后一条：
#
# 1. 最慢的阶段尽可能快：各阶段代价的最大值最小；
# 2. 各阶段代价的平方和最小，也就是其余的阶段也尽量平均；
# 3. 层数列表的字典序最小：先比第一个阶段，层数少的优先，一样就比下一个（Python 比较两个列表就是这样比的）。前面的阶段要留更多激活，少放一层更好，Step 3 会看到。
#
# 例：`costs = [6, 1, 5, 3, 2]`，`stages = 4`，有 4 种切法。
#
# | 层数 | 各阶段代价 | 最慢 | 平方和 |
# |---|---|---|---|
# | `[2, 1, 1, 1]` | 7, 5, 3, 2 | 7 | 87 |
# | `[1, 2, 1, 1]` | 6, 6, 3, 2 | 6 | 85 |
# | `[1, 1, 2, 1]` | 6, 1, 8, 2 | 8 | 105 |
# | `[1, 1, 1, 2]` | 6, 1, 5, 5 | 6 | 87 |
#
# 答案是 `[1, 2, 1, 1]`。小心：单看后 4 层，`[1, 1, 2]` 的最慢是 5，比 `[2, 1, 1]` 的 6 好；可是第一个阶段反正要 6，这个 5 换不来什么，反而平方和更大。**一段的最优，拼起来不一定是整体的最优。**
#
# 检查里有 128 层、16 个阶段：切法大约有 10 的 19 次方种，一种一种地试，试不完。每次调用要在 3 秒内结束。
#
# <details><summary>提示 1：方向</summary>
#
# 分两步。先只求“最慢的阶段最快能有多快”。再在所有不超过它的切法里，用第 2、3 条规则选一个。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 第一步：给定一个上限，从左到右尽量装，装不下就开一个新阶段，看要几个阶段；几个才够，就试哪个上限。上限只可能是连续几层的代价之和。第二步：从第几层开始、还剩几个阶段，这两个数决定一个子问题。枚举下一个阶段放几层，剩下的交给更小的子问题，把答案记住，不要重复算。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 第二步里平方和可以相加：这个阶段的代价的平方，加上剩下那些阶段的最小平方和。代价超过上限的阶段不要。子问题的答案用元组存：先放平方和，再放层数的元组，比较元组就同时用了规则 2 和规则 3。itertools 的 accumulate 给出前缀和，两个前缀和相减就是一个阶段的代价。
# </details>

# %% [markdown] lang="en"
# ### TODO 1: split by cost
#
# `split_layers(costs, stages)`: `costs` holds the cost of every layer, whole numbers not below 0; the first is the embedding, the last the LM head, and they are treated like any other layer. `stages` is the number of stages, at most the number of layers. Return a list: how many layers each stage has. Every stage has at least one layer, and the order stays. There are 3 rules; each decides only where the one before leaves a tie:
#
# 1. the slowest stage is as fast as possible: the largest stage cost is smallest;
# 2. the sum of the squared stage costs is smallest, so that the other stages are as even as possible too;
# 3. the list of sizes is lexicographically smallest: compare the first stage, fewer layers win, then the next (this is how Python compares two lists). Earlier stages have to keep more activations, so it is good if they hold a layer less, as Step 3 will show.
#
# Example: `costs = [6, 1, 5, 3, 2]`, `stages = 4`, which leaves 4 splits.
#
# | sizes | stage costs | slowest | sum of squares |
# |---|---|---|---|
# | `[2, 1, 1, 1]` | 7, 5, 3, 2 | 7 | 87 |
# | `[1, 2, 1, 1]` | 6, 6, 3, 2 | 6 | 85 |
# | `[1, 1, 2, 1]` | 6, 1, 8, 2 | 8 | 105 |
# | `[1, 1, 1, 2]` | 6, 1, 5, 5 | 6 | 87 |
#
# The answer is `[1, 2, 1, 1]`. Careful: of the last 4 layers alone, `[1, 1, 2]` has a slowest stage of 5, which beats the 6 of `[2, 1, 1]`; but the first stage takes 6 anyway, so that 5 buys nothing and only makes the sum of squares larger. **The best parts do not always make the best whole.**
#
# The check has 128 layers over 16 stages: that is about 10 to the power of 19 splits, too many to try one by one. Every call has to end within 3 seconds.
#
# <details><summary>Hint 1: direction</summary>
#
# Take two steps. First find only how fast the slowest stage can be. Then, among all splits that stay within that limit, choose by rules 2 and 3.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# First step: with a limit given, fill up from left to right, open a new stage when the next layer does not fit, and count the stages; the limit you want is the smallest one for which there are enough. A limit can only be the sum of some neighbouring layers. Second step: the layer to start from and the number of stages left make a subproblem. Try every size for the next stage, hand the rest to a smaller subproblem, and remember its answer instead of computing it again.
# </details>
# <details><summary>Hint 3: details</summary>
#
# In the second step the sum of squares adds up: the square of this stage's cost plus the smallest sum of squares of the stages that remain. Leave out stages above the limit. Store a subproblem's answer as a tuple, the sum of squares first, then the tuple of sizes: comparing tuples then applies rule 2 and rule 3 together. accumulate from itertools gives prefix sums; the difference of two of them is the cost of a stage.
# </details>

# %% lang="zh"
# TODO 1 · split_layers
def split_layers(costs, stages):
    """把层切成连续的阶段，返回每个阶段的层数：先看最慢的阶段，再看平方和，再看字典序。"""
    # TODO 1：先求最慢阶段的上限，再在上限之内选一种切法。
    # sizes = ???
    # BEGIN SOLUTION
    from bisect import bisect_left
    from itertools import accumulate

    count, sums = len(costs), [0, *accumulate(costs)]

    def enough(limit):
        needed, start = 1, 0
        for end in range(1, count + 1):
            if sums[end] - sums[start] > limit:
                needed, start = needed + 1, end - 1
        return needed <= stages

    limits = {sums[b] - sums[a] for a in range(count) for b in range(a + 1, count + 1)}
    limits = sorted(limit for limit in limits if limit >= max(costs))
    slowest = limits[bisect_left(limits, True, key=enough)]

    best = {count: (0, ())}  # 从哪一层开始 → 剩下各层的平方和与切法
    for _ in range(stages):
        longer = {}
        for start in range(count):
            for end in range(start + 1, count + 1):
                cost = sums[end] - sums[start]
                if cost > slowest:
                    break
                if end in best:
                    squares, rest = best[end]
                    found = (cost * cost + squares, (end - start, *rest))
                    longer[start] = min(found, longer.get(start, found))
        best = longer
    sizes = list(best[0][1])
    # END SOLUTION
    return sizes

# %% lang="en"
# TODO 1 · split_layers
def split_layers(costs, stages):
    """Cut the layers into consecutive stages, return how many each has: slowest, squares, order."""
    # TODO 1: first the limit of the slowest stage, then a split within that limit.
    # sizes = ???
    # BEGIN SOLUTION
    from bisect import bisect_left
    from itertools import accumulate

    count, sums = len(costs), [0, *accumulate(costs)]

    def enough(limit):
        needed, start = 1, 0
        for end in range(1, count + 1):
            if sums[end] - sums[start] > limit:
                needed, start = needed + 1, end - 1
        return needed <= stages

    limits = {sums[b] - sums[a] for a in range(count) for b in range(a + 1, count + 1)}
    limits = sorted(limit for limit in limits if limit >= max(costs))
    slowest = limits[bisect_left(limits, True, key=enough)]

    best = {count: (0, ())}  # first layer -> sum of squares and sizes of all from there on
    for _ in range(stages):
        longer = {}
        for start in range(count):
            for end in range(start + 1, count + 1):
                cost = sums[end] - sums[start]
                if cost > slowest:
                    break
                if end in best:
                    squares, rest = best[end]
                    found = (cost * cost + squares, (end - start, *rest))
                    longer[start] = min(found, longer.get(start, found))
        best = longer
    sizes = list(best[0][1])
    # END SOLUTION
    return sizes

# %% lang="zh"
# CHECK 1
with check_todo(1, 'split_layers', seconds=3) as call:
    from parlab.lesson.pipeline_checks import even_splits, small_splits, split_fault
    rules = {
        'sizes': '返回列表：每个阶段的层数，都是大于 0 的整数，个数等于 stages，总和等于层数',
        'slowest': '规则 1：最慢的阶段尽可能快',
        'squares': '规则 2：最慢的阶段一样快，选各阶段代价的平方和最小的',
        'first': '规则 3：前两条都一样，选字典序最小的层数列表',
    }
    named = [
        ([1] * 8, 4, [2, 2, 2, 2]),
        ([3, 1, 1, 1, 1, 1], 2, [2, 4]),      # 层数不等，代价相等
        ([0, 2, 2, 2, 2, 5], 3, [3, 2, 1]),   # 词嵌入不花时间，LM head 很贵
        ([2, 1, 1, 4, 1], 3, [3, 1, 1]),      # 规则 1 比规则 2 要紧
        ([6, 2, 2, 2, 2], 3, [1, 2, 2]),      # 第一个阶段最慢，其余的也要平均
        ([6, 1, 5, 3, 2], 4, [1, 2, 1, 1]),   # 题目里的例子
        ([1] * 5, 2, [2, 3]),                 # 规则 3
        ([4, 7, 4], 1, [3]),
        ([1, 2, 3], 3, [1, 1, 1]),
        ([1] * 61, 16, [3] * 3 + [4] * 13),   # DeepSeek-V3 的 61 层，16 个阶段
        ([1] * 128, 16, [8] * 16),            # Llama 3 405B：126 层，加词嵌入和 LM head
    ]
    for costs, stages, best in [*named, *small_splits(), *even_splits()]:
        fault = split_fault(costs, stages, call(costs, stages), best)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])

# %% lang="en"
# CHECK 1
with check_todo(1, 'split_layers', seconds=3) as call:
    from parlab.lesson.pipeline_checks import even_splits, small_splits, split_fault
    rules = {
        'sizes': 'return a list of sizes: ints above 0, as many as stages, adding up to all layers',
        'slowest': 'rule 1: the slowest stage is as fast as possible',
        'squares': 'rule 2: the slowest stage ties, so the smallest sum of squared costs wins',
        'first': 'rule 3: both tie, so the lexicographically smallest list of sizes wins',
    }
    named = [
        ([1] * 8, 4, [2, 2, 2, 2]),
        ([3, 1, 1, 1, 1, 1], 2, [2, 4]),      # other sizes, equal costs
        ([0, 2, 2, 2, 2, 5], 3, [3, 2, 1]),   # the embedding is free, the LM head is dear
        ([2, 1, 1, 4, 1], 3, [3, 1, 1]),      # rule 1 comes before rule 2
        ([6, 2, 2, 2, 2], 3, [1, 2, 2]),      # the first stage is slowest, the rest is even too
        ([6, 1, 5, 3, 2], 4, [1, 2, 1, 1]),   # the example above
        ([1] * 5, 2, [2, 3]),                 # rule 3
        ([4, 7, 4], 1, [3]),
        ([1, 2, 3], 3, [1, 1, 1]),
        ([1] * 61, 16, [3] * 3 + [4] * 13),   # DeepSeek-V3's 61 layers over 16 stages
        ([1] * 128, 16, [8] * 16),            # Llama 3 405B: 126 layers, embedding and LM head
    ]
    for costs, stages, best in [*named, *small_splits(), *even_splits()]:
        fault = split_fault(costs, stages, call(costs, stages), best)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])

# %% [markdown] lang="zh"
# #### 用你的函数切 8B 模型
#
# 先猜：最后一个阶段有 LM head，它还会剩几层？最慢的阶段能快多少？

# %% [markdown] lang="en"
# #### Split the 8B model with your function
#
# Predict: the last stage has the LM head; how many layers will it keep? And how much faster does the slowest stage get?

# %%
if ready('split_layers'):
    sizes_8b = split_layers(costs_8b, 8)
    draw_splits(costs_8b, ('4 layers a stage', even_8b), ('split by cost', sizes_8b))
    print('layers a stage:', [sizes_8b[0] - 1, *sizes_8b[1:-1], sizes_8b[-1] - 1])

# %% [markdown] lang="zh"
# 最后一个阶段只剩 2 层加 LM head，最慢的阶段从 3062 降到 2515，快了 18%。一层的代价是 503，所以最慢的阶段只能是几个 503 加起来，再细就要切开一层了：那是第 02 课的张量并行。
#
# #### 两个公开的例子
#
# Llama 3 405B（arXiv 2407.21783）有 126 层，16 个阶段，不能整除。Meta 把词嵌入和 LM head 各算一层：(126 + 2) / 16 = 8，于是首尾两个阶段各少放一层。DeepSeek-V3（arXiv 2412.19437）有 61 层，也是 16 个阶段。

# %% [markdown] lang="en"
# The last stage keeps 2 layers and the LM head, and the slowest stage goes from 3062 down to 2515, which is 18% faster. A layer costs 503, so the slowest stage is some 503s added up; to go finer one would have to cut a layer in two, and that is the tensor parallelism of lesson 02.
#
# #### Two published cases
#
# Llama 3 405B (arXiv 2407.21783) has 126 layers over 16 stages, which does not divide evenly. Meta counts the embedding and the LM head as one layer each: (126 + 2) / 16 = 8, so the first and the last stage hold one layer less. DeepSeek-V3 (arXiv 2412.19437) has 61 layers, over 16 stages as well.

# %%
if ready('split_layers'):
    sizes = split_layers([1] * (126 + 2), 16)
    print('Llama 3 405B:', [sizes[0] - 1, *sizes[1:-1], sizes[-1] - 1])
    print('DeepSeek-V3: ', split_layers([1] * 61, 16))

# %% [markdown] lang="zh"
# ## Step 3：先算谁
#
# 切好了，4 个 rank 各管一个阶段。谁在什么时候做哪个微批次的前向或反向，叫调度（schedule）。
#
# ### 3.1 为什么要微批次
#
# 反向大约要前向的两倍时间：前向一次矩阵乘法，反向要两次，一次求输入的梯度，一次求权重的梯度。下图里前向 1 格，反向 2 格，方块里的数是微批次的编号，点状的部分在空转，叫气泡（bubble）。空转占总时间的比例叫气泡占比（bubble ratio）。
#
# 上图把整批样本当一个微批次：任何时刻只有一个 rank 在干活。下图切成 4 份。先猜：两张图的气泡占比各是多少？

# %% [markdown] lang="en"
# ## Step 3: what to run first
#
# The model is cut, and 4 ranks hold a stage each. Which rank does which microbatch's forward or backward, and when, is the schedule.
#
# ### 3.1 Why microbatches
#
# A backward pass takes about twice as long as a forward pass: one matrix product forward, two backward, one for the gradient of the input and one for that of the weights. In the picture a forward takes 1 unit and a backward 2; the number in a box is the microbatch; the dotted part is idle, and that is the bubble. Idle time over total time is the bubble ratio.
#
# The upper picture runs the whole batch as one microbatch: at any time only one rank works. The lower one cuts it into 4. Predict: what are the two bubble ratios?

# %%
UNITS = {'F': 1, 'B': 2}
at_once = spans_of(charts.WHOLE, UNITS, unit=4)
draw_timelines(
    Timeline('the whole batch at once', orders_of(charts.WHOLE), at_once),
    Timeline('4 microbatches', orders_of(charts.GPIPE_4), spans_of(charts.GPIPE_4, UNITS)),
)
print(f'bubble ratio: {1 - 12 / 48:.3f} and {1 - 12 / 21:.3f}')

# %% [markdown] lang="zh"
# 每个 rank 干活的时间都是 12 格，总时间从 48 降到 21。
#
# ### 3.2 气泡从哪里来
#
# 流水线要先灌满、最后排空。p 个一样快的阶段，m 个微批次，前向用时 F，反向用时 B：每个 rank 干活 m(F + B)；第一个微批次走到最后一个阶段要等 p−1 个前向，最后一个微批次走回来要等 p−1 个反向，所以空转 (p−1)(F + B)。气泡占比是
#
# $$\frac{p-1}{m+p-1}$$
#
# Megatron-LM（arXiv 2104.04473）写成 (p−1)/m，那是和没有气泡的理想时间相比。看图：微批次加倍，气泡占比大约减半；阶段越多，需要的微批次越多。

# %% [markdown] lang="en"
# Every rank works for 12 units in both; the total goes from 48 down to 21.
#
# ### 3.2 Where the bubble comes from
#
# A pipeline has to be filled first and drained in the end. With p equally fast stages, m microbatches, F for a forward and B for a backward, a rank works for m(F + B); the first microbatch takes p−1 forwards to get to the last stage, the last one p−1 backwards to get back, so a rank is idle for (p−1)(F + B). The bubble ratio is
#
# $$\frac{p-1}{m+p-1}$$
#
# Megatron-LM (arXiv 2104.04473) writes (p−1)/m, which compares with the ideal time without a bubble. In the picture: twice the microbatches make about half the bubble, and more stages need more microbatches.

# %%
counts = [1, 2, 4, 8, 16, 32, 64]
draw_bubble(counts, [(p, [(p - 1) / (m + p - 1) for m in counts]) for p in (2, 8, 16, 32)])

# %% [markdown] lang="zh"
# 真实的训练用多少微批次？下面是 arXiv 2205.05198 的 3 个模型，每个微批次一个序列。最后一列是让每个 rank 管 v 个阶段的交错（interleaved）调度，气泡再除以大约 v，Step 5 会看一眼。

# %% [markdown] lang="en"
# How many microbatches do real runs use? Here are 3 models of arXiv 2205.05198, with one sequence a microbatch. The last column is the interleaved schedule, in which a rank holds v stages and the bubble shrinks by about v again; Step 5 takes a glance at it.

# %%
print(f"{'model':<7}{'p':>4}{'m':>5}{'bubble':>9}{'v':>4}{'interleaved':>13}")
for row in korthikanti():
    p, m, v = row['pp'], row['batch'] // row['micro_batch'], row['chunks']
    plain, interleaved = (p - 1) / (m + p - 1), (p - 1) / (v * m + p - 1)
    print(f"{row['name']:<7}{p:>4}{m:>5}{plain:>9.3f}{v:>4}{interleaved:>13.3f}")

# %% [markdown] lang="zh"
# ### 3.3 GPipe 与 1F1B
#
# 同样 4 个阶段、8 个微批次，两种调度：
#
# - **GPipe**：先做完所有前向，再做所有反向。
# - **1F1B**（one forward, one backward）：先做几个前向把流水线灌满，然后一个反向、一个前向地交替，最后把剩下的反向做完。
#
# 先猜：哪一种更快？

# %% [markdown] lang="en"
# ### 3.3 GPipe and 1F1B
#
# The same 4 stages and 8 microbatches under two schedules:
#
# - **GPipe**: all forwards first, then all backwards.
# - **1F1B** (one forward, one backward): some forwards to fill the pipeline, then one backward and one forward in turn, and in the end the backwards that are left.
#
# Predict: which one is faster?

# %%
draw_timelines(
    Timeline('GPipe', orders_of(charts.GPIPE_8), spans_of(charts.GPIPE_8, UNITS)),
    Timeline('1F1B', orders_of(charts.ONE_F_ONE_B_8), spans_of(charts.ONE_F_ONE_B_8, UNITS)),
)

# %% [markdown] lang="zh"
# 一样快：都是 33 格，气泡占比都是 3/11。1F1B 的好处不在时间，在内存。
#
# ### 3.4 微批次占多少内存
#
# 一个微批次在某个阶段上，从前向**开始**到反向**结束**，它的激活都要留着。这样的微批次叫在途（in-flight）。看上图的 rank 0：GPipe 在第一个反向之前已经攒了 8 个；1F1B 攒到 4 个，以后做完一个反向才开始一个新的前向，再也不会更多。
#
# 下图是每个阶段最多留几个：GPipe 总是 m 个；1F1B 在最后一个阶段是 1 个，每往前一个阶段多 1 个，但不会超过 m。所以第一个阶段最吃内存：这就是 TODO 1 里平局时让前面的阶段少放一层的原因。

# %% [markdown] lang="en"
# Neither: both take 33 units, with a bubble ratio of 3/11. What 1F1B saves is not time but memory.
#
# ### 3.4 How much memory microbatches take
#
# On a stage, a microbatch's activations have to be kept from the **beginning** of its forward to the **end** of its backward. Such a microbatch is in flight. Look at rank 0 above: before its first backward, GPipe has piled up 8; 1F1B has piled up 4, and from then on starts a new forward only after a backward, so there are never more.
#
# The picture shows the most that each stage keeps: GPipe always m; 1F1B keeps 1 on the last stage and 1 more on each stage before it, but never more than m. So the first stage needs the most memory, which is why a tie in TODO 1 gives the earlier stages a layer less.

# %%
draw_in_flight('4 stages, 8 microbatches', ('GPipe', [8] * 4), ('1F1B', [4, 3, 2, 1]))

# %% [markdown] lang="zh"
# 换成真实的数。arXiv 2205.05198 的 175B 模型：96 层，p = 8，m = 64，每张卡一层一个微批次留 34 × 序列 × 隐藏维 / 8 字节的激活（用 8 路张量并行和序列并行，不存注意力分数）。

# %% [markdown] lang="en"
# With real numbers: the 175B model of arXiv 2205.05198 has 96 layers, p = 8 and m = 64; a device keeps 34 × sequence × hidden size / 8 bytes of activations for each layer and microbatch (8-way tensor and sequence parallelism, no attention scores stored).

# %%
row = korthikanti()[0]
one = 34 * row['sequence_length'] * row['hidden'] / row['tp'] * row['num_layers'] / row['pp']
print(f'one microbatch on a stage {one / 2**30:.2f} GiB')
print(f'first stage: GPipe {64 * one / 2**30:.1f} GiB, 1F1B {8 * one / 2**30:.2f} GiB')
print(f'interleaved 1F1B, v = 3: {8 * one / 2**30 * (1 + 7 / (8 * 3)):.2f} GiB')

# %% [markdown] lang="zh"
# 一张 80 GB 的卡还要放 45.6 GiB 的权重、梯度和优化器状态：GPipe 放不下，1F1B 可以。论文的运行用交错调度，第一个 rank 要多留一些，是 1F1B 的 1 + (p−1)/(pv) 倍：最后一行，和论文给出的 12.35 GiB 一致。微批次再多，1F1B 的第一个阶段也只留 p 个；GPipe 留下的总是整批。

# %% [markdown] lang="en"
# A device with 80 GB also has to hold 45.6 GiB of weights, gradients and optimizer state: GPipe does not fit, 1F1B does. The paper's run is interleaved, where the first rank keeps more, 1 + (p−1)/(pv) times what it does under 1F1B: that is the last line, and the 12.35 GiB that the paper reports. However many microbatches there are, the first stage of 1F1B keeps only p of them; GPipe always keeps the whole batch.

# %% [markdown] lang="zh"
# ### TODO 2：排出 1F1B 的顺序
#
# `one_f_one_b(rank, stages, microbatches)` 返回一个 rank 要做的事，按先后排成列表。每一步是一个元组 `(种类, 阶段, 微批次)`：种类是 `'F'` 或 `'B'`；这里 rank 几就管阶段几；微批次从 0 数起。p = 3、m = 5 时（F3 是 `('F', rank, 3)` 的简写）：
#
# | rank | 顺序 |
# |---|---|
# | 0 | F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 |
# | 1 | F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 |
# | 2 | F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 |
#
# 1. 先连续做几个前向：最后一个阶段 1 个，每往前一个阶段多 1 个，微批次不够就有几个做几个；
# 2. 然后一个反向、一个前向地交替，直到前向用完；
# 3. 最后把剩下的反向做完。前向和反向都按 0, 1, 2, … 的次序。
#
# 任何 `stages` ≥ 1、`microbatches` ≥ 1 都要对，微批次比阶段少也一样。
#
# <details><summary>提示 1：方向</summary>
#
# 整个顺序由一个数决定：第一个反向之前有几个前向。先算出它。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 先放那几个前向。再对每个微批次放一个反向，后面跟一个还没做过的前向，如果还有的话。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 设先做了 w 个前向。w 是 microbatches 和 stages − rank 里较小的那个。反向 0 后面跟的是前向 w，反向 1 后面跟前向 w + 1，编号到了 microbatches 就不放。
# </details>

# %% [markdown] lang="en"
# ### TODO 2: the 1F1B order
#
# `one_f_one_b(rank, stages, microbatches)` returns what one rank does, in order, as a list. Each step is a tuple `(kind, stage, microbatch)`: the kind is `'F'` or `'B'`; here each rank holds the stage of its own number; microbatches count from 0. With p = 3 and m = 5 (F3 is short for `('F', rank, 3)`):
#
# | rank | order |
# |---|---|
# | 0 | F0 F1 F2 B0 F3 B1 F4 B2 B3 B4 |
# | 1 | F0 F1 B0 F2 B1 F3 B2 F4 B3 B4 |
# | 2 | F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 |
#
# 1. Some forwards in a row: 1 on the last stage, 1 more on each stage before it, and where there are too few microbatches, as many as there are;
# 2. then one backward and one forward in turn, until the forwards are used up;
# 3. in the end the backwards that are left. Forwards and backwards both go 0, 1, 2, …
#
# It has to be right for any `stages` ≥ 1 and `microbatches` ≥ 1, also with fewer microbatches than stages.
#
# <details><summary>Hint 1: direction</summary>
#
# One number decides the whole order: how many forwards come before the first backward. Work that out first.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# First those forwards. Then, for every microbatch, its backward, followed by a forward that has not been done yet, if there is one.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Say w forwards come first. w is the smaller of microbatches and stages − rank. Backward 0 is followed by forward w, backward 1 by forward w + 1; a number that reaches microbatches is left out.
# </details>

# %% lang="zh"
# TODO 2 · one_f_one_b
def one_f_one_b(rank, stages, microbatches):
    """一个 rank 在 1F1B 下依次做的事：[('F' 或 'B', 阶段, 微批次), …]。"""
    # TODO 2：先灌满，再交替，最后排空。
    # order = ???
    # BEGIN SOLUTION
    first = min(microbatches, stages - rank)
    order = [('F', rank, number) for number in range(first)]
    for number in range(microbatches):
        order.append(('B', rank, number))
        if first + number < microbatches:
            order.append(('F', rank, first + number))
    # END SOLUTION
    return order

# %% lang="en"
# TODO 2 · one_f_one_b
def one_f_one_b(rank, stages, microbatches):
    """What a rank does under 1F1B, in order: [('F' or 'B', stage, microbatch), …]."""
    # TODO 2: fill, take turns, drain.
    # order = ???
    # BEGIN SOLUTION
    first = min(microbatches, stages - rank)
    order = [('F', rank, number) for number in range(first)]
    for number in range(microbatches):
        order.append(('B', rank, number))
        if first + number < microbatches:
            order.append(('F', rank, first + number))
    # END SOLUTION
    return order

# %% lang="zh"
# CHECK 2
with check_todo(2, 'one_f_one_b', seconds=3) as call:
    from parlab.lesson.pipeline_checks import order_fault
    rules = {
        'form': "返回列表，每一步是元组 (种类, 阶段, 微批次)，种类是 'F' 或 'B'，后两个是整数",
        'own': '这个 rank 只做自己的阶段：rank 几就是阶段几',
        'once': '每个微批次恰好一个前向、一个反向，编号从 0 到 microbatches − 1',
        'sequence': '前向按 0, 1, 2, … 的次序，反向也一样',
        'before': '一个微批次的反向不能在它的前向之前',
        'warm_up': '第一个反向之前的前向：最后一个阶段 1 个，每往前一个阶段多 1 个，最多 m 个',
        'alternate': '第一个反向之后，一个前向、一个反向地交替，直到前向用完',
    }
    sizes = [(3, 5), (4, 2), (1, 3), (5, 1), (2, 2)]
    sizes += [(p, m) for p in range(1, 7) for m in range(1, 13)]
    for stages, microbatches in sizes:
        for rank in range(stages):
            got = call(rank, stages, microbatches)
            fault = order_fault(got, rank, stages, microbatches)
            assert not fault, call.wrong(rules[fault[0]], *fault[1:])

# %% lang="en"
# CHECK 2
with check_todo(2, 'one_f_one_b', seconds=3) as call:
    from parlab.lesson.pipeline_checks import order_fault
    rules = {
        'form': "return a list of tuples (kind, stage, microbatch): 'F' or 'B', then two ints",
        'own': 'a rank works on its own stage only: the stage of the same number',
        'once': 'one forward and one backward for each microbatch, from 0 to microbatches − 1',
        'sequence': 'forwards come in the order 0, 1, 2, … and so do backwards',
        'before': 'the backward of a microbatch cannot come before its forward',
        'warm_up': 'F before the first B: 1 on the last stage, 1 more on each before it, at most m',
        'alternate': 'after the first backward, F and B take turns until no forward is left',
    }
    sizes = [(3, 5), (4, 2), (1, 3), (5, 1), (2, 2)]
    sizes += [(p, m) for p in range(1, 7) for m in range(1, 13)]
    for stages, microbatches in sizes:
        for rank in range(stages):
            got = call(rank, stages, microbatches)
            fault = order_fault(got, rank, stages, microbatches)
            assert not fault, call.wrong(rules[fault[0]], *fault[1:])

# %% [markdown] lang="zh"
# #### 和图对一对
#
# 3.3 的图是照着 `parlab.lesson.pipeline_charts` 里写好的表画的。你排的顺序和它一样吗？微批次比阶段少又会怎样？先猜：p = 4、m = 2 时，rank 0 会不会和 GPipe 一样？

# %% [markdown] lang="en"
# #### Compare with the picture
#
# The picture in 3.3 was drawn from a table that is written down in `parlab.lesson.pipeline_charts`. Is your order the same? And what if there are fewer microbatches than stages? Predict: with p = 4 and m = 2, does rank 0 do the same as under GPipe?

# %%
if ready('one_f_one_b'):
    yours = [one_f_one_b(rank, 4, 8) for rank in range(4)]
    print('same as the picture:', yours == orders_of(charts.ONE_F_ONE_B_8))
    for rank in range(4):
        steps = one_f_one_b(rank, 4, 2)
        print(f'rank {rank}:', *(f'{kind}{number}' for kind, _, number in steps))

# %% [markdown] lang="zh"
# ## Step 4：要等多久
#
# 公式只管一种情形：阶段一样快，传输不花时间。现实里阶段有快有慢，传输要时间，调度有很多种。把顺序交给一个模拟器，什么都能算。
#
# ### 4.1 一步要等什么
#
# 每个 rank 从头到尾按自己的顺序做，一步做完才做下一步。一步在它等的东西**全部**到齐的那一刻开始：
#
# | 一步 | 等什么 |
# |---|---|
# | 任何一步 | 同一个 rank 的上一步结束 |
# | `('F', s, j)`，s > 0 | `('F', s − 1, j)` 结束，再加传输 |
# | `('B', s, j)` | `('F', s, j)` 结束 |
# | `('B', s, j)`，s 不是最后一个阶段 | `('B', s + 1, j)` 结束，再加传输 |
#
# 其他种类的步只等同一个 rank 的上一步（Step 5 会用到 `'W'`）。传输只让收的一方晚一点拿到，**不占用任何 rank**：发的一方马上做下一步。两个阶段在同一个 rank 上，就不用传。
#
# 下图是 3 个 rank、2 个微批次，前向 1，反向 2，传输 0.5，红色箭头是传输。先猜：rank 2 的 F1 为什么不在 4 开始？

# %% [markdown] lang="en"
# ## Step 4: how long does it take
#
# The formula covers one case only: equally fast stages and sends that take no time. Really, some stages are slower, sends do take time, and there are many schedules. Give the order to a simulator and all of that can be computed.
#
# ### 4.1 What a step waits for
#
# Every rank works through its order from beginning to end, one step after another. A step begins at the moment when **everything** that it waits for is there:
#
# | step | waits for |
# |---|---|
# | any step | the end of the step before it on the same rank |
# | `('F', s, j)`, s > 0 | the end of `('F', s − 1, j)`, plus the transfer |
# | `('B', s, j)` | the end of `('F', s, j)` |
# | `('B', s, j)`, s not the last stage | the end of `('B', s + 1, j)`, plus the transfer |
#
# Steps of any other kind wait only for the step before them on the same rank (Step 5 will use `'W'`). A transfer makes the receiver get it later and **occupies no rank**: the sender goes on at once. Between two stages on the same rank nothing has to be sent.
#
# The picture has 3 ranks and 2 microbatches, forward 1, backward 2, transfer 0.5; the red arrows are the transfers. Predict: why does F1 not begin at 4 on rank 2?

# %%
orders = orders_of('F0 F1 B0 B1\nF0 F1 B0 B1\nF0 B0 F1 B1')
spans = [[(0, 1), (1, 2), (9, 11), (12, 14)],
         [(1.5, 2.5), (2.5, 3.5), (6.5, 8.5), (9.5, 11.5)],
         [(3, 4), (4, 6), (6, 7), (7, 9)]]
sends = [(('F', s, j), ('F', s + 1, j)) for s in (0, 1) for j in (0, 1)]
sends += [(('B', s, j), ('B', s - 1, j)) for s in (2, 1) for j in (0, 1)]
draw_timelines(Timeline('transfer 0.5', orders, spans, sends))

# %% [markdown] lang="zh"
# 它在 4 就收到了，可是这个 rank 的顺序是 F0 B0 F1 B1，B0 要到 6 才结束。顺序是死的：后面的步就算能做，也要等前面的做完。
#
# ### 4.2 死锁
#
# 顺序排错，就可能谁也走不动：每个 rank 的下一步都在等别人还没做的事。这叫死锁（deadlock）。真实的程序会一直停在那里，直到超时；模拟器应当发现它，说出每个 rank 卡在哪一步。

# %% [markdown] lang="en"
# It has arrived by 4, but this rank's order is F0 B0 F1 B1, and B0 does not end before 6. An order is an order: a later step waits for the earlier ones even if it could run.
#
# ### 4.2 Deadlock
#
# With a wrong order it may happen that nobody can go on: the next step of every rank waits for something that another has not done. That is a deadlock. A real program would stand still until it times out; a simulator should notice and say at which step every rank is stuck.

# %% [markdown] lang="zh"
# ### TODO 3：模拟任何顺序
#
# `simulate(orders, times, transfer=0)`：`orders[r]` 是 rank r 的顺序，每一步还是 `(种类, 阶段, 微批次)`；一个 rank 可以管几个阶段。`times` 按种类给出每个阶段的用时，例如 `{'F': [1, 1, 3], 'B': [2, 2, 6]}`，于是 `('B', 2, 0)` 用时 6，阶段数是 `len(times['F'])`。所有 rank 从时刻 0 出发。返回一个字典：
#
# | 键 | 值 |
# |---|---|
# | `'spans'` | 列表，`spans[r]` 是 rank r 每一步的 `(开始, 结束)`，和 `orders[r]` 一一对应 |
# | `'makespan'` | 最后一步结束的时刻 |
# | `'rank_bubbles'` | 列表，每个 rank 空转的时间占 makespan 的比例 |
# | `'bubble'` | 总的气泡占比：所有 rank 的空转之和，除以 rank 数 × makespan |
# | `'in_flight'` | 列表，每个 rank 最多同时有几个在途：F 已经开始、B 还没有结束 |
#
# 如果死锁，返回 `{'stuck': [...]}`：每个 rank 卡住的那一步（元组），已经全部做完的 rank 写 None。不要抛出异常，也不要一直循环下去。
#
# <details><summary>提示 1：方向</summary>
#
# 一步的开始时刻等于它等的几个时刻里最晚的一个。所以只要它等的那些步都已经算出结束时刻，这一步就能算。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 反复地轮流看每个 rank：它的下一步等的东西都有了，就算出来，再看下一步；没有，就换一个 rank。整整一轮谁也没有前进，就停：要么都做完了，要么死锁。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 用字典存每一步的结束时刻，键就是那个元组；再用一个字典存每一步在哪个 rank 上，用来判断要不要加传输。反向要等两样：自己的前向，下一个阶段的反向。在途的数目只由顺序决定：从头数，遇到 F 加一，遇到 B 减一，取最大值，因为同一个 rank 上的步不会重叠。
# </details>

# %% [markdown] lang="en"
# ### TODO 3: simulate any order
#
# `simulate(orders, times, transfer=0)`: `orders[r]` is the order of rank r, each step again `(kind, stage, microbatch)`; a rank may hold several stages. `times` gives by kind how long each stage takes, for example `{'F': [1, 1, 3], 'B': [2, 2, 6]}`, so that `('B', 2, 0)` takes 6; the number of stages is `len(times['F'])`. All ranks start at time 0. Return a dict:
#
# | key | value |
# |---|---|
# | `'spans'` | a list; `spans[r]` has the `(start, end)` of each step of rank r, one for each of `orders[r]` |
# | `'makespan'` | when the last step ends |
# | `'rank_bubbles'` | a list: the share of the makespan that each rank is idle |
# | `'bubble'` | the whole bubble ratio: the idle time of all ranks over the number of ranks × makespan |
# | `'in_flight'` | a list: the most that each rank has in flight at a time: F has begun and B has not ended |
#
# In a deadlock, return `{'stuck': [...]}`: the step (a tuple) at which each rank is stuck, None for a rank that has finished. Raise no exception, and do not loop for ever.
#
# <details><summary>Hint 1: direction</summary>
#
# A step begins at the latest of the times that it waits for. So it can be computed as soon as the ends of all the steps that it waits for are known.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Go round the ranks again and again: if all that a rank's next step waits for is known, compute it and look at the step after it; if not, go to another rank. When a whole round moves nobody, stop: either all is done, or it is a deadlock.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Keep the end of every step in a dict whose key is that tuple; another dict tells which rank a step is on, and so whether a transfer is added. A backward waits for two things: its own forward, and the backward of the next stage. What is in flight depends on the order alone: count from the beginning, one up at an F and one down at a B, and take the largest, for the steps of one rank never overlap.
# </details>

# %% lang="zh"
# TODO 3 · simulate
def simulate(orders, times, transfer=0):
    """模拟每个 rank 按自己的顺序工作：每一步的时刻、总时间、气泡占比、在途数；死锁则说卡在哪里。"""
    # TODO 3：一步在它等的东西全部到齐时开始。
    # spans, makespan, rank_bubbles, bubble, in_flight = ???
    # BEGIN SOLUTION
    last = len(times['F']) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]

    def waits_for(kind, stage, number):
        if kind == 'F' and stage > 0:
            yield 'F', stage - 1, number
        if kind == 'B':
            yield 'F', stage, number
        if kind == 'B' and stage < last:
            yield 'B', stage + 1, number

    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            for op in order[len(spans[rank]):]:
                needs = list(waits_for(*op))
                if not all(need in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + (transfer if home[need] != rank else 0))
                ends[op] = start + times[op[0]][op[1]]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < sum(map(len, orders)):
        left = [order[len(row):] for order, row in zip(orders, spans)]
        return {'stuck': [steps[0] if steps else None for steps in left]}

    makespan = max(ends.values())
    busy = [sum(end - start for start, end in row) for row in spans]
    rank_bubbles = [1 - time / makespan for time in busy]
    bubble = sum(rank_bubbles) / len(orders)
    in_flight = []
    for order in orders:
        now, most = 0, 0
        for kind, _, _ in order:
            now += {'F': 1, 'B': -1}.get(kind, 0)
            most = max(most, now)
        in_flight.append(most)
    # END SOLUTION
    return {'spans': spans, 'makespan': makespan, 'rank_bubbles': rank_bubbles,
            'bubble': bubble, 'in_flight': in_flight}

# %% lang="en"
# TODO 3 · simulate
def simulate(orders, times, transfer=0):
    """Every rank works by its order: times, makespan, bubbles, in flight; or where it is stuck."""
    # TODO 3: a step begins when everything that it waits for is there.
    # spans, makespan, rank_bubbles, bubble, in_flight = ???
    # BEGIN SOLUTION
    last = len(times['F']) - 1
    home = {op: rank for rank, order in enumerate(orders) for op in order}
    ends, spans = {}, [[] for _ in orders]

    def waits_for(kind, stage, number):
        if kind == 'F' and stage > 0:
            yield 'F', stage - 1, number
        if kind == 'B':
            yield 'F', stage, number
        if kind == 'B' and stage < last:
            yield 'B', stage + 1, number

    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            for op in order[len(spans[rank]):]:
                needs = list(waits_for(*op))
                if not all(need in ends for need in needs):
                    break
                start = spans[rank][-1][1] if spans[rank] else 0
                for need in needs:
                    start = max(start, ends[need] + (transfer if home[need] != rank else 0))
                ends[op] = start + times[op[0]][op[1]]
                spans[rank].append((start, ends[op]))
                moved = True
    if len(ends) < sum(map(len, orders)):
        left = [order[len(row):] for order, row in zip(orders, spans)]
        return {'stuck': [steps[0] if steps else None for steps in left]}

    makespan = max(ends.values())
    busy = [sum(end - start for start, end in row) for row in spans]
    rank_bubbles = [1 - time / makespan for time in busy]
    bubble = sum(rank_bubbles) / len(orders)
    in_flight = []
    for order in orders:
        now, most = 0, 0
        for kind, _, _ in order:
            now += {'F': 1, 'B': -1}.get(kind, 0)
            most = max(most, now)
        in_flight.append(most)
    # END SOLUTION
    return {'spans': spans, 'makespan': makespan, 'rank_bubbles': rank_bubbles,
            'bubble': bubble, 'in_flight': in_flight}

# %% lang="zh"
# CHECK 3
with check_todo(3, 'simulate', seconds=3) as call:
    from parlab.lesson.pipeline_checks import loose_orders, simulation_fault
    rules = {
        'keys': '这个顺序没有死锁：返回的字典恰好有这 5 个键',
        'spans': "'spans' 里每个 rank 一个列表，每一步一对 (开始, 结束)，和 orders 一一对应",
        'duration': '一步的用时是 times[种类][阶段]，结束 = 开始 + 用时',
        'own_rank': '同一个 rank 的步按 orders 里的先后，上一步结束才能开始',
        'own_forward': '反向要等自己的前向结束',
        'input': '前向等上一个阶段的前向，反向等下一个阶段的反向，结束了才能开始',
        'transfer': '从别的 rank 传来的，还要再等传输',
        'late': '等的东西一到齐就开始；传输不占用任何 rank，同一个 rank 上不用传',
        'makespan': 'makespan 是最后一步结束的时刻',
        'rank_bubbles': '一个 rank 的气泡占比 = 1 − 它干活的时间 / makespan，首尾的空转也算',
        'bubble': '总的气泡占比 = 所有 rank 的空转之和 / (rank 数 × makespan)',
        'in_flight': '在途：F 已经开始、B 还没有结束的微批次，取最多的时候',
    }
    named = [
        ('F0 B0 F1 B1', {'F': [1], 'B': [2]}, 0),
        ('F0 F1 B0 B1\nF0 F1 B0 B1\nF0 B0 F1 B1', {'F': [1] * 3, 'B': [2] * 3}, 0.5),  # 4.1 的图
        ('F0 F1 B0 B1\nF0 B0 F1 B1', {'F': [1, 3], 'B': [2, 5]}, 0),  # 阶段 1 更慢
        ('F0 f0 b0 B0', {'F': [1, 2], 'B': [3, 4]}, 9),               # f、b 是 rank 的第二个阶段
        (charts.GPIPE_8, {'F': [1] * 4, 'B': [2] * 4}, 0.25),
        (charts.ONE_F_ONE_B_8, {'F': [1] * 4, 'B': [2] * 4}, 0.25),
        (charts.ZERO_BUBBLE_8, {kind: [1] * 4 for kind in 'FBW'}, 0),
    ]
    named = [(orders_of(chart), times, transfer) for chart, times, transfer in named]
    for orders, times, transfer in [*named, *loose_orders()]:
        got = call(orders, times, transfer)
        fault = simulation_fault(orders, times, transfer, got)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])

    for p, m in [(1, 3), (2, 1), (3, 2), (4, 9), (6, 12)]:  # GPipe，公式已知
        orders = [[(kind, s, j) for kind in 'FB' for j in range(m)] for s in range(p)]
        times = {'F': [3] * p, 'B': [4] * p}
        got = call(orders, times)
        fault = simulation_fault(orders, times, 0, got)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])
        assert abs(got['bubble'] - (p - 1) / (m + p - 1)) < 1e-12, call.wrong(
            '阶段一样快、传输不花时间，气泡占比是 (p − 1) / (m + p − 1)',
            f'{(p - 1) / (m + p - 1)}', f"{got['bubble']}")

    for chart, stuck in [
        ('B0 F0', [('B', 0, 0)]),                                  # 反向在自己的前向之前
        ('F0 B0 F1 B1\nF1 F0 B0 B1', [('B', 0, 0), ('F', 1, 1)]),  # 两个 rank 互相等
        ('F0\nF0 F1', [None, ('F', 1, 1)]),                        # 等一件没有人做的事
        ('F0 B0\nB0 F0\nF0 B0', [('B', 0, 0), ('B', 1, 0), ('F', 2, 0)]),
    ]:
        orders, expected = orders_of(chart), {'stuck': stuck}
        got = call(orders, {'F': [1] * len(orders), 'B': [2] * len(orders)})
        assert call.same(got, expected), call.wrong(
            "死锁时返回 {'stuck': [...]}：每个 rank 卡住的那一步，做完的是 None", expected)

# %% lang="en"
# CHECK 3
with check_todo(3, 'simulate', seconds=3) as call:
    from parlab.lesson.pipeline_checks import loose_orders, simulation_fault
    rules = {
        'keys': 'this order does not deadlock: return a dict with exactly these 5 keys',
        'spans': "'spans' has a list for each rank and a pair (start, end) for each step of orders",
        'duration': 'a step takes times[kind][stage]; end = start + that',
        'own_rank': 'the steps of a rank follow orders: one begins when the one before has ended',
        'own_forward': 'a backward waits for the end of its own forward',
        'input': 'F waits for F of the stage before, B for B of the stage after, until they end',
        'transfer': 'what comes from another rank takes the transfer on top',
        'late': 'begin when all is there; a transfer occupies no rank; none within a rank',
        'makespan': 'the makespan is when the last step ends',
        'rank_bubbles': "a rank's bubble = 1 − its working time / makespan, idle ends included",
        'bubble': 'the whole bubble = idle time of all ranks / (ranks × makespan)',
        'in_flight': 'in flight: F has begun, B has not ended; the most at any time',
    }
    named = [
        ('F0 B0 F1 B1', {'F': [1], 'B': [2]}, 0),
        ('F0 F1 B0 B1\nF0 F1 B0 B1\nF0 B0 F1 B1', {'F': [1] * 3, 'B': [2] * 3}, 0.5),  # as in 4.1
        ('F0 F1 B0 B1\nF0 B0 F1 B1', {'F': [1, 3], 'B': [2, 5]}, 0),  # stage 1 is slower
        ('F0 f0 b0 B0', {'F': [1, 2], 'B': [3, 4]}, 9),               # f, b: the rank's second stage
        (charts.GPIPE_8, {'F': [1] * 4, 'B': [2] * 4}, 0.25),
        (charts.ONE_F_ONE_B_8, {'F': [1] * 4, 'B': [2] * 4}, 0.25),
        (charts.ZERO_BUBBLE_8, {kind: [1] * 4 for kind in 'FBW'}, 0),
    ]
    named = [(orders_of(chart), times, transfer) for chart, times, transfer in named]
    for orders, times, transfer in [*named, *loose_orders()]:
        got = call(orders, times, transfer)
        fault = simulation_fault(orders, times, transfer, got)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])

    for p, m in [(1, 3), (2, 1), (3, 2), (4, 9), (6, 12)]:  # GPipe, where a formula is known
        orders = [[(kind, s, j) for kind in 'FB' for j in range(m)] for s in range(p)]
        times = {'F': [3] * p, 'B': [4] * p}
        got = call(orders, times)
        fault = simulation_fault(orders, times, 0, got)
        assert not fault, call.wrong(rules[fault[0]], *fault[1:])
        assert abs(got['bubble'] - (p - 1) / (m + p - 1)) < 1e-12, call.wrong(
            'with equal stages and free transfers the bubble ratio is (p − 1) / (m + p − 1)',
            f'{(p - 1) / (m + p - 1)}', f"{got['bubble']}")

    for chart, stuck in [
        ('B0 F0', [('B', 0, 0)]),                                  # a backward before its forward
        ('F0 B0 F1 B1\nF1 F0 B0 B1', [('B', 0, 0), ('F', 1, 1)]),  # two ranks wait for each other
        ('F0\nF0 F1', [None, ('F', 1, 1)]),                        # waits for what nobody does
        ('F0 B0\nB0 F0\nF0 B0', [('B', 0, 0), ('B', 1, 0), ('F', 2, 0)]),
    ]:
        orders, expected = orders_of(chart), {'stuck': stuck}
        got = call(orders, {'F': [1] * len(orders), 'B': [2] * len(orders)})
        assert call.same(got, expected), call.wrong(
            "in a deadlock return {'stuck': [...]}: each rank's step, None if finished", expected)

# %% [markdown] lang="zh"
# ## Step 5：用模拟器回答问题
#
# ### 5.1 公式对吗
#
# 先确认它和公式一致：3.2 的曲线，这次加上你的 `one_f_one_b` 和 `simulate` 算出来的点。

# %% [markdown] lang="en"
# ## Step 5: questions for the simulator
#
# ### 5.1 Is the formula right
#
# First make sure that it agrees with the formula: the curves of 3.2, now with points computed by your `one_f_one_b` and `simulate`.

# %%
BOTH = ('one_f_one_b', 'simulate')

def gpipe(stages, microbatches):
    return [[(kind, stage, number) for kind in 'FB' for number in range(microbatches)]
            for stage in range(stages)]

def every_rank(stages, microbatches):
    return [one_f_one_b(rank, stages, microbatches) for rank in range(stages)]

if ready(*BOTH):
    some = (2, 8, 16, 32)
    curves = [(p, [(p - 1) / (m + p - 1) for m in counts]) for p in some]
    found = [[simulate(every_rank(p, m), uniform(UNITS, p))['bubble'] for m in counts]
             for p in some]
    draw_bubble(counts, curves, [(m, y) for row in found for m, y in zip(counts, row)])
    off = max(abs(x - y) for (_, row), ys in zip(curves, found) for x, y in zip(row, ys))
    print('simulation and formula agree to 1e-12:', off < 1e-12)

# %% [markdown] lang="zh"
# ### 5.2 一个慢的阶段
#
# 现在让阶段 2 慢一半：前向 1.5，反向 3。公式不再适用。先猜：哪些 rank 空转得最多？慢的那个呢？

# %% [markdown] lang="en"
# ### 5.2 One slow stage
#
# Now make stage 2 slower by half: forward 1.5, backward 3. The formula no longer applies. Predict: which ranks idle the most? And the slow one?

# %%
if ready(*BOTH):
    orders = every_rank(4, 8)
    equal = simulate(orders, uniform(UNITS, 4))
    slow = simulate(orders, {'F': [1, 1, 1.5, 1], 'B': [2, 2, 3, 2]})
    draw_timelines(Timeline('equal stages', orders, equal['spans']),
                   Timeline('stage 2 slower by half', orders, slow['spans']))
    for name, result in (('equal', equal), ('slow stage 2', slow)):
        shares = ', '.join(f'{share:.3f}' for share in result['rank_bubbles'])
        print(f"{name:<13} makespan {result['makespan']:<5} bubble {result['bubble']:.3f}")
        print(f"{'':<13} by rank: {shares}")

# %% [markdown] lang="zh"
# 慢的 rank 自己几乎不停，别人都在等它。公式 3/11 = 0.273 在这里太乐观：只有一个阶段慢了一半，一步就从 33 变成 43.5。所以 TODO 1 先看最慢的阶段。
#
# ### 5.3 切得好，快多少
#
# 回到 8B 模型：8 个阶段，16 个微批次，阶段的前向用时就是它的代价，反向两倍。先猜：最慢的阶段快了 18%，一步也快 18% 吗？

# %% [markdown] lang="en"
# The slow rank itself hardly ever stops; all the others wait for it. The formula's 3/11 = 0.273 is too optimistic here: only one stage is slower by half, and a step goes from 33 to 43.5. That is why TODO 1 looks at the slowest stage first.
#
# ### 5.3 What a good split is worth
#
# Back to the 8B model: 8 stages, 16 microbatches; a stage's forward takes its cost, its backward twice that. Predict: the slowest stage got faster by 18%; does a step get faster by 18% too?

# %%
if ready('split_layers', *BOTH):
    splits = {'4 layers a stage': even_8b, 'split by cost': split_layers(costs_8b, 8)}
    for name, sizes in splits.items():
        ends = [sum(sizes[:stage + 1]) for stage in range(8)]
        cost = [sum(costs_8b[end - size:end]) for size, end in zip(sizes, ends)]
        step = simulate(every_rank(8, 16), {'F': cost, 'B': [2 * c for c in cost]})
        print(f"{name:<17} makespan {step['makespan']}  bubble {step['bubble']:.3f}")

# %% [markdown] lang="zh"
# 快了 14%。微批次越多，越接近 18%：一步的时间主要是微批次数乘以最慢的阶段，灌满和排空的时间则由所有阶段一起决定，这一部分没有变快。
#
# ### 5.4 传输要时间
#
# 相邻阶段之间传一次要 0 到 1 格。先猜：GPipe 和 1F1B，哪一个更怕传输？

# %% [markdown] lang="en"
# By 14%. The more microbatches, the closer to 18%: most of a step is their number times the slowest stage, while filling and draining takes what all stages take together, and that did not get faster.
#
# ### 5.4 Transfers take time
#
# Let a transfer between neighbouring stages take from 0 to 1 unit. Predict: which suffers more, GPipe or 1F1B?

# %%
if ready(*BOTH):
    print('transfer' + ''.join(f'{transfer:>8}' for transfer in (0, 0.1, 0.25, 0.5, 1)))
    for name, orders in (('GPipe', gpipe(4, 8)), ('1F1B', every_rank(4, 8))):
        steps = [simulate(orders, uniform(UNITS, 4), x)['makespan'] for x in (0, 0.1, 0.25, 0.5, 1)]
        print(f'{name:<8}' + ''.join(f'{step:>8.2f}' for step in steps))

# %% [markdown] lang="zh"
# GPipe 只在灌满和排空时各等 3 次传输，中间的传输都被计算盖住；1F1B 前向、反向交替，相邻的 rank 一来一回互相等，这里一共等了 16 次。真实系统会留一点余量：多做几个前向再开始交替，用内存换时间。
#
# ### 5.5 看一眼更好的调度
#
# - **交错 1F1B**（interleaved，arXiv 2104.04473）：每个 rank 管 v 个小阶段，rank 0 管阶段 0 和 4，rank 1 管 1 和 5……灌满只要走小步，气泡占比降到 (p−1)/(vm+p−1)。代价是传输次数乘以 v，在途的激活也多一些。
# - **零气泡**（zero bubble，H1，arXiv 2401.10241）：把反向拆成两步，B 求输入的梯度，要马上传给上一个阶段；W 求权重的梯度，谁也不等它，什么时候做都行，就用来填气泡。每个 rank 的空转从 (p−1)(F + B + W) 降到 (p−1)(F + B − W)，在途数和 1F1B 一样。
#
# 顺序是写好的表，时间由**你的**模拟器算。前向 1 格，整个反向 2 格；零气泡把它拆成 B 和 W 各 1 格；交错的小阶段层数减半，用时减半，粗框是第二个小阶段。先猜：三者谁最短？

# %% [markdown] lang="en"
# GPipe waits for 3 transfers each while filling and draining, and the ones in between are hidden behind compute; 1F1B alternates forward and backward, so neighbouring ranks wait for each other to and fro, here for 16 transfers in all. Real systems leave some slack: a few forwards more before they take turns, which trades memory for time.
#
# ### 5.5 A glance at better schedules
#
# - **Interleaved 1F1B** (arXiv 2104.04473): each rank holds v small stages, rank 0 stages 0 and 4, rank 1 stages 1 and 5, and so on. Filling then takes small steps, and the bubble ratio falls to (p−1)/(vm+p−1). The price: v times as many transfers, and some more activations in flight.
# - **Zero bubble** (H1, arXiv 2401.10241): the backward is split in two. B is the gradient of the input, which the previous stage needs at once; W is the gradient of the weights, for which nobody waits, so it can be done at any time and fills the bubble. The idle time of each rank falls from (p−1)(F + B + W) to (p−1)(F + B − W), with no more in flight than 1F1B.
#
# The orders are written down as tables; the times come from **your** simulator. A forward takes 1 unit, a whole backward 2; zero bubble splits that into B and W of 1 each; an interleaved small stage has half the layers and takes half the time, and the thick frames are the second small stage. Predict: which of the three is shortest?

# %%
if ready(*BOTH):
    halves, thirds = uniform({'F': 0.5, 'B': 1}, 8), uniform({'F': 1, 'B': 1, 'W': 1}, 4)
    runs = [('1F1B', every_rank(4, 8), uniform(UNITS, 4), 3 / 11),
            ('interleaved 1F1B, v = 2', orders_of(charts.INTERLEAVED_8), halves, 3 / 19),
            ('zero bubble H1', orders_of(charts.ZERO_BUBBLE_8), thirds, 3 / 27)]
    results = [simulate(orders, times) for _, orders, times, _ in runs]
    draw_timelines(*(Timeline(name, orders, result['spans'])
                     for (name, orders, _, _), result in zip(runs, results)))
    for (name, _, _, formula), result in zip(runs, results):
        print(f"{name:<24}bubble {result['bubble']:.3f}, formula {formula:.3f}, "
              f"in flight on rank 0: {result['in_flight'][0]}")

# %% [markdown] lang="zh"
# 交错的 11 个是小阶段的激活，每个只有一半大，相当于 5.5 个微批次，1F1B 是 4 个：正好是 3.4 里的 1 + (p−1)/(pv) 倍。
#
# ### 5.6 一个死锁
#
# 最后看一个排错的顺序：rank 1 把两个前向排反了。模拟器马上说出谁卡在哪里；真实的进程会停到超时为止。

# %% [markdown] lang="en"
# The 11 of the interleaved schedule are activations of small stages, half the size each, and so as much as 5.5 microbatches, where 1F1B has 4: exactly the factor 1 + (p−1)/(pv) of 3.4.
#
# ### 5.6 A deadlock
#
# At last an order that is wrong: rank 1 has swapped its two forwards. The simulator says at once who is stuck where; real processes would stand still until they time out.

# %%
if ready('simulate'):
    swapped = orders_of('F0 B0 F1 B1\nF1 F0 B0 B1')
    print(simulate(swapped, uniform(UNITS, 2)))

# %% [markdown] lang="zh"
# ## Step 6（可选）：真实的进程
#
# 你的函数到真实的进程里还对吗？下面的单元启动 4 个进程，每个是一个阶段，做两件事：
#
# 1. 让 `torch` 自己的 `Schedule1F1B` 跑一遍，记下每个 rank 实际运行的顺序，和你的 `one_f_one_b` 逐步对照（4 个和 8 个微批次）；
# 2. 按你的顺序工作：收、做、发都是真的，“做”用睡眠代替，时间按层的代价来。先平均分，再用你的 `split_layers`。量出气泡，和你的 `simulate` 对照（先量一次传输要多久，交给它）。
#
# 把 `RUN_PROOF` 改成 `True` 再运行，大约 20 秒，需要 torch 2.8 或更新的版本。启动不了进程也没关系，本课到这里已经完整。

# %% [markdown] lang="en"
# ## Step 6 (optional): real processes
#
# Are your functions still right in real processes? The cell below starts 4 processes, a stage each, and does two things:
#
# 1. it runs `torch`'s own `Schedule1F1B`, writes down in which order each rank really works, and compares that step by step with your `one_f_one_b` (4 and 8 microbatches);
# 2. it works by your order: receiving and sending are real, the work is a sleep that takes what the layers cost. First they are split evenly, then by your `split_layers`. The bubble is measured and compared with your `simulate` (which is told how long a transfer takes, measured first).
#
# Change `RUN_PROOF` to `True` and run the cell, which takes about 20 seconds and needs torch 2.8 or newer. Where processes cannot be started, never mind: the lesson is complete without.

# %% lang="zh"
RUN_PROOF = False  # True：启动 4 个真实的进程

if ready('split_layers', *BOTH):
    words = {
        'order': '每个 rank 的 {count} 步，顺序和 torch 实际运行的一样',
        'differs': 'rank {rank} 的顺序不同：你的 {yours}，torch {torch}',
        'timed': '{name}：实测气泡 {measured}，模拟 {simulated}，实测一步 {step} 毫秒',
        'even': '平均分层', 'cost': '按代价分层',
    }
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_pipeline',
                       [split_layers, one_f_one_b, simulate], needs=(2, 8), words=words)
    if report:
        prove_pipeline.show(report)
        transfer, apart = prove_pipeline.summary(report)
        print(f'传输 {transfer:.2f} 毫秒；气泡占比的实测与模拟最多相差 {apart:.3f}。',
              '安静的机器上不超过 0.02，机器忙的时候会更大。')

# %% lang="en"
RUN_PROOF = False  # True: start 4 real processes

if ready('split_layers', *BOTH):
    words = {
        'order': 'the {count} steps of each rank come in the order in which torch really runs them',
        'differs': 'the order of rank {rank} differs: yours {yours}, torch {torch}',
        'timed': '{name}: bubble {measured} measured, {simulated} simulated, a step took {step} ms',
        'even': 'layers split evenly', 'cost': 'layers split by cost',
    }
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_pipeline',
                       [split_layers, one_f_one_b, simulate], needs=(2, 8), words=words)
    if report:
        prove_pipeline.show(report)
        transfer, apart = prove_pipeline.summary(report)
        print(f'Transfer {transfer:.2f} ms; measured and simulated bubbles differ by {apart:.3f}.',
              'On a quiet machine that is at most 0.02, on a busy one more.')

# %% [markdown] lang="zh"
# ## 🛑 STOP HERE 🛑
#
# 先完成题目、通过检查，再看[参考答案](repo:solutions/01_pipeline_parallel.ipynb)。
#
# 下一课 `02_tensor_parallel` 把一层切开。你写的 `split_layers` 在课程后面还会用到：真实训练的基准程序就用它放层。
#
# **延伸阅读**
#
# - GPipe：[arXiv 1811.06965](https://arxiv.org/abs/1811.06965)；1F1B 出自 PipeDream：[arXiv 1806.03377](https://arxiv.org/abs/1806.03377)
# - Megatron-LM 的交错调度与各种并行的组合：[arXiv 2104.04473](https://arxiv.org/abs/2104.04473)
# - 零气泡：[arXiv 2401.10241](https://arxiv.org/abs/2401.10241)；激活占多少内存：[arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - `torch` 的流水线并行：[文档](https://docs.pytorch.org/docs/stable/distributed.pipelining.html)

# %% [markdown] lang="en"
# ## 🛑 STOP HERE 🛑
#
# Finish the tasks and pass the checks before you look at the [reference solution](repo:solutions/en/01_pipeline_parallel.ipynb).
#
# The next lesson, `02_tensor_parallel`, cuts a layer itself. Your `split_layers` will be back later in the course: the benchmark that really trains places its layers with it.
#
# **Further reading**
#
# - GPipe: [arXiv 1811.06965](https://arxiv.org/abs/1811.06965); 1F1B comes from PipeDream: [arXiv 1806.03377](https://arxiv.org/abs/1806.03377)
# - Megatron-LM's interleaved schedule, and how kinds of parallelism combine: [arXiv 2104.04473](https://arxiv.org/abs/2104.04473)
# - Zero bubble: [arXiv 2401.10241](https://arxiv.org/abs/2401.10241); what activations cost: [arXiv 2205.05198](https://arxiv.org/abs/2205.05198)
# - Pipeline parallelism in `torch`: [documentation](https://docs.pytorch.org/docs/stable/distributed.pipelining.html)
