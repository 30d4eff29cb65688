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
# # 03 · 上下文并行：切开序列，注意力分毫不差
#
# **难度** Hard | **环境** CPU-first，不需要 GPU | **标签** CP, Ring Attention, Online Softmax, GQA
#
# **时间** 阅读约 25 分钟，动手约 50 分钟
#
# **前置** 会用 PyTorch 写注意力。不要求学过并行：本课用到的通信只有一种，就是沿环传一步，用到时会说清楚。
#
# 上下文并行（context parallelism, CP）把一条长序列切给几个 rank（一个 rank 是一个进程，通常管一张卡）。几乎所有的层都可以各算各的，只有注意力不行：每个 token 都要看前面所有的 token。
#
# 你要写 3 个函数：把序列分得公平，把分块算出的注意力合并得一点不差，再让 K/V 在环上走一圈，算出和一个进程完全一样的结果和梯度。最后，你的代码会在 4 个真实的进程里运行。

# %% [markdown] lang="en"
# # 03 · Context parallelism: cut the sequence, keep attention exact
#
# **Difficulty** Hard | **Environment** CPU-first, no GPU needed | **Tags** CP, Ring Attention, Online Softmax, GQA
#
# **Time** about 25 minutes to read, about 50 to do
#
# **Prerequisites** You can write attention in PyTorch. You need not know parallelism: this lesson uses one kind of communication only, one step round a ring, and explains it when it comes.
#
# Context parallelism (CP) shares one long sequence among several ranks (a rank is one process, usually with one device). Almost every layer can then work by itself; attention cannot: each token looks at all tokens before it.
#
# You write 3 functions: one splits the sequence fairly, one merges attention that was computed in pieces without losing anything, one sends K/V once round a ring and gets exactly the result and the gradients of one process. At the end your code runs in 4 real processes.

# %%
# SETUP
import math

import torch

from parlab.lesson.attention import partial_attention, random_qkv, whole_attention
from parlab.lesson.checks import check_todo, ready
from parlab.lesson.draw_context import (
    draw_causal,
    draw_contributions,
    draw_ring,
    draw_shares,
    draw_work_steps,
)
from parlab.lesson.draw_context_traffic import draw_overlap, draw_traffic
from parlab.lesson.proof import run_proof
from parlab.lesson.prove_context import show_proof
from parlab.lesson.published import llama3_405b
from parlab.lesson.ring_run import bytes_sent, run_ring

# %% [markdown] lang="zh"
# ## Step 1：切开序列
#
# 序列越长，一层要留给反向的激活（activation）越多。Llama 3 405B 的隐藏维是 16,384，训练的最后阶段一条序列有 131,072 个 token。按 arXiv 2205.05198 的算式，一层的激活是 34 × 序列 × 隐藏维字节，张量并行（tp = 8，配合序列并行）把它除以 8。
#
# 先猜：只有 TP 时，一层的激活占多少 GB？一张卡有 80 GB，而一个流水线阶段有 8 层。

# %% [markdown] lang="en"
# ## Step 1: cut the sequence
#
# The longer the sequence, the more activations a layer keeps for backward. Llama 3 405B has hidden size 16,384, and in the last phase of its training a sequence has 131,072 tokens. By the formula of arXiv 2205.05198 a layer's activations are 34 × sequence × hidden size bytes; tensor parallelism (tp = 8, with sequence parallelism) divides them by 8.
#
# Predict: with TP alone, how many GB do the activations of one layer take? A device has 80 GB, and a pipeline stage has 8 layers.

# %%
tokens, hidden, tp = 131_072, 16_384, 8
for cp in (1, 2, 4, 8, 16):
    gigabytes = 34 * tokens / cp * hidden / tp / 1e9
    print(f'cp = {cp:>2}: {tokens // cp:>7} tokens a rank, {gigabytes:5.2f} GB a layer')

# %% [markdown] lang="zh"
# 9.13 GB 一层，8 层就是 73 GB，还没有算权重。TP 已经用到了一台机器的 8 张卡，再切就要跨机器。剩下的办法是切序列：cp = 16 时只有 0.57 GB。
#
# ### 1.1 谁可以各算各的
#
# 线性层、激活函数、归一化都是逐 token 的：一个 token 的结果只和它自己有关。下面把 12 个 token 切成 4 段，MLP 和注意力都按段单独算。先猜：注意力的 12 行里有几行是对的？

# %% [markdown] lang="en"
# That is 9.13 GB a layer and 73 GB for 8 layers, without any weights. TP already uses the 8 devices of one machine; cutting further would cross machines. What is left is to cut the sequence: with cp = 16 it is 0.57 GB.
#
# ### 1.1 What can work by itself
#
# Linear layers, activation functions and norms work token by token: a token's result depends on itself alone. Below, 12 tokens are cut into 4 chunks, and an MLP and attention each work on every chunk alone. Predict: how many of the 12 rows of the attention are right?

# %%
torch.manual_seed(0)
mlp = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
x = torch.randn(12, 8)
pieces = torch.cat([mlp(chunk) for chunk in x.chunk(4)])
print('MLP rows right:      ', torch.isclose(pieces, mlp(x), atol=1e-6).all(dim=1).sum().item())

q, k, v = random_qkv(1, 1, 1, 12, 8)  # [batch, heads, tokens, dim]
alone = [whole_attention(*chunks) for chunks in zip(*(x.chunk(4, dim=2) for x in (q, k, v)))]
right = torch.isclose(torch.cat(alone, dim=2), whole_attention(q, k, v)).all(dim=-1)
print('attention rows right:', right.sum().item())

# %% [markdown] lang="zh"
# 只有第一段的 3 行对：后面的 token 看不到前面几段。注意力需要别人的 K 和 V，这就是 CP 要通信的全部原因。
#
# ### 1.2 按顺序切，不公平
#
# 因果注意力（causal attention）里，位置 p 的 token 看 0 到 p 的键（key），一共 p + 1 个注意力分数（attention score）。把 16 个 token 按顺序切给 4 个 rank，每个 rank 拿 4 个。
#
# 先猜：最忙的 rank 要算的分数，是平均的多少倍？图的左边是因果矩阵，一行是一个查询（query），颜色表示它归哪个 rank；右边数一数每个 rank 有多少个格子。

# %% [markdown] lang="en"
# Only the 3 rows of the first chunk are right: later tokens do not see the chunks before theirs. Attention needs the K and V of the others. That is the whole reason why CP communicates.
#
# ### 1.2 Cutting in order is unfair
#
# In causal attention the token at position p looks at the keys 0 to p: that makes p + 1 attention scores. Cut 16 tokens in order among 4 ranks, 4 tokens each.
#
# Predict: how many times the mean does the busiest rank compute? On the left is the causal matrix, one row a query, coloured by the rank that holds it; on the right the cells of each rank are counted.

# %%
contiguous = torch.arange(16).view(4, 4).tolist()
print(contiguous)
draw_causal({'contiguous, cp = 4': contiguous})

# %% [markdown] lang="zh"
# 1.71 倍，token 再多会接近 2 − 1/cp = 1.75。每一步都要等最慢的 rank，所以 4 张卡只干了 2.3 张卡的活。
#
# 办法是首尾配对（head-tail，也叫 zigzag）切分：长的行配短的行。
#
# 1. 把序列切成 2 × cp 个一样长的块（chunk）；
# 2. rank r 拿从前面数的第 r 块，和从后面数的第 r 块（都从 0 数起）。
#
# 代价是序列长度要能被 2 × cp 整除。Llama 3 和 Megatron 都用这种切法。

# %% [markdown] lang="en"
# It is 1.71 times, and with more tokens close to 2 − 1/cp = 1.75. Every step waits for its slowest rank, so 4 devices do the work of 2.3.
#
# The remedy is the head-tail (zigzag) split: long rows go with short rows.
#
# 1. Cut the sequence into 2 × cp chunks of equal length.
# 2. Rank r takes chunk r counted from the front, and chunk r counted from the back (both from 0).
#
# The price: 2 × cp must divide the sequence length. Llama 3 and Megatron both split like this.

# %% [markdown] lang="zh"
# ### TODO 1：首尾配对
#
# `head_tail(sequence, cp)` 返回一个字典，三项都是普通的列表和 int：
#
# | 键 | 值 |
# |---|---|
# | `positions` | cp 个列表：rank r 手里的 token 的全局位置，从小到大 |
# | `inverse` | 长度为 sequence 的列表，把次序还原：见下 |
# | `work` | cp 个 int：rank r 的查询一共要算多少个分数（每个头） |
#
# 把各个 rank 的结果按 rank 0、1、2 … 首尾相接，token 的次序是乱的。`inverse[p]` 是位置 p 的 token 在这条乱序里排第几，所以 `gathered[inverse]` 就是原来的次序。
#
# 例子：sequence = 8，cp = 2。块长 2，首尾相接的次序是 0 1 6 7 2 3 4 5。token 2 在里面排第 4（从 0 数起），所以 `inverse[2]` 是 4：
#
# ```
# {'positions': [[0, 1, 6, 7], [2, 3, 4, 5]],
#  'inverse': [0, 1, 4, 5, 6, 7, 2, 3],
#  'work': [18, 18]}
# ```
#
# `positions` 不只用来切数据：位置编码（RoPE）和因果掩码都要用全局位置，用本地的 0、1、2 … 就错了。
#
# <details><summary>提示 1：方向</summary>
#
# 先想块，再想 token。每个 rank 恰好两块：一块从前往后数，一块从后往前数。
# </details>
# <details><summary>提示 2：结构</summary>
#
# torch 的 arange 加 view 能一次切出所有的块，一行是一块；最后用 tolist 变回列表。从后面数第 0 块是最后一块，下标是块数减一。
# </details>
# <details><summary>提示 3：细节</summary>
#
# inverse 是“谁在哪儿”的反查：沿首尾相接的次序走一遍，走到第几个，就记在那个 token 的名下。torch 的 argsort 也能一步得到它。work 把每个位置要看的键数加起来，别忘了 token 也看自己。
# </details>

# %% [markdown] lang="en"
# ### TODO 1: head and tail
#
# `head_tail(sequence, cp)` returns a dict; its three entries are plain lists and ints:
#
# | key | value |
# |---|---|
# | `positions` | cp lists: the global positions of the tokens that rank r holds, ascending |
# | `inverse` | a list of length sequence that restores the order: see below |
# | `work` | cp ints: how many scores the queries of rank r need in all (for one head) |
#
# Put the ranks' results end to end, rank 0, 1, 2 …, and the tokens are out of order. `inverse[p]` is the place of token p in that sequence, so `gathered[inverse]` is in the original order again.
#
# An example: sequence = 8, cp = 2. A chunk has 2 tokens, and end to end the order is 0 1 6 7 2 3 4 5. Token 2 stands at place 4 (counted from 0), so `inverse[2]` is 4:
#
# ```
# {'positions': [[0, 1, 6, 7], [2, 3, 4, 5]],
#  'inverse': [0, 1, 4, 5, 6, 7, 2, 3],
#  'work': [18, 18]}
# ```
#
# `positions` does more than cut the data: position encodings (RoPE) and the causal mask need global positions too; local ones, 0, 1, 2 …, would be wrong.
#
# <details><summary>Hint 1: direction</summary>
#
# Think of chunks first and of tokens later. Each rank has exactly two chunks: one counted from the front, one from the back.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# torch's arange and view cut all chunks at once, one chunk a row; tolist turns them back into lists. Chunk 0 from the back is the last one; its index is the number of chunks minus one.
# </details>
# <details><summary>Hint 3: details</summary>
#
# inverse answers "who stands where" the other way round: walk along the end-to-end order, and write the place you have reached under that token's name. torch's argsort gives it in one step, too. work adds up the number of keys that each position looks at; a token looks at itself as well.
# </details>

# %% lang="zh"
# TODO 1 · head_tail
def head_tail(sequence, cp):
    """首尾配对切分：每个 rank 的全局位置、还原次序的下标、每个 rank 的分数数目。"""
    if sequence % (2 * cp):
        raise ValueError(f'sequence = {sequence} is not a multiple of 2 · cp = {2 * cp}')
    # TODO 1：切成 2 × cp 块，rank r 拿从前、从后数的第 r 块。
    # positions, inverse, work = ???
    # BEGIN SOLUTION
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    positions = order.tolist()
    inverse = order.flatten().argsort().tolist()
    work = (order + 1).sum(dim=1).tolist()
    # END SOLUTION
    return {'positions': positions, 'inverse': inverse, 'work': work}

# %% lang="en"
# TODO 1 · head_tail
def head_tail(sequence, cp):
    """The head-tail split: each rank's global positions, what restores the order, scores a rank."""
    if sequence % (2 * cp):
        raise ValueError(f'sequence = {sequence} is not a multiple of 2 · cp = {2 * cp}')
    # TODO 1: cut into 2 × cp chunks; rank r takes chunk r from the front and from the back.
    # positions, inverse, work = ???
    # BEGIN SOLUTION
    chunks = torch.arange(sequence).view(2 * cp, -1)
    order = torch.stack([torch.cat((chunks[r], chunks[2 * cp - 1 - r])) for r in range(cp)])
    positions = order.tolist()
    inverse = order.flatten().argsort().tolist()
    work = (order + 1).sum(dim=1).tolist()
    # END SOLUTION
    return {'positions': positions, 'inverse': inverse, 'work': work}

# %% lang="zh"
# CHECK 1
with check_todo(1, 'head_tail') as call:
    from parlab.lesson.split_cases import SMALL, faults, plain, sizes
    rules = {
        'types': '三项都是普通的列表和 int',
        'positions': '2 × cp 块，rank r 拿从前、从后数的第 r 块，位置从小到大',
        'inverse': 'inverse[p] 是 token p 在首尾相接的次序里的位置',
        'work': '位置 p 的 token 看 0 到 p，一共 p + 1 个键',
    }
    for sequence, cp, expected in SMALL:  # 手写的小例子
        got = call(sequence, cp)
        assert plain(got), call.wrong(rules['types'], expected)
        for key in expected:
            assert call.same(got[key], expected[key]), call.wrong(rules[key], expected)

    for sequence, cp in sizes():  # 不查表，只看性质
        got = call(sequence, cp)
        for fault, rule, expected in [
            (faults.types, rules['types'], 'list, int'),
            (faults.tokens, '每个 token 恰好归一个 rank，一样多，从小到大', '0, 1, 2, …'),
            (faults.heads, '前一半是从前面数的第 r 块', 'r × chunk, …'),
            (faults.mirror, rules['positions'], '有 token p，就有 sequence − 1 − p'),
            (faults.inverse, rules['inverse'], 'order[inverse[p]] = p'),
            (faults.work, rules['work'], '数因果矩阵的格子'),
        ]:
            found = fault(got, sequence, cp)
            assert not found, call.wrong(rule, expected, found)

# %% lang="en"
# CHECK 1
with check_todo(1, 'head_tail') as call:
    from parlab.lesson.split_cases import SMALL, faults, plain, sizes
    rules = {
        'types': 'all three entries are plain lists and ints',
        'positions': '2 × cp chunks; rank r has chunk r from the front and the back, ascending',
        'inverse': 'inverse[p] is the place of token p in the end-to-end order',
        'work': 'the token at position p looks at 0 to p: p + 1 keys',
    }
    for sequence, cp, expected in SMALL:  # small ones, written by hand
        got = call(sequence, cp)
        assert plain(got), call.wrong(rules['types'], expected)
        for key in expected:
            assert call.same(got[key], expected[key]), call.wrong(rules[key], expected)

    for sequence, cp in sizes():  # no table, properties only
        got = call(sequence, cp)
        for fault, rule, expected in [
            (faults.types, rules['types'], 'list, int'),
            (faults.tokens, 'one rank a token, as many for each, ascending', '0, 1, 2, …'),
            (faults.heads, 'the first half is chunk r from the front', 'r × chunk, …'),
            (faults.mirror, rules['positions'], 'with token p comes sequence − 1 − p'),
            (faults.inverse, rules['inverse'], 'order[inverse[p]] = p'),
            (faults.work, rules['work'], 'cells of the causal matrix, counted'),
        ]:
            found = fault(got, sequence, cp)
            assert not found, call.wrong(rule, expected, found)

# %% [markdown] lang="zh"
# #### 两种切法放在一起
#
# 现在用**你的**函数画图。先猜：首尾配对之后，4 个 rank 的格子数会差多少？

# %% [markdown] lang="en"
# #### Both splits side by side
#
# Now **your** function draws. Predict: after the head-tail split, by how much do the 4 ranks differ?

# %%
if ready('head_tail'):
    split = head_tail(16, 4)
    draw_causal({'contiguous': contiguous, 'head-tail': split['positions']})
    x = torch.arange(100, 116)
    gathered = torch.cat([x[mine] for mine in split['positions']])
    print('gathered:', gathered.tolist())
    print('restored:', gathered[split['inverse']].tolist())

# %% [markdown] lang="zh"
# 完全一样：每个 rank 34 个分数。还原次序也只要一次下标。
#
# ### 1.3 一步一步地看
#
# 等一下 Step 3 会让 K/V 在环上走：第 0 步每个 rank 用自己的 K/V，以后每一步换成前一个 rank 传来的。所有 rank 一起走，一步要多久，由这一步最慢的 rank 决定。
#
# 下图每格是一个 rank 在一步里要算的分数，斜线是没有活干，最下面一行红字是这一步最慢的。先猜：把每一步最慢的加起来，两种切法差几倍？

# %% [markdown] lang="en"
# They are equal: 34 scores each. And one indexing restores the order.
#
# ### 1.3 Step by step
#
# In Step 3 K/V will travel round a ring: in step 0 each rank uses its own K/V, in every later step what the previous rank has sent. All ranks move together, so a step takes as long as its slowest rank.
#
# Each cell below is what a rank computes in one step; hatched cells have nothing to do; the red numbers in the last row are the slowest of the step. Predict: add up the slowest of all steps; by what factor do the two splits differ?

# %%
if ready('head_tail'):
    tables, seen = {}, torch.ones(16, 16).tril()
    held = [torch.arange(4).roll(step).tolist() for step in range(4)]  # [step][rank]: whose K/V
    for name, ranks in (('contiguous', contiguous), ('head-tail', split['positions'])):
        tables[name] = [[seen[mine][:, ranks[held[step][rank]]].sum().item() for step in range(4)]
                        for rank, mine in enumerate(ranks)]
    draw_work_steps(tables)

# %% [markdown] lang="zh"
# 58 对 34，又是 1.71 倍。按顺序切时，rank 0 从第 1 步起就闲着；首尾配对时，每一步每个 rank 都是 8 个：要么全部查询看对方的前一块，要么后一半查询看对方的两块。

# %% [markdown] lang="en"
# It is 58 against 34, again 1.71 times. Cut in order, rank 0 idles from step 1 on. With head-tail every rank has 8 in every step: either all of its queries look at the other's first chunk, or the second half of its queries looks at both.

# %% [markdown] lang="zh"
# ## Step 2：在线 softmax
#
# K/V 一块一块地来，可 softmax 要除以**所有**键的总和。办法是每块先各算各的，再合并。本课的 `partial_attention(q, k, v, seen)` 只看手上这一块键，返回两样东西：
#
# - `out`：假装没有别的键，按 softmax 加权的 V 的平均，形状 `[b, heads, s, d]`；
# - `lse`：分数取 exp、求和、再取 log（log-sum-exp），形状 `[b, heads, s]`。它说的是这一块有多重。
#
# `seen` 是 `[s, t]` 的布尔张量，True 表示查询看得见键。一个键都看不见的查询，`out` 是 0，`lse` 是 −inf。
#
# 下面 1 个查询、12 个键、3 块。先猜：3 块的 `out` 各占三分之一，对吗？

# %% [markdown] lang="en"
# ## Step 2: online softmax
#
# K/V come block by block, but softmax divides by the sum over **all** keys. So each block is computed by itself first, and then they are merged. This lesson's `partial_attention(q, k, v, seen)` looks at the keys at hand only and returns two things:
#
# - `out`: the softmax-weighted mean of V as if there were no other keys, of shape `[b, heads, s, d]`;
# - `lse`: exp of the scores, summed, and the log of that (log-sum-exp), of shape `[b, heads, s]`. It says how much weight the block has.
#
# `seen` is a boolean tensor `[s, t]`, True where a query sees a key. A query that sees no key at all has `out` = 0 and `lse` = −inf.
#
# Below are 1 query and 12 keys in 3 blocks. Predict: does the `out` of each of the 3 blocks count for a third?

# %%
scores = [0.5, -1.0, 0.2, 0.0, 2.5, 0.3, -0.4, 1.0, -2.0, 0.1, 0.6, -0.7]
draw_shares(scores, cuts=[4, 4, 4])
q, k = torch.ones(1, 1, 1, 1), torch.tensor(scores).view(1, 1, 12, 1)  # 1 dim: score = q · k
v, seen = torch.arange(12.0).view(1, 1, 12, 1), torch.ones(1, 4, dtype=torch.bool)
for block in range(3):
    keys = slice(4 * block, 4 * block + 4)
    out, lse = partial_attention(q, k[:, :, keys], v[:, :, keys], seen)
    lse = lse.item()
    print(f'block {block}: out {out.item():5.2f}, lse {lse:.2f}, exp(lse) {math.exp(lse):5.2f}')

# %% [markdown] lang="zh"
# 不对：有一个键分数很高，它那一块占了大头。块的份额就是它的 exp(lse) 占总和的比例。
#
# ### 2.1 合并两块
#
# 两块的结果是 $o_1, l_1$ 和 $o_2, l_2$（$l$ 就是 lse）。合起来：
#
# $$l = \log(e^{l_1} + e^{l_2}), \qquad o = e^{l_1 - l}\, o_1 + e^{l_2 - l}\, o_2$$
#
# 合并的结果和原来一样是一对 (out, lse)，可以接着和下一块合并。这就是在线 softmax，FlashAttention 在一张卡里做的也是它。
#
# 数学对了，数值还会出错。先猜：下面 4 个数各是多少？

# %% [markdown] lang="en"
# It does not: one key has a high score, and its block takes most. A block's share is its exp(lse) as a part of the sum.
#
# ### 2.1 Merge two blocks
#
# Two blocks gave $o_1, l_1$ and $o_2, l_2$ ($l$ is the lse). Together they are
#
# $$l = \log(e^{l_1} + e^{l_2}), \qquad o = e^{l_1 - l}\, o_1 + e^{l_2 - l}\, o_2$$
#
# What comes out is again a pair (out, lse), so it can be merged with the next block. This is online softmax; it is what FlashAttention does inside one device.
#
# The mathematics is right; the numbers may still go wrong. Predict: what are these 4 numbers?

# %%
never = torch.tensor(-math.inf)
print('exp(1000)         =', torch.tensor(1000.0).exp().item())
print('log(exp(-1000))   =', torch.tensor(-1000.0).exp().log().item())
print('-inf - (-inf)     =', (never - never).item())
x = torch.tensor(0.0, requires_grad=True)
torch.where(x > 0, x.log(), 0.0).backward()
print('gradient of where =', x.grad.item())

# %% [markdown] lang="zh"
# inf、−inf、nan、nan。前两个是溢出：分数上百并不稀奇，float32 在 89 就溢出了。第三个出现在两边都是 −inf 的时候：查询在两块里都看不到键。
#
# 最后一个最隐蔽：`where` 选了没有问题的那一支，结果是 0；可反向时另一支的梯度是 0 × inf，还是 NaN。所以要在取 exp 和 log **之前**把坏的数换掉，事后再用 `where` 或 `nan_to_num` 盖住是不够的。

# %% [markdown] lang="en"
# They are inf, −inf, nan, nan. The first two overflow: scores above a hundred are nothing special, and float32 overflows at 89. The third comes up when both sides are −inf: the query sees no key in either block.
#
# The last is the most hidden: `where` chose the sound branch, and the result is 0; but in backward the other branch has the gradient 0 × inf, which is NaN again. So replace what is bad **before** taking exp and log; covering it with `where` or `nan_to_num` afterwards is not enough.

# %% [markdown] lang="zh"
# ### TODO 2：稳定地合并
#
# `merge(out, lse, new, new_lse)` 把两块合成一块，返回 `(out, lse)`。`out` 和 `new` 是 `[b, heads, s, d]`，`lse` 和 `new_lse` 是 `[b, heads, s]`。
#
# 1. 无论 lse 多大、多小、相差多远，都和一次看完所有键一样；
# 2. 一边是 −inf，结果就是另一边；两边都是 −inf，`out` 是 0，`lse` 是 −inf。任何地方都不出现 NaN，**梯度里也没有**；
# 3. 形状和类型不变，不改动输入，不切断梯度。
#
# <details><summary>提示 1：方向</summary>
#
# 不要对 lse 本身取 exp。两个 lse 同时减去一个数，权重不变：权重只和它们的差有关。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 两条路都通。一条：两个都减去较大的那个，再取 exp，权重都在 0 到 1 之间，求和、相除，最后把减掉的加回 lse。另一条：新的一块的份额就是差（新减旧）的 sigmoid，合并就是从 out 朝 new 走这么多；torch 的 sigmoid、lerp 和 logaddexp 都不怕大数。lse 比 out 少最后一维：用 None 添一维。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 会出 NaN 的只有 −inf 减 −inf，也就是两边都看不见的查询。先找出它们，在相减**之前**用 masked_fill 把一边换成 0：另一边还是 −inf，份额就是 0，out 还是 0。最后把 −inf 填回 lse。masked_fill 挡住的不只是值，还有梯度。走第一条路的话，总和为 0 的地方在除法和 log 之前也要换掉。
# </details>

# %% [markdown] lang="en"
# ### TODO 2: merge, stably
#
# `merge(out, lse, new, new_lse)` makes one block of two and returns `(out, lse)`. `out` and `new` are `[b, heads, s, d]`, `lse` and `new_lse` are `[b, heads, s]`.
#
# 1. However large, small or far apart the lse are, the result is that of all keys at once.
# 2. Where one side is −inf, the result is the other side; where both are, `out` is 0 and `lse` is −inf. There is no NaN anywhere, **nor in the gradients**.
# 3. Shapes and types stay, the inputs do not change, and gradients are not cut off.
#
# <details><summary>Hint 1: direction</summary>
#
# Never take exp of an lse as it is. Take the same number off both, and the weights stay: they depend on the difference alone.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Two roads lead there. One: take the larger off both, then exp; both weights lie between 0 and 1; sum, divide, and in the end add what was taken off to the lse again. The other: the share of the new block is the sigmoid of the difference (new minus old), and merging means to go that far from out to new; torch's sigmoid, lerp and logaddexp do not mind large numbers. lse lacks the last dim of out: add one with None.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Only −inf minus −inf makes a NaN: queries that see nothing on either side. Find them first, and **before** you subtract, replace one side by 0 with masked_fill: the other is still −inf, so its share is 0 and out stays 0. In the end fill −inf into the lse again. masked_fill stops not only values but gradients, too. On the first road, a sum of 0 must be replaced as well before the division and the log.
# </details>

# %% lang="zh"
# TODO 2 · merge
def merge(out, lse, new, new_lse):
    """把两块键上的注意力合成一块：按 exp(lse) 加权，任何数值下都稳定。"""
    # TODO 2：稳定的 log-sum-exp 合并，全部看不见时没有 NaN。
    # merged, total_lse = ???
    # BEGIN SOLUTION
    blind = torch.maximum(lse, new_lse) == -math.inf
    lse = lse.masked_fill(blind, 0.0)  # so that -inf - (-inf) never happens
    share = torch.sigmoid(new_lse - lse)
    merged = torch.lerp(out, new, share[..., None])
    total_lse = torch.logaddexp(lse, new_lse).masked_fill(blind, -math.inf)
    # END SOLUTION
    return merged, total_lse

# %% lang="en"
# TODO 2 · merge
def merge(out, lse, new, new_lse):
    """Attention over two blocks of keys made one: weighted by exp(lse), stable for any numbers."""
    # TODO 2: a stable log-sum-exp merge, without NaN where nothing is seen.
    # merged, total_lse = ???
    # BEGIN SOLUTION
    blind = torch.maximum(lse, new_lse) == -math.inf
    lse = lse.masked_fill(blind, 0.0)  # so that -inf - (-inf) never happens
    share = torch.sigmoid(new_lse - lse)
    merged = torch.lerp(out, new, share[..., None])
    total_lse = torch.logaddexp(lse, new_lse).masked_fill(blind, -math.inf)
    # END SOLUTION
    return merged, total_lse

# %% lang="zh"
# CHECK 2
with check_todo(2, 'merge') as call:
    from parlab.lesson.merge_cases import agree, numbers, result, two_parts
    log, inf = math.log, math.inf
    for lse, new_lse, out, total, rule in [
        (0.0, 0.0, [3.0, 4.0], log(2), '两边的 lse 相等，各占一半；lse 是 log(1 + 1)'),
        (log(3), 0.0, [2.5, 1.0], log(4), '按 exp(lse) 加权，3 : 1，不是各占一半'),
        (0.0, log(3), [3.5, 7.0], log(4), '按 exp(lse) 加权，1 : 3：lse 大的一边更重'),
        (1000 + log(3), 1e3, [2.5, 1.0], 1000 + log(4), 'exp(1000) 会溢出：先减去较大的'),
        (-1000.0, log(3) - 1000, [3.5, 7.0], log(4) - 1000, 'exp(−1000) 是 0：先减去较大的'),
        (900.0, -900.0, [2.0, -2.0], 900.0, '相差很远：小的一边权重是 0'),
        (0.5, -inf, [2.0, -2.0], 0.5, '新的一块全部看不见：结果就是原来的'),
        (-inf, 0.5, [4.0, 10.0], 0.5, '原来一个键都没看见：结果就是新的一块'),
        (-inf, -inf, [0.0, 0.0], -inf, '两边都看不见：out 是 0，lse 是 −inf，不是 NaN'),
    ]:
        got, expected = call(*numbers(lse, new_lse)), result(out, total)
        assert agree(got, expected), call.wrong(rule, expected)

    for seed, dtype, scale in [(0, torch.float64, 1.0), (1, torch.float32, 1.0),
                               (2, torch.float64, 1e4), (3, torch.float32, 1e4)]:
        case = two_parts(seed, dtype, scale)  # 查询 0 两块都看不见，1 只看见第一块，2 只看见第二块
        got = call(*case.arguments)
        assert agree(got, case.whole), call.wrong(
            '形状和类型不变，数值等于一次看完所有键', case.whole)

    case = two_parts(4)
    fault = case.bad_gradient(call(*case.arguments), call.given)
    assert not fault, call.wrong(
        '梯度也等于一次看完所有键：不切断，没有 NaN（在 exp 和 log 之前替换）',
        '有限、相等的梯度', fault)

# %% lang="en"
# CHECK 2
with check_todo(2, 'merge') as call:
    from parlab.lesson.merge_cases import agree, numbers, result, two_parts
    log, inf = math.log, math.inf
    for lse, new_lse, out, total, rule in [
        (0.0, 0.0, [3.0, 4.0], log(2), 'equal lse, so half each; the lse is log(1 + 1)'),
        (log(3), 0.0, [2.5, 1.0], log(4), 'weighted by exp(lse), 3 : 1, not half each'),
        (0.0, log(3), [3.5, 7.0], log(4), 'weighted by exp(lse), 1 : 3: more lse, more weight'),
        (1000 + log(3), 1e3, [2.5, 1.0], 1000 + log(4), 'exp(1000) overflows: take off the larger'),
        (-1000.0, log(3) - 1000, [3.5, 7.0], log(4) - 1000, 'exp(−1000) is 0: take off the larger'),
        (900.0, -900.0, [2.0, -2.0], 900.0, 'far apart: the smaller side has weight 0'),
        (0.5, -inf, [2.0, -2.0], 0.5, 'the new block is all masked: what was there stays'),
        (-inf, 0.5, [4.0, 10.0], 0.5, 'nothing was seen so far: the new block is the result'),
        (-inf, -inf, [0.0, 0.0], -inf, 'both sides see nothing: out is 0, lse is −inf, no NaN'),
    ]:
        got, expected = call(*numbers(lse, new_lse)), result(out, total)
        assert agree(got, expected), call.wrong(rule, expected)

    for seed, dtype, scale in [(0, torch.float64, 1.0), (1, torch.float32, 1.0),
                               (2, torch.float64, 1e4), (3, torch.float32, 1e4)]:
        case = two_parts(seed, dtype, scale)  # query 0 sees neither part, 1 the first, 2 the second
        got = call(*case.arguments)
        assert agree(got, case.whole), call.wrong(
            'shapes and types stay, values are those of all keys at once', case.whole)

    case = two_parts(4)
    fault = case.bad_gradient(call(*case.arguments), call.given)
    assert not fault, call.wrong(
        'gradients too equal those of all keys at once: not cut off, no NaN (replace before exp)',
        'finite and equal gradients', fault)

# %% [markdown] lang="zh"
# #### 切得多碎、按什么次序，都一样
#
# 64 个键切成 1 到 64 块，打乱次序，用**你的** `merge` 一块一块地合并，再和一次算完的比较。分数放大到几千。先猜：块越多，误差会不会越大？

# %% [markdown] lang="en"
# #### However small the pieces, in whatever order
#
# Cut 64 keys into 1 to 64 blocks, shuffle them, let **your** `merge` take them one by one, and compare with all at once. The scores are blown up to thousands. Predict: do more blocks mean more error?

# %%
if ready('merge'):
    q, k, v = random_qkv(1, 2, 1, 64, 8)
    q, everything = q * 1000, torch.ones(64, 64, dtype=torch.bool)
    whole, _ = partial_attention(q, k, v, everything)
    for blocks in (1, 2, 8, 64):
        keys = torch.randperm(64, generator=torch.Generator().manual_seed(blocks)).chunk(blocks)
        so_far = torch.zeros_like(q), torch.full_like(q[..., 0], -math.inf)  # nothing seen yet
        for mine in keys:
            part = partial_attention(q, k[:, :, mine], v[:, :, mine], everything[:, mine])
            so_far = merge(*so_far, *part)
        error = (so_far[0] - whole).abs().max().item()
        print(f'{blocks:>2} blocks: largest difference below 1e-14: {error < 1e-14}')

# %% [markdown] lang="zh"
# 误差只有舍入那么大。次序无所谓，所以每个 rank 可以从不同的块开始：这正是环需要的。
#
# ## Step 3：环形注意力
#
# 每个 rank 守着自己的 Q，K/V 沿环走。每走一步，rank r 把手里的 K/V 交给 rank r + 1，从 rank r − 1 接过一块，最后一个 rank 交给 rank 0。先猜：要走几步，每个 rank 才见过所有的块？

# %% [markdown] lang="en"
# The error is mere rounding. The order does not matter, so each rank may start from another block: just what a ring needs.
#
# ## Step 3: ring attention
#
# Each rank keeps its own Q while K/V travel round the ring. In one step rank r hands its K/V to rank r + 1 and takes a block from rank r − 1; the last rank hands on to rank 0. Predict: after how many steps has every rank seen every block?

# %%
draw_ring(size=4, steps=4)

# %% [markdown] lang="zh"
# 3 步。另一种办法是 all-gather：每个 rank 一次收齐所有的 K/V，再一口气算完。
#
# | | 环（ring） | all-gather |
# |---|---|---|
# | 每个 rank 收到的字节 | 一样多 | 一样多 |
# | 手里最多的 K/V | 两块：在用的和在路上的 | 整条序列 |
# | 通信和计算 | 可以重叠：算这一块时，下一块已经在路上 | 先等齐，再算，时间是暴露的 |
# | 掩码 | 一步一步地看哪些可见 | 一次完整的注意力，什么掩码都方便 |
#
# 传的是 K 和 V，不是 Q，也不是结果。分组查询注意力（grouped-query attention, GQA）让几个查询头共用一个 KV 头（KV head），要传的就少几倍。前提是**原样传**：先把 KV 头复制成和查询头一样多再传，这个好处就没有了。`partial_attention` 自己会分组，不需要你复制。

# %% [markdown] lang="en"
# After 3 steps. The other way is all-gather: every rank collects all K/V at once and then computes in one go.
#
# | | ring | all-gather |
# |---|---|---|
# | bytes that a rank receives | the same | the same |
# | most K/V at hand | two blocks: one in use, one on its way | the whole sequence |
# | communication and compute | can overlap: the next block travels while this one is in use | wait for all of it, then compute: the time is exposed |
# | masks | step by step: what is visible now | one complete attention, any mask is easy |
#
# What travels is K and V, neither Q nor results. In grouped-query attention (GQA) several query heads share one KV head, so there is several times less to send, provided that it is sent **as it is**: repeat the KV heads up to the number of query heads first, and the gain is gone. `partial_attention` groups the heads by itself; you repeat nothing.

# %% [markdown] lang="zh"
# ### 3.1 可以少算，不可以少传
#
# 按顺序切的时候，rank 0 收到的每一块都被掩码全部挡住：它什么都不用算。那它可不可以连传递也省掉，早点收工？
#
# 看梯度。下面在一个进程里算出：每个 rank 的查询，给每一块 K 的梯度贡献了多少（范数）。先猜：哪一块的梯度来自最多的 rank？

# %% [markdown] lang="en"
# ### 3.1 Compute less, never send less
#
# Cut in order, every block that rank 0 receives is masked altogether: it has nothing to compute. May it leave out the sending too, and go home early?
#
# Look at the gradients. In one process we compute how much the queries of each rank add to the gradient of each block of K (its norm). Predict: which block has gradients from the most ranks?

# %%
q, k, v = random_qkv(1, 2, 2, 32, 4)
upstream, _, _ = random_qkv(1, 2, 2, 32, 4, seed=1)
loss = whole_attention(q, k.requires_grad_(), v) * upstream
ranks = torch.arange(32).view(4, 8)
table = []
for mine in ranks:  # the part of the loss that this rank's queries make
    (dk,) = torch.autograd.grad(loss[:, :, mine].sum(), k, retain_graph=True)
    table.append([dk[:, :, block].norm().item() for block in ranks])
draw_contributions(table)
(dk,) = torch.autograd.grad(loss.sum(), k, retain_graph=True)
(own,) = torch.autograd.grad(loss[:, :, ranks[0]].sum(), k)
error = (own - dk)[:, :, ranks[0]].norm() / dk[:, :, ranks[0]].norm()
print(f'block 0 with the queries of rank 0 only: {error:.0%} of its gradient is missing')

# %% [markdown] lang="zh"
# rank 0 不需要任何人的 K/V，可**所有人**都用了它的。图里红框的那些贡献产生在别的 rank 上，要沿着传递的反方向一步步回家：前向传一步 K/V，反向就把它们的梯度往回传一步。
#
# 前向少传一次，马上会露馅：别的 rank 等不到它。反向就不一样了。rank 0 的结果没有用过任何收到的块，自动求导觉得没有什么要往回传；手写反向的人也容易觉得那几次传递没有用。少了它们，每个 rank 的输出都对，损失也对，没有任何报错，只有 rank 0 的 dK 和 dV 悄悄错了（3.3 节会亲眼看到）。
#
# 所以：**掩码挡住的，计算可以跳过，传递一次也不能少。** 本课的通信工具 `comm` 记得每一次传递，反向时全部走一遍，你只要保证前向一次不少。

# %% [markdown] lang="en"
# Rank 0 needs nobody's K/V, but **everybody** uses its own. The contributions in the red boxes arise on other ranks, and their way home is the way of the shifts, backwards, step by step: forward moves K/V one step on, backward moves their gradients one step back.
#
# A shift left out forward shows at once: the other ranks wait for it. Backward is different. The result of rank 0 has used none of the blocks that it received, so autograd sees nothing to send back, and whoever writes backward by hand may easily think that those shifts are of no use. Without them, every rank's output is right, so is the loss, and nothing is reported; only dK and dV of rank 0 are silently wrong (section 3.3 shows it).
#
# Hence: **what the mask hides may be skipped in compute, but never in the shift.** This lesson's means of communication, `comm`, remembers every shift and goes back through all of them; you only have to see that none is missing forward.

# %% [markdown] lang="zh"
# ### TODO 3：让 K/V 走一圈
#
# `ring_attention(comm, q, k, v, positions)` 在**每个 rank** 上各运行一次，输入是这个 rank 自己的分片。在笔记本里，一个 rank 是一个线程；到最后一步，它是一个真实的进程。
#
# | 输入 | 是什么 |
# |---|---|
# | `comm.rank`、`comm.size` | 这个 rank 的编号；一共有几个（cp） |
# | `comm.shift((k, v))` | 交给下一个 rank，返回从上一个 rank 接过的 `(k, v)` |
# | `q`、`k`、`v` | `[b, heads, s/cp, d]`，k 和 v 的头数是 kv_heads |
# | `positions` | 张量 `[cp, s/cp]`，第 r 行是 rank r 手里的 token 的全局位置；可能是任何一种切法 |
#
# 返回 `(out, sent)`：本地查询的完整注意力 `[b, heads, s/cp, d]`，和这个 rank 前向一共送出的字节数（int；`x.nbytes` 是一个张量的字节数）。
#
# 要求：
#
# 1. 每个 rank 不多不少传 cp − 1 次，KV 头原样传；不用 all-gather，不攒着所有的块一起算；
# 2. 掩码按全局位置：查询看得见位置不大于自己的键；
# 3. 计算跳过看不见的：这一块里一个键都看不见的查询、没有任何查询看得见的键，都不送进 `partial_attention`；
# 4. 用 `merge` 合并，梯度能传回去。
#
# <details><summary>提示 1：方向</summary>
#
# 一个循环走 cp 步。每步做两件事：用手里这一块算一次、合并一次；如果不是最后一步，就传一次。循环开始前，out 是 0，lse 是 −inf，也就是“什么都没看见”。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 走了 step 步之后，手里的块是前面第 step 个 rank 的，编号对 cp 取余。拿自己的位置（竖着）和它的位置（横着）一比，就得到布尔张量 seen；沿两个维各做一次 any，就知道哪些查询、哪些键需要算。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 用布尔张量取行会得到一份拷贝，算完、合并完再赋值回去，自动求导没有意见。用切片取的是视图（view），写回去会改掉自动求导存着的数，反向会报 modified by an inplace operation。seen 也要取同样的行和列。一个查询都没有时，不算，但是照样传。sent 每传一次加一次。
# </details>

# %% [markdown] lang="en"
# ### TODO 3: once round the ring
#
# `ring_attention(comm, q, k, v, positions)` runs once on **every rank**, with that rank's own shards. In the notebook a rank is a thread; in the last step it is a real process.
#
# | input | what it is |
# |---|---|
# | `comm.rank`, `comm.size` | this rank's number; how many there are (cp) |
# | `comm.shift((k, v))` | hands them to the next rank and returns the `(k, v)` of the previous one |
# | `q`, `k`, `v` | `[b, heads, s/cp, d]`; k and v have kv_heads heads |
# | `positions` | a tensor `[cp, s/cp]`, row r holds the global positions of the tokens of rank r; it may be any split |
#
# Return `(out, sent)`: the complete attention of the local queries `[b, heads, s/cp, d]`, and how many bytes this rank has sent forward (an int; `x.nbytes` is the bytes of a tensor).
#
# What is required:
#
# 1. Every rank shifts cp − 1 times, no more and no less, with the KV heads as they are. There is no all-gather, and blocks are not hoarded to compute them all at once.
# 2. The mask goes by global positions: a query sees the keys whose position is not above its own.
# 3. Compute skips what is not seen: queries that see no key of this block, and keys that no query sees, do not go into `partial_attention`.
# 4. `merge` does the merging, and gradients can flow back.
#
# <details><summary>Hint 1: direction</summary>
#
# One loop of cp steps. Each step does two things: compute and merge with the block at hand; unless it is the last step, shift. Before the loop, out is 0 and lse is −inf, which means "nothing seen yet".
# </details>
# <details><summary>Hint 2: structure</summary>
#
# After step steps the block at hand is that of the rank so many places before you, modulo cp. Compare your own positions (as a column) with its positions (as a row) and you have the boolean tensor seen; any along each of the two dims tells which queries and which keys are needed.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Rows taken with a boolean tensor are a copy; compute, merge and assign them back, and autograd is content. A slice is a view: writing into it changes numbers that autograd has saved, and backward complains of "modified by an inplace operation". Take the same rows and columns of seen. With no query left, do not compute, but shift all the same. sent grows with every shift.
# </details>

# %% lang="zh"
# TODO 3 · ring_attention
def ring_attention(comm, q, k, v, positions):
    """本地查询对整条序列的因果注意力，以及为它送出的字节数。"""
    mine = positions[comm.rank]
    # TODO 3：cp 步，每步算、合并、传；跳过看不见的计算，不跳过传递。
    # out, sent = ???
    # BEGIN SOLUTION
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        theirs = positions[(comm.rank - step) % comm.size]
        seen = theirs[None, :] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns])
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], *new)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    # END SOLUTION
    return out, sent

# %% lang="en"
# TODO 3 · ring_attention
def ring_attention(comm, q, k, v, positions):
    """Causal attention of the local queries over the whole sequence, and the bytes sent for it."""
    mine = positions[comm.rank]
    # TODO 3: cp steps, each computes, merges and shifts; skip unseen compute, never a shift.
    # out, sent = ???
    # BEGIN SOLUTION
    out, lse = torch.zeros_like(q), q.new_full(q.shape[:-1], -math.inf)
    sent = 0
    for step in range(comm.size):
        theirs = positions[(comm.rank - step) % comm.size]
        seen = theirs[None, :] <= mine[:, None]
        rows, columns = seen.any(dim=1), seen.any(dim=0)
        if rows.any():
            new = partial_attention(
                q[:, :, rows], k[:, :, columns], v[:, :, columns], seen[rows][:, columns])
            out[:, :, rows], lse[:, :, rows] = merge(out[:, :, rows], lse[:, :, rows], *new)
        if step < comm.size - 1:
            sent += k.nbytes + v.nbytes
            k, v = comm.shift((k, v))
    # END SOLUTION
    return out, sent

# %% lang="zh"
# CHECK 3
with check_todo(3, 'ring_attention', needs=('merge',)) as call:
    from parlab.lesson.ring_cases import RINGS
    for case in RINGS:  # cp 1–4，3 种切法（按顺序、首尾配对、轮流发牌），GQA 和 MHA
        run = call.run(run_ring, *case.tensors)
        shifts, total = run.size - 1, (run.size - 1) * run.block
        for fault, rule, expected in [
            (run.broken,
             '每个 rank 都传 cp − 1 次，掩码全部挡住也一样',
             f'shift × {shifts}'),
            (run.no_pairs(),
             '返回 (out, sent)：本地查询的结果和一个 int',
             '(Tensor, int)'),
            (run.other_operations(),
             'K/V 只用 shift 沿环传，没有 all-gather',
             f'shift × {shifts}'),
            (run.fat_shift(),
             'KV 头原样传，不复制：一次最多传一块的 K 和 V',
             f'{run.block} bytes'),
            (run.uneven(),
             '每个 rank 不多不少传 cp − 1 次，每次一块的 K 和 V',
             f'shift × {shifts}, {total} bytes'),
            (run.blind_spot(),
             '掩码按全局位置：手里是哪个 rank 的块，就用哪个 rank 的位置',
             '位置 p 的查询看位置 0 到 p 的键各 1 次'),
            (run.hoard(),
             '一步只算手里的一块，不攒着所有的块一起算',
             f'≤ {run.room}'),
            (run.output_error(),
             '每一步都用 merge 合并，结果等于一个进程的注意力',
             'out ± 1e-10'),
            (run.needless(case.needed),
             '看不见的跳过计算：只算看得见键的查询、被看见的键',
             f'≤ {case.needed}'),
            (run.stuck,
             '梯度能传回去：不切断，不改动自动求导存着的数',
             'backward ✓'),
            (run.gradient_error(),
             'dq、dk、dv 等于一个进程的梯度',
             '± 1e-10'),
            (run.miscounted(),
             'sent 是这个 rank 送出的字节：cp − 1 块 K 和 V',
             f'sent = {total}'),
        ]:
            assert not fault, call.wrong(rule, expected, fault)

# %% lang="en"
# CHECK 3
with check_todo(3, 'ring_attention', needs=('merge',)) as call:
    from parlab.lesson.ring_cases import RINGS
    for case in RINGS:  # cp 1–4, 3 splits (in order, head-tail, dealt one by one), GQA and MHA
        run = call.run(run_ring, *case.tensors)
        shifts, total = run.size - 1, (run.size - 1) * run.block
        for fault, rule, expected in [
            (run.broken,
             'every rank shifts cp − 1 times, even where all is masked',
             f'shift × {shifts}'),
            (run.no_pairs(),
             'return (out, sent): the result of the local queries and an int',
             '(Tensor, int)'),
            (run.other_operations(),
             'K/V travel by shift alone, round the ring; there is no all-gather',
             f'shift × {shifts}'),
            (run.fat_shift(),
             'KV heads travel as they are, not repeated: at most one block of K and V',
             f'{run.block} bytes'),
            (run.uneven(),
             'every rank shifts cp − 1 times, no more, no less, one block of K and V each',
             f'shift × {shifts}, {total} bytes'),
            (run.blind_spot(),
             'the mask goes by global positions: those of the rank whose block is at hand',
             'the query at p sees the keys at 0 to p 1 time each'),
            (run.hoard(),
             'a step computes with the block at hand; blocks are not hoarded',
             f'≤ {run.room}'),
            (run.output_error(),
             'merge in every step: the result is the attention of one process',
             'out ± 1e-10'),
            (run.needless(case.needed),
             'skip what is not seen: only queries that see a key, only keys that are seen',
             f'≤ {case.needed}'),
            (run.stuck,
             'gradients flow back: not cut off, and nothing that autograd saved is changed',
             'backward ✓'),
            (run.gradient_error(),
             'dq, dk and dv are the gradients of one process',
             '± 1e-10'),
            (run.miscounted(),
             'sent is the bytes that this rank has sent: cp − 1 blocks of K and V',
             f'sent = {total}'),
        ]:
            assert not fault, call.wrong(rule, expected, fault)

# %% [markdown] lang="zh"
# ### 3.2 和一个进程比
#
# 4 个 rank，32 个 token，6 个查询头，2 个 KV 头。用**你的**三个函数跑两种切法：每个 rank 算了多少个分数，送出多少字节，手里最大的张量有多少个数，和一个进程差多少。
#
# 先猜：哪些数会因为切法不同而不同？

# %% [markdown] lang="en"
# ### 3.2 Beside one process
#
# 4 ranks, 32 tokens, 6 query heads, 2 KV heads. **Your** three functions run both splits: how many scores each rank computes, how many bytes it sends, how many numbers its largest tensor holds, how far it is from one process.
#
# Predict: which of these depend on the split?

# %%
ALL = ('head_tail', 'merge', 'ring_attention')
if ready(*ALL):
    qkv = random_qkv(1, 6, 2, 32, 16)
    cuts = {'contiguous': torch.arange(32).view(4, 8),
            'head-tail': torch.tensor(head_tail(32, 4)['positions'])}
    for name, positions in cuts.items():
        run = run_ring(ring_attention, *qkv, positions)
        exact = not run.output_error() and not run.gradient_error()
        print(f'{name:<11} scores {run.scores()}, sent {run.handed()[0]} bytes, '
              f'largest {run.largest().elements}, exact to 1e-10: {exact}')

# %% [markdown] lang="zh"
# 只有计算变了：按顺序切时最忙的 rank 算 256 个，首尾配对时人人 160 个（自己的那一块按整块 8 × 8 计）。通信和内存一样。
#
# ### 3.3 少传一次，错得无声无息
#
# 现在让 rank 0 在反向时收不到别人送回的梯度，正好像它没有参加那些传递。你的函数不变。先猜：哪些 rank 的哪些数会错？

# %% [markdown] lang="en"
# Only the compute changes: cut in order, the busiest rank computes 256 scores, with head-tail everyone computes 160 (a rank's own block counts as a whole, 8 × 8). Traffic and memory are the same.
#
# ### 3.3 One shift less, silently wrong
#
# Now let rank 0 miss, in backward, the gradients that the others send back, just as if it had not taken part in those shifts. Your function stays as it is. Predict: which numbers of which ranks will be wrong?

# %%
if ready(*ALL):
    run = run_ring(ring_attention, *qkv, cuts['contiguous'], deaf=0)
    print('outputs right on every rank:', not run.output_error())
    for rank, gradients in enumerate(run.gradients):
        off = [run.distance(rank, *pair) for pair in zip(gradients, run.whole.gradients)]
        print(f'rank {rank}:', ', '.join(f'd{name} off by {x:.2f}' for name, x in zip('qkv', off)))

# %% [markdown] lang="zh"
# 输出全对，只有 rank 0 的 dK 和 dV 错了，没有任何报错。只比较输出的测试发现不了它，所以本课处处比较梯度。
#
# ### 3.4 要传多少
#
# 每个 rank 送出的字节随序列长度、KV 头数和头的维数成正比增长，所以对每个 cp 跑一次最小的例子，就能推出任何大小。下面按 Llama 3 405B 的一张卡来推：tp = 8，每张卡有 16 个查询头、1 个 KV 头，每个头 128 维，每个数 2 字节。MHA（multi-head attention）指 16 个头各有自己的 K/V。
#
# 先猜：cp 从 2 加到 16，每个 rank 送出的字节会变成几倍？

# %% [markdown] lang="en"
# All outputs are right, only dK and dV of rank 0 are wrong, and nothing was reported. A test that compares outputs alone would not find it; that is why this lesson compares gradients everywhere.
#
# ### 3.4 How much there is to send
#
# The bytes that a rank sends grow in proportion to the sequence length, the number of KV heads and the dims of a head, so one smallest run for each cp is enough to know any size. Here we take one device of Llama 3 405B: tp = 8, so it has 16 query heads and 1 KV head, 128 dims a head, 2 bytes a number. MHA (multi-head attention) means that each of the 16 heads has K/V of its own.
#
# Predict: from cp = 2 to 16, by what factor do the bytes that a rank sends change?

# %%
if ready(*ALL):
    lengths, cps, unit = [1024 * 2**n for n in range(3, 8)], (2, 4, 8, 16), {}
    for cp in cps:  # 8 bytes a number, 2 · cp tokens, 1 head of 1 dim
        positions = torch.tensor(head_tail(2 * cp, cp)['positions'])
        unit[cp] = bytes_sent(ring_attention, positions) / 8 / (2 * cp)

    def traffic(cp, length, kv_heads):
        return unit[cp] * length * kv_heads * 128 * 2

    kinds = {'MHA, 16 KV heads': 16, 'GQA, 1 KV head': 1}
    over_length = {f'{name}, cp = {cp}': [traffic(cp, length, heads) for length in lengths]
                   for name, heads in kinds.items() for cp in (16, 2)}
    over_cp = {name: [traffic(cp, lengths[-1], heads) for cp in cps]
               for name, heads in kinds.items()}
    draw_traffic(lengths, over_length, cps, over_cp)
    print(f'GQA at 128K: cp = 2 {traffic(2, 131072, 1) / 1e6:.1f} MB, '
          f'cp = 16 {traffic(16, 131072, 1) / 1e6:.1f} MB')

# %% [markdown] lang="zh"
# 不到 2 倍：块变小了，传的次数变多了，总数趋近于整条序列的 K/V。GQA 和 MHA 差 16 倍，正好是头数之比。
#
# ### 3.5 Llama 3 为什么不用环
#
# Llama 3 405B 用 131,072 个 token 训练时 cp = 16，切法就是你写的首尾配对，可是通信用的是 **all-gather**：先收齐 K/V，再算（arXiv 2407.21783 3.3.2 节）。论文给了两个理由：
#
# 1. all-gather 更容易支持各种注意力掩码，比如一条序列里有几篇文档、互相看不见的文档掩码；
# 2. GQA 让 K/V 比 Q 小得多，暴露的通信时间很短：注意力的计算按序列长度的平方增长，all-gather 只按一次方增长。
#
# 验证第二个理由。**下面的数是推算的，证据等级（evidence level）是 `analytic`**：计算按每张卡 400 TFLOP/s，通信按每张卡 50 GB/s（400 Gb/s 的网卡），只算一层的前向。先猜：8K 的时候，理由还成立吗？

# %% [markdown] lang="en"
# Less than 2: blocks get smaller, shifts more, and the sum approaches the K/V of the whole sequence. GQA and MHA differ by 16, just the ratio of their heads.
#
# ### 3.5 Why Llama 3 takes no ring
#
# Llama 3 405B was trained on 131,072 tokens with cp = 16 and with the very head-tail split that you wrote, but it communicates by **all-gather**: first collect K/V, then compute (arXiv 2407.21783, section 3.3.2). The paper gives two reasons:
#
# 1. All-gather makes it easier to support all kinds of attention masks, such as a document mask, where several documents in one sequence do not see each other.
# 2. With GQA, K/V are much smaller than Q, so the exposed communication is short: the compute of attention grows with the square of the sequence length, the all-gather only in proportion to it.
#
# Check the second reason. **These numbers are computed, not measured; their evidence level is `analytic`**: compute at 400 TFLOP/s a device, communication at 50 GB/s a device (a 400 Gb/s network card), forward of one layer. Predict: does the reason still hold at 8K?

# %%
if ready(*ALL):
    row = llama3_405b()[-1]
    cp, heads, dim = row['cp'], row['num_heads'] // row['tp'], row['hidden'] // row['num_heads']
    compute = [4 * n * n / 2 * heads * dim / cp / 400e12 * 1e3 for n in lengths]
    sends = {name: [traffic(cp, n, kv) / 50e9 * 1e3 for n in lengths] for name, kv in kinds.items()}
    draw_overlap(lengths, compute, sends)
    for n, c, g, m in zip(lengths, compute, sends['GQA, 1 KV head'], sends['MHA, 16 KV heads']):
        print(f'{n:>7} tokens: compute {c:5.2f} ms, GQA {g:.2f} ms ({g / c:4.0%}), MHA {m:5.2f} ms')
    gathered = 2 * lengths[-1] * 128 * 2 / 1e6
    print(f'K/V at hand at 128K: all-gather {gathered:.1f} MB, ring {2 * gathered / cp:.1f} MB')

# %% [markdown] lang="zh"
# 128K 时通信只有计算的 11%，就算完全暴露也不贵；收齐的 K/V 也才 67 MB。换成 MHA，通信会比计算还久。而在 8K，GQA 的通信也超过了计算：短序列不值得用这么大的 cp，Llama 3 在 8K 时正是 cp = 1。
#
# 所以没有一种办法总是对的：序列再长、KV 头更多、网络更慢的时候，环把通信藏进计算里，省下的就多了。

# %% [markdown] lang="en"
# At 128K communication is only 11% of compute, cheap even when fully exposed, and the collected K/V are just 67 MB. With MHA communication would take longer than compute. And at 8K even GQA communicates longer than it computes: short sequences do not deserve so large a cp, and at 8K Llama 3 indeed has cp = 1.
#
# So no way is always right: with still longer sequences, more KV heads or a slower network, a ring that hides communication behind compute gains more.

# %% [markdown] lang="zh"
# ## Step 4：真实的进程
#
# 到这里，rank 都是一个进程里的线程。最后一步把你的三个函数写进一个文件，用 `torchrun` 启动 4 个真实的进程，用 gloo 传递真实的消息，两种切法都和一个进程的 `scaled_dot_product_attention` 比较：输出和 dq、dk、dv，float64，误差不超过 1e-10。
#
# 把第一行改成 True 再运行。启动进程要几秒，30 秒之内一定结束。

# %% [markdown] lang="en"
# ## Step 4: real processes
#
# So far the ranks were threads of one process. The last step writes your three functions to a file, starts 4 real processes with `torchrun`, which exchange real messages through gloo, and compares both splits with `scaled_dot_product_attention` in one process: output and dq, dk, dv, in float64, to 1e-10.
#
# Set the first line to True and run it. The processes take a few seconds to start; within 30 seconds it ends for sure.

# %% lang="zh"
RUN_PROOF = False  # True：启动 4 个真实的进程

if ready(*ALL):
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_context', [head_tail, merge, ring_attention])
    if report:
        show_proof(report)

# %% lang="en"
RUN_PROOF = False  # True: start 4 real processes

if ready(*ALL):
    report = run_proof(RUN_PROOF, 'parlab.lesson.prove_context', [head_tail, merge, ring_attention])
    if report:
        show_proof(report)

# %% [markdown] lang="zh"
# ## 🛑 STOP HERE 🛑
#
# 先完成题目、通过检查，再看[参考答案](repo:solutions/03_context_parallel.ipynb)。
#
# **下一课** `04_model_internal_parallel` 把 PP、TP、CP 放到同一张设备网格上，再决定 8 张卡怎么摆。
#
# **延伸阅读**
#
# - 环形注意力：[arXiv 2310.01889](https://arxiv.org/abs/2310.01889)；因果掩码下怎样分得公平：[arXiv 2311.09431](https://arxiv.org/abs/2311.09431)
# - 在线 softmax：[arXiv 1805.02867](https://arxiv.org/abs/1805.02867)；FlashAttention：[arXiv 2205.14135](https://arxiv.org/abs/2205.14135)
# - Llama 3 的上下文并行：[arXiv 2407.21783](https://arxiv.org/abs/2407.21783) 3.3.2 节
# - 另一条路：用 all-to-all 把“按序列切”换成“按头切”（DeepSpeed-Ulysses）：[arXiv 2309.14509](https://arxiv.org/abs/2309.14509)

# %% [markdown] lang="en"
# ## 🛑 STOP HERE 🛑
#
# Finish the tasks and pass the checks before you look at the [reference solution](repo:solutions/en/03_context_parallel.ipynb).
#
# **Next** `04_model_internal_parallel` puts PP, TP and CP on one device mesh and decides how to arrange 8 devices.
#
# **Further reading**
#
# - Ring attention: [arXiv 2310.01889](https://arxiv.org/abs/2310.01889); a fair share under the causal mask: [arXiv 2311.09431](https://arxiv.org/abs/2311.09431)
# - Online softmax: [arXiv 1805.02867](https://arxiv.org/abs/1805.02867); FlashAttention: [arXiv 2205.14135](https://arxiv.org/abs/2205.14135)
# - Context parallelism in Llama 3: [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2
# - Another road: an all-to-all turns "cut by sequence" into "cut by heads" (DeepSpeed-Ulysses): [arXiv 2309.14509](https://arxiv.org/abs/2309.14509)
