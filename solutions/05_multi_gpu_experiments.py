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
# # 05 · 多进程实测：让证据做决定
#
# **难度** Hard | **环境** CPU-first，有没有 GPU 都能学完 | **标签** torchrun, Bubble, Exposed Communication, Evidence
#
# **时间** 阅读约 30 分钟，动手约 45 分钟；选做的实测 1 分钟
#
# **前置** `04_model_internal_parallel`（用它的三个函数做决定；没做完也能学，那就由参考答案决定）
#
# 第 04 课的数是推算出来的。这一课看测量出来的数：`torchrun` 启动真实的进程，真实地训练一个小模型，每一组写下一份记录，最后由**你在第 04 课写的三个函数**决定选谁。
#
# 难的不是启动，是读懂：一步的时间去了哪里？这个数能说明什么，不能说明什么？你要写 3 个函数：把一个 rank 的一步拆成四部分，从几个 rank 算出占比，把一次运行写成一份诚实的记录。
#
# **打开本页、全部运行，都不会启动任何进程**：开关在 5.3，默认关着。不打开也能学完，下面讲解的是随课程提供的示例记录。

# %% [markdown] lang="en"
# # 05 · Measured with real processes: let the evidence decide
#
# **Difficulty** Hard | **Environment** CPU-first, complete with or without a GPU | **Tags** torchrun, Bubble, Exposed Communication, Evidence
#
# **Time** about 30 minutes to read, about 45 to do; the optional run takes 1 minute
#
# **Prerequisites** `04_model_internal_parallel` (its three functions decide; if it is not finished, the reference solution's do)
#
# The numbers of lesson 04 were computed. This lesson looks at numbers that were measured: `torchrun` starts real processes, they really train a small model, every group writes a record, and **the three functions that you wrote in lesson 04** decide in the end.
#
# Starting it is not the hard part; reading it is. Where did the time of a step go? What does a number show, and what does it not show? You write 3 functions: one splits a rank's step into four parts, one computes ratios from several ranks, one makes an honest record of a run.
#
# **Neither opening this page nor Run All starts any process**: the switches stand in 5.3 and are off. The lesson is complete without them: it explains the example records that come with the course.

# %%
# SETUP
# CARRY parlab/bench parlab/cli.py parlab/interrupts.py parlab/author/problems.py
# CARRY parlab/lesson/supervise.py
# CARRY benchmarks/workloads/tiny-cpu.toml benchmarks/workloads/parallel-training.txt
# CARRY benchmarks/results/par_model_internal/*.json
# CARRY benchmarks/results/par_model_internal/timelines/baseline*.json
# CARRY benchmarks/results/par_model_internal/timelines/G1*.json
# CARRY benchmarks/results/par_model_internal/timelines/G2*.json
# CARRY solutions/04_model_internal_parallel.py solutions/*.py
import importlib.util
from copy import deepcopy

import matplotlib.pyplot as plt
import torch

from parlab.lesson.checks import check_todo, ready
from parlab.lesson.deciders import load_deciders
from parlab.lesson.draw_evidence import draw_clocks, draw_rank_step, draw_worth
from parlab.lesson.draw_records import (
    draw_collectives,
    draw_comparison,
    draw_memory,
    draw_timeline,
)
from parlab.lesson.experiments import bench_command, run_experiments
from parlab.lesson.intervals import minus, total, union, within
from parlab.lesson.records import (
    choosable,
    comparable,
    pipeline_group,
    read_decision,
    read_records,
    read_timeline,
    table,
)
from parlab.lesson.trace_cases import BY_HAND

# %% [markdown] lang="zh"
# ## Step 5（可选）：真实多卡组合验证
#
# 第 04 课走完了 Step 1 到 4：从切分到决定。本课接着走第 5 步，所以从 5 数起。
#
# ### 5.1 环境与固定的工作负载
#
# 比较几种摆法，别的都得一样。所以先把工作负载（workload）写死：模型和它的版本（revision）、分词器（tokenizer）、全局批次与微批次、序列长度、数据类型、调度、world size、拓扑、预热次数、重复次数、随机种子，还有门槛的上限。全部字段算出一个指纹（fingerprint），指纹不同的两次运行不能比较。
#
# 先猜：只换一个随机种子，指纹会变吗？

# %% [markdown] lang="en"
# ## Step 5 (optional): verify the combinations on real devices
#
# Lesson 04 took Steps 1 to 4, from what is cut to a decision. This lesson is step 5 of the same way, so it starts to count at 5.
#
# ### 5.1 The environment, and a workload that is fixed
#
# To compare layouts, everything else must be the same. So the workload is fixed first: the model and its revision, the tokenizer, global batch and microbatch, sequence length, data type, schedule, world size, topology, warm-up and repeats, the random seed, and the limits of the gates. All fields together give a fingerprint, and two runs with different fingerprints may not be compared.
#
# Predict: does the fingerprint change if only the random seed does?

# %%
EXAMPLES = 'benchmarks/results/par_model_internal'
work = next(iter(read_records(EXAMPLES).values()))['workload']
print(f"{work['name']}: model {work['model']['id']}, tokenizer {work['tokenizer']['id']}")
for keys in (('layers', 'hidden', 'heads', 'kv_heads', 'vocabulary'),
             ('global_batch', 'micro_batch', 'microbatches', 'sequence_length', 'dtype'),
             ('schedule', 'topology', 'warmup', 'repeats', 'seed')):
    print('  ' + ', '.join(f'{key} {work[key]}' for key in keys))
print('  limits', work['limits'])
print('  fingerprint', work['fingerprint'][:16])

# %% [markdown] lang="zh"
# 会变：种子也是字段。示例用的 `tiny-cpu` 很小，任何一台双核机器几秒就能训练。它演练全部流程，它的快慢不代表任何性能。
#
# ### 5.2 多卡与 backend 预检
#
# 启动之前先看这台机器有什么。需要 `torchrun`、DeviceMesh 的接口和 torch ≥ 2.8（更早的版本在 gloo 上跑流水线会挂住）。用 GPU 还需要 CUDA、NCCL，每个 rank 一张卡。完整的表用命令 `parlab bench --preflight`。

# %% [markdown] lang="en"
# It does: the seed is a field too. The examples use `tiny-cpu`, so small that any two cores train it in seconds. It rehearses the whole procedure; its speed says nothing about performance.
#
# ### 5.2 Pre-flight: devices and backend
#
# Before anything starts, see what this machine has. `torchrun`, the DeviceMesh API and torch ≥ 2.8 are needed (older versions hang in pipelines on gloo). GPUs need CUDA and NCCL as well, and one device for each rank. The full table is the command `parlab bench --preflight`.

# %%
version = tuple(int(part) for part in torch.__version__.split('.')[:2])
found = {
    'torch ≥ 2.8': f"{torch.__version__}, {'yes' if version >= (2, 8) else 'too old'}",
    'torchrun': importlib.util.find_spec('torch.distributed.run') is not None,
    'DeviceMesh API': importlib.util.find_spec('torch.distributed.device_mesh') is not None,
    'gloo': torch.distributed.is_available() and torch.distributed.is_gloo_available(),
    'CUDA': torch.cuda.is_available(),
    'NCCL': torch.distributed.is_available() and torch.distributed.is_nccl_available(),
    'visible GPUs': torch.cuda.device_count(),
}
for name, value in found.items():
    text = ('yes' if value else 'no') if type(value) is bool else value
    print(f'▸ {name:<16}{text}')

# %% [markdown] lang="zh"
# ### 5.3 配置 G0 / G1 / G2
#
# G0 是单轴 TP，G1 是单轴 PP，G2 把两者组合起来。另有一个单进程的基线（baseline），它是对错和快慢的尺子，不参加评选。每一组写一份自己的 JSON。
#
# 两个开关：
#
# - `RUN_CPU_REHEARSAL`：在 CPU 上用 gloo 把四组都跑一遍，双核约 1 分钟。没有 GPU 就打开它。
# - `RUN_GPU_EXPERIMENT`：同样的命令，换成 NCCL，每个 rank 一张 GPU。
#
# `command` 不用手写：由组名和网格生成。改 `mesh` 或 `WORLD_SIZE`，命令跟着变；不合法的摆法在启动之前就被拒绝，用的正是第 04 课的 `validate_mesh_layout`。

# %% [markdown] lang="en"
# ### 5.3 Configure G0 / G1 / G2
#
# G0 is TP alone, G1 is PP alone, G2 combines the two. Besides there is a baseline of one process: the yardstick for right and wrong and for speed, and no candidate. Every group writes a JSON of its own.
#
# There are two switches:
#
# - `RUN_CPU_REHEARSAL`: run all four on CPU with gloo, about 1 minute on two cores. Without a GPU, turn on this one.
# - `RUN_GPU_EXPERIMENT`: the same commands with NCCL, one GPU for each rank.
#
# Nobody writes `command` by hand: it is made from the group's name and mesh. Change `mesh` or `WORLD_SIZE` and the command follows; a layout that is not legal is refused before anything starts, by no other than lesson 04's `validate_mesh_layout`.

# %% lang="zh"
# 默认关闭：打开 notebook、全部运行，都不启动进程。
RUN_GPU_EXPERIMENT = False  # True：每个 rank 一张 GPU，用 NCCL
RUN_CPU_REHEARSAL = False  # True：在 CPU 上用 gloo 演练，双核约 1 分钟
WORLD_SIZE = 4
EXPERIMENTS = [
    {'name': 'G0_tp', 'mesh': {'pp': 1, 'tp': 4, 'cp': 1}, 'command': []},
    {'name': 'G1_pp', 'mesh': {'pp': 4, 'tp': 1, 'cp': 1}, 'command': []},
    {'name': 'G2_pp_tp', 'mesh': {'pp': 2, 'tp': 2, 'cp': 1}, 'command': []},
]
RESULT_DIR = 'benchmarks/results/par_model_internal'
for item in EXPERIMENTS:
    item['command'] = bench_command([item], WORLD_SIZE, RESULT_DIR)
print({'run': RUN_GPU_EXPERIMENT, 'world_size': WORLD_SIZE,
       'groups': [item['name'] for item in EXPERIMENTS]})

# %% lang="en"
# Off by default: neither opening the notebook nor Run All starts a process.
RUN_GPU_EXPERIMENT = False  # True: one GPU for each rank, NCCL
RUN_CPU_REHEARSAL = False  # True: rehearse on CPU with gloo, about 1 minute on two cores
WORLD_SIZE = 4
EXPERIMENTS = [
    {'name': 'G0_tp', 'mesh': {'pp': 1, 'tp': 4, 'cp': 1}, 'command': []},
    {'name': 'G1_pp', 'mesh': {'pp': 4, 'tp': 1, 'cp': 1}, 'command': []},
    {'name': 'G2_pp_tp', 'mesh': {'pp': 2, 'tp': 2, 'cp': 1}, 'command': []},
]
RESULT_DIR = 'benchmarks/results/par_model_internal'
for item in EXPERIMENTS:
    item['command'] = bench_command([item], WORLD_SIZE, RESULT_DIR)
print({'run': RUN_GPU_EXPERIMENT, 'world_size': WORLD_SIZE,
       'groups': [item['name'] for item in EXPERIMENTS]})

# %% [markdown] lang="zh"
# 每一组都可以单独在终端里运行（在课程文件夹里，先运行 `. .venv/bin/activate`）：

# %% [markdown] lang="en"
# Each group can also be run by itself in a terminal (in the course's folder, after `. .venv/bin/activate`):

# %%
for item in EXPERIMENTS:
    print(' '.join(item['command']))

# %% [markdown] lang="zh"
# ### 5.4 执行并保存 JSON
#
# 先决定听谁的。做完第 04 课的话，下面会找到你的 notebook，用**你的**三个函数。在云端，把做完的 `04_model_internal_parallel.ipynb` 上传到这个 notebook 旁边，再运行；文件名不一样，就把路径填进 `MY_LESSON_04`。

# %% [markdown] lang="en"
# ### 5.4 Run, and save JSON
#
# First, who decides? If you have finished lesson 04, the next cell finds your notebook and takes **your** three functions. In a hosted runtime, upload your finished `04_model_internal_parallel.ipynb` beside this notebook and run the cell; if the file has another name, put its path into `MY_LESSON_04`.

# %%
MY_LESSON_04 = None  # 'path/to/04_model_internal_parallel.ipynb'
deciders = load_deciders(MY_LESSON_04)
JUDGE, CHOOSE = 'evaluate_internal_parallel_candidate', 'select_internal_parallel_candidate'

# %% [markdown] lang="zh"
# 打开开关再运行下面的单元，会依次发生这些事：
#
# 1. `parlab bench` 检查机器和网格，有问题就一次说完，什么也不启动。
# 2. 每一组先写一份 `failure` 为 unfinished 的记录。这样哪怕断电，也看得出它没有跑完。
# 3. 用 `torchrun` 启动这一组的进程，预热、测量、记录一步的时间线，再和单进程的梯度比较。
# 4. 写下记录，旧记录移到 `history/`；四组都跑完，写 `decision.json`。
#
# 想停就停：按 ■（中断内核），几秒内所有进程都会结束，这一组的记录写着 interrupted。重启内核、关掉浏览器之后内核被收走，也一样。

# %% [markdown] lang="en"
# With a switch on, the next cell does this:
#
# 1. `parlab bench` checks the machine and the meshes. If there are problems it names them all at once and starts nothing.
# 2. Every group first writes a record whose `failure` is unfinished. Even after a power cut it shows that the run did not end.
# 3. `torchrun` starts the group's processes. They warm up, are measured, record the timeline of one step, and compare their gradients with those of one process.
# 4. The record is written, an older one moves to `history/`; after all four, `decision.json` is written.
#
# Stop whenever you like: press ■ (interrupt the kernel). Within seconds every process has ended, and the group's record says interrupted. The same happens when the kernel is restarted, or taken away after you close the browser.

# %%
command = bench_command(EXPERIMENTS, WORLD_SIZE, RESULT_DIR)
ran = run_experiments(command, RUN_GPU_EXPERIMENT, RUN_CPU_REHEARSAL, deciders)

# %% [markdown] lang="zh"
# ### 5.5 读取结果，记录证据
#
# 一份记录有 8 样必须有的东西：`workload`、`hardware`、`mesh`、`metrics`、`artifact`、`failure`、`evidence_level`、`decision`。其中**证据等级**（evidence level）说的是这些数从哪里来，从弱到强：
#
# | 等级 | 从哪里来 | 能说明什么 |
# |---|---|---|
# | `analytic` | 推算，没有运行 | 数量级、趋势 |
# | `cpu_gloo` | 在 CPU 上真的跑了 | 跑得通，算得对，通信量；**不说明 GPU 的快慢** |
# | `gpu_single_node` | 一台机器的 GPU | 这台机器上的快慢 |
# | `gpu_multi_node` | 几台机器的 GPU | 这个集群上的快慢 |
#
# 不同等级的数**永远不放在一起比**。此外，CPU 上 rank 比核还多时，记录写着 `oversubscribed`：进程轮流用核，时间互相掺杂，连组与组的快慢都不能当真。

# %% [markdown] lang="en"
# ### 5.5 Read the results and record the evidence
#
# A record has 8 things that must be there: `workload`, `hardware`, `mesh`, `metrics`, `artifact`, `failure`, `evidence_level`, `decision`. The **evidence level** says where the numbers come from. From weak to strong:
#
# | level | where from | what it can show |
# |---|---|---|
# | `analytic` | computed, nothing ran | orders of magnitude, trends |
# | `cpu_gloo` | really ran, on CPU | that it runs and computes rightly, how much is sent; **nothing about the speed of GPUs** |
# | `gpu_single_node` | GPUs of one machine | the speed on this machine |
# | `gpu_multi_node` | GPUs of several machines | the speed on this cluster |
#
# Numbers of different levels are **never put side by side**. And where ranks outnumber cores on CPU, the record says `oversubscribed`: processes take turns on the cores, their times mix, and not even the order of the groups can be taken seriously.

# %%
records = read_records(RESULT_DIR)
shown = comparable(records)
rows = [('group', 'pp', 'cp', 'tp', 'ranks', 'cores', 'evidence level', 'oversubscribed')]
for record in shown:
    sizes = [str(record['mesh'][axis]) for axis in ('pp', 'cp', 'tp')]
    ranks, cores = record['workload']['world_size'], record['hardware']['cores']
    rows.append((record['name'], *sizes, str(ranks), str(cores), record['evidence_level'],
                 str(record['oversubscribed'])))
print(table(rows))

# %% [markdown] lang="zh"
# 气泡、通信和吞吐并排看。先猜：哪一组的暴露通信最多？4 个进程挤在 2 个核上时，哪一个数最不可信？

# %% [markdown] lang="en"
# Now bubble, communication and throughput side by side. Predict: which group exposes most communication? With 4 processes on 2 cores, which number can be trusted least?

# %%
draw_comparison(shown)
plt.show()

# %% [markdown] lang="zh"
# 红色虚线是上限。G0（TP）每一层都要同步，通信占比最高；G1（PP）只在阶段之间传，通信占比低得多，但有气泡；G2 两样都有一点。吞吐画成浅色，标着 no evidence of speed：它是最不可信的。占比要好一些，可也要先弄清它们是**怎么算出来的**。下面就来算。
#
# #### 一步的时间去了哪里
#
# 下图是 G1 的一步，每行一个 rank。先猜：rank 0 中间那些空白在等什么？

# %% [markdown] lang="en"
# The red dashed lines are limits. G0 (TP) synchronises in every layer and has the highest communication ratio; G1 (PP) sends between stages only and has a much lower one, but it has a bubble; G2 has some of both. Throughput is drawn pale and says "no evidence of speed": it can be trusted least. The ratios are better, but first make sure **how they come about**. That is what comes next.
#
# #### Where the time of a step goes
#
# This is one step of G1, a rank in each row. Predict: what does rank 0 wait for in the gaps in the middle?

# %%
pipeline, timeline = pipeline_group(RESULT_DIR, shown)
draw_timeline(pipeline, timeline)
plt.show()

# %% [markdown] lang="zh"
# 它在等后面的阶段把梯度传回来：这就是气泡。这张图由记录里的事件算出来，算法就是 TODO 1。
#
# 先看一个手工搭的小例子，一个 rank 的 40 毫秒。上面一行是计算块（F 前向，B 反向，O 优化器）；中间一行的黑线是通信从发起到完成，红色方块是这个 rank 被它**挡住**（blocked）、什么也干不了的时间，三角是对方发起传输的时刻；下面一行是应得的四部分。
#
# 先猜三处，再对照下面一行：一开始等了 8 毫秒，其中多少算空转？19 到 26 毫秒之间有一次通信在传，它算暴露吗？18 到 19 毫秒什么都没有，算什么？

# %% [markdown] lang="en"
# It waits for the later stages to send gradients back: the bubble. The picture is computed from the events in the record, and how is TODO 1.
#
# First a small example made by hand, 40 ms of one rank. The top lane shows compute chunks (F forward, B backward, O optimizer). In the middle lane a black line is a communication from its post to its end, a red box is the time for which it **blocks** the rank, so that it can do nothing else, and a triangle is the moment when the peer posts its half. The bottom lane holds the four parts as they should be.
#
# Guess three places, then compare with the bottom lane: it first waits for 8 ms; how many of these are idle? A communication is in flight between 19 and 26 ms; is it exposed? There is nothing between 18 and 19 ms; what does that count as?

# %%
EVENTS = [
    {'kind': 'p2p', 'operation': 'recv', 'start': 0, 'peer_start': 6, 'end': 8,
     'blocked': [[0, 8]]},
    {'kind': 'compute', 'name': 'F', 'start': 8, 'end': 18},
    {'kind': 'collective', 'operation': 'all_reduce', 'start': 12, 'end': 15,
     'blocked': [[12, 15]]},
    {'kind': 'compute', 'name': 'B', 'start': 19, 'end': 26},
    {'kind': 'collective', 'operation': 'all_reduce', 'start': 19, 'end': 27,
     'blocked': [[26, 27]]},
    {'kind': 'p2p', 'operation': 'send', 'start': 27, 'peer_start': 31, 'end': 32,
     'blocked': [[27, 32]]},
    {'kind': 'compute', 'name': 'O', 'start': 32, 'end': 36},
]
draw_rank_step(EVENTS, (0, 40), BY_HAND, 'one rank, made by hand | no measurement')
for part, spans in BY_HAND.items():
    print(f'{part:<8}{total(spans):>3} ms  {spans}')

# %% [markdown] lang="zh"
# - 对方第 6 毫秒才发起，在那之前没有东西可传：0 到 6 是空转（idle），6 到 8 才是传输。
# - 19 到 26 的通信有反向计算盖着，不算暴露（exposed）；到 26 计算完了它还没传完，那 1 毫秒才算。
# - 18 到 19 既没有计算也没有通信，夹在工作中间：是主机的开销，算其他（other）。
#
# #### 四件工具
#
# 时间的集合用区间的列表表示。四个现成的函数：`union` 合并（可以嵌套、重叠、长度为 0），`minus` 相减，`within` 截取两个时刻之间的部分，`total` 求总长。前三个的结果都是排好序、互不重叠的 `(开始, 结束)` 列表；`minus` 的两个参数都要先经过 `union`。先猜每一行的输出。

# %% [markdown] lang="en"
# - The peer posts at 6 ms, and before that there is nothing to send: 0 to 6 is idle, only 6 to 8 is the transfer.
# - The communication from 19 to 26 is covered by backward compute, so it is not exposed; at 26 the compute ends before the communication does, and only that last 1 ms counts.
# - Between 18 and 19 there is neither compute nor communication, in the middle of work: the host's overhead, other.
#
# #### Four tools
#
# A set of time is a list of intervals. Four functions are there for you: `union` joins (they may nest, overlap or have length 0), `minus` subtracts, `within` takes what lies between two moments, `total` adds up the length. The first three give sorted `(start, end)` lists without overlaps; both arguments of `minus` must have been through `union`. Guess what each line prints.

# %%
busy = union([(0, 4), (2, 6), (9, 9), (10, 14)])
print('union ', busy)
print('minus ', minus(busy, [(1, 3), (12, 20)]))
print('within', within(busy, 5, 12))
print('total ', total(busy))

# %% [markdown] lang="zh"
# ### TODO 1：把一个 rank 的一步拆成四部分
#
# `split_rank_step(events, step)` 返回 `{'compute': [...], 'exposed': [...], 'idle': [...], 'other': [...]}`，每一项是区间的列表。`step` 是 `(开始, 结束)`，只看这段时间。事件的格式和上面的 `EVENTS` 一样：
#
# | `kind` | 用到的键 | 意思 |
# |---|---|---|
# | `compute` | `start`、`end` | 一个计算块；计算块可以嵌套、重叠 |
# | `collective`、`ring` | `blocked` | 集合通信，或环上的一次传递；`blocked` 是它挡住这个 rank 的区间，可以有好几段，也可以没有 |
# | `p2p` | `start`、`peer_start`、`blocked` | 流水线传输；`start` 是这边发起的时刻，`peer_start` 是对方发起的时刻 |
#
# 规则：
#
# 1. **传输的开始**：两边发起时刻中**较晚**的那个。
# 2. **暴露**（exposed）：`collective` 和 `ring` 的全部 `blocked`，加上 `p2p` 的 `blocked` 里传输开始**之后**的部分。只是在传、没有挡住谁的通信不算。
# 3. **等待**：`p2p` 的 `blocked` 里传输开始**之前**的部分。同一时刻如果另有通信暴露着，算暴露，不算等待。
# 4. **计算**（compute）：计算块里既不暴露、也不等待的时间。
# 5. **空转**（idle）：等待，加上第一份工作之前、最后一份工作之后的时间。工作指计算或暴露。一点工作都没有的 rank，整步都是空转。
# 6. **其他**（other）：剩下的。
#
# 四部分互不重叠，合起来正好是一步。不要改动输入。
#
# <details><summary>提示 1：方向</summary>
#
# 先只做收集：走一遍事件，把时间分到三个列表里：计算块、暴露的、等待的。后两个只看 blocked：没有挡住这个 rank，就都不是；p2p 挡住的时间算哪一个，由传输的开始决定。优先级在收集完之后再处理。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 每个列表先 union，再用 within 截到这一步里。按规则的顺序往下减：暴露谁也不让，等待减去暴露，计算减去前两者。空转的两头需要知道第一份和最后一份工作在哪里，把计算和暴露合并就有了。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 一次 p2p 的 blocked 用 within 切成两截：从一步的开始到传输的开始是等待，从传输的开始到一步的结束是暴露。没有任何工作时，合并的结果是空列表，不能取它的第一项。其他等于整步减去工作与空转的并集。
# </details>

# %% [markdown] lang="en"
# ### TODO 1: split a rank's step into four parts
#
# `split_rank_step(events, step)` returns `{'compute': [...], 'exposed': [...], 'idle': [...], 'other': [...]}`, each a list of intervals. `step` is `(start, end)`; only this time counts. Events look like those in `EVENTS` above:
#
# | `kind` | keys that matter | meaning |
# |---|---|---|
# | `compute` | `start`, `end` | a chunk of compute; chunks may nest and overlap |
# | `collective`, `ring` | `blocked` | a collective, or one shift of a ring; `blocked` holds the intervals in which it blocks this rank: several, one or none |
# | `p2p` | `start`, `peer_start`, `blocked` | a pipeline transfer; `start` is when this side posted it, `peer_start` when the peer did |
#
# The rules:
#
# 1. **A transfer begins** at the **later** of its two posts.
# 2. **Exposed**: all of `blocked` of a `collective` or `ring`, and what lies in `blocked` of a `p2p` **after** its transfer began. Communication that is merely in flight and blocks nobody does not count.
# 3. **Waiting**: what lies in `blocked` of a `p2p` **before** its transfer began. Where other communication is exposed at the same moment, it is exposed and not waiting.
# 4. **Compute**: time in a chunk of compute that is neither exposed nor waiting.
# 5. **Idle**: waiting, and the time before the first and after the last work. Work is compute or exposed. A rank without any work is idle for the whole step.
# 6. **Other**: what is left.
#
# The four parts share no time and together are exactly the step. Do not change the input.
#
# <details><summary>Hint 1: direction</summary>
#
# First only collect: go through the events and put time into three lists: chunks of compute, exposed, waiting. For the last two only blocked counts: what does not block this rank is neither; which of the two the blocked time of a p2p is depends on when the transfer begins. Deal with priorities when everything is collected.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Each list goes through union and is then cut to the step by within. Then subtract in the order of the rules: exposed yields to nobody, waiting loses what is exposed, compute loses both. The two edges of idle need the first and the last work: join compute and exposed.
# </details>
# <details><summary>Hint 3: details</summary>
#
# Cut the blocked intervals of a p2p in two by within: from the step's start to the transfer's beginning they wait, from the transfer's beginning to the step's end they are exposed. Without any work the joined list is empty and has no first item. Other is the whole step minus the union of work and idle.
# </details>

# %% lang="zh"
# TODO 1 · split_rank_step
def split_rank_step(events, step):
    """把一个 rank 的一步拆成 compute、exposed、idle、other 四部分，每部分是区间的列表。"""
    start, end = step
    # TODO 1：收集计算、暴露、等待（后两种只看 blocked），按优先级相减；剩下的是 other。
    # compute, exposed, idle, other = ???
    # BEGIN SOLUTION
    busy, blocking, waiting = [], [], []
    for event in events:
        if event['kind'] == 'compute':
            busy.append((event['start'], event['end']))
        elif event['kind'] == 'p2p':
            begin = max(event['start'], event['peer_start'])
            waiting += within(event['blocked'], start, begin)
            blocking += within(event['blocked'], begin, end)
        else:
            blocking += event['blocked']
    exposed = within(union(blocking), start, end)
    waited = minus(within(union(waiting), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    other = minus([step], union(work + idle))
    # END SOLUTION
    return {'compute': compute, 'exposed': exposed, 'idle': idle, 'other': other}

# %% lang="en"
# TODO 1 · split_rank_step
def split_rank_step(events, step):
    """Split a rank's step into compute, exposed, idle and other: a list of intervals each."""
    start, end = step
    # TODO 1: collect compute, exposed, waiting (the last two: only blocked); subtract; other is left.
    # compute, exposed, idle, other = ???
    # BEGIN SOLUTION
    busy, blocking, waiting = [], [], []
    for event in events:
        if event['kind'] == 'compute':
            busy.append((event['start'], event['end']))
        elif event['kind'] == 'p2p':
            begin = max(event['start'], event['peer_start'])
            waiting += within(event['blocked'], start, begin)
            blocking += within(event['blocked'], begin, end)
        else:
            blocking += event['blocked']
    exposed = within(union(blocking), start, end)
    waited = minus(within(union(waiting), start, end), exposed)
    compute = minus(within(union(busy), start, end), union(exposed + waited))
    work = union(compute + exposed)
    first, last = (work[0][0], work[-1][1]) if work else (end, end)
    idle = minus(union([*waited, (start, first), (last, end)]), work)
    other = minus([step], union(work + idle))
    # END SOLUTION
    return {'compute': compute, 'exposed': exposed, 'idle': idle, 'other': other}

# %% lang="zh"
# CHECK 1
with check_todo(1, 'split_rank_step', measured=True) as call:
    from parlab.lesson.trace_cases import (
        agrees,
        all_of,
        collective,
        compute,
        p2p,
        parts,
        traces,
        untidy,
    )
    call.shown = all_of
    ring = {**collective(2, 6, [4, 6]), 'kind': 'ring'}
    f, ten = compute(0, 10), (0, 10)
    for events, step, expected, rule in [
        ([f], ten, parts(compute=[[0, 10]]), '一个计算块占满一步'),
        ([compute(0, 4), compute(7, 10)], ten, parts(compute=[[0, 4], [7, 10]], other=[[4, 7]]),
         '夹在工作之间、什么都没有：其他'),
        ([compute(3, 6)], ten, parts(compute=[[3, 6]], idle=[[0, 3], [6, 10]]),
         '第一份工作之前、最后一份之后：空转'),
        ([compute(0, 8), compute(2, 5), compute(6, 10)], ten, parts(compute=[[0, 10]]),
         '嵌套、重叠的计算块只算一次'),
        ([compute(0, 3), compute(5, 5), collective(6, 6, [6, 6]), compute(7, 10)], ten,
         parts(compute=[[0, 3], [7, 10]], other=[[3, 7]]), '长度为 0 的区间不占时间'),
        ([f, collective(4, 8, [4, 6])], ten, parts(compute=[[0, 4], [6, 10]], exposed=[[4, 6]]),
         '4 到 8 都在传，只有 blocked 的 4 到 6 是暴露，它不再算计算'),
        ([f, collective(2, 9)], ten, parts(compute=[[0, 10]]),
         '没有 blocked：被计算盖住，不算暴露'),
        ([f, collective(2, 9, [2, 3], [7, 9])], ten,
         parts(compute=[[0, 2], [3, 7], [9, 10]], exposed=[[2, 3], [7, 9]]),
         'blocked 可以有好几段'),
        ([compute(0, 8), ring], (0, 8), parts(compute=[[0, 4], [6, 8]], exposed=[[4, 6]]),
         'ring 和 collective 一样'),
        ([compute(0, 2), p2p(2, 9, 6, [2, 9]), compute(9, 10)], ten,
         parts(compute=[[0, 2], [9, 10]], idle=[[2, 6]], exposed=[[6, 9]]),
         '传输在 max(2, 6) = 6 开始：之前是空转，之后是暴露'),
        ([compute(0, 2), p2p(2, 5, -3, [2, 5]), compute(5, 10)], ten,
         parts(compute=[[0, 2], [5, 10]], exposed=[[2, 5]]),
         '对方在 -3 就发起了，传输在 max(2, -3) = 2 开始：全是暴露'),
        ([f, p2p(3, 9, 8, [3, 7])], ten, parts(compute=[[0, 3], [7, 10]], idle=[[3, 7]]),
         '计算块里等对方的时间是空转，不是计算'),
        ([compute(0, 2), p2p(2, 9, 9, [2, 8]), collective(3, 5, [3, 5]), compute(8, 10)], ten,
         parts(compute=[[0, 2], [8, 10]], idle=[[2, 3], [5, 8]], exposed=[[3, 5]]),
         '3 到 5 又在等、又有别的通信暴露：算暴露'),
        ([collective(2, 4, [2, 4]), compute(6, 8)], ten,
         parts(compute=[[6, 8]], exposed=[[2, 4]], idle=[[0, 2], [8, 10]], other=[[4, 6]]),
         '暴露的通信也是工作：4 到 6 夹在工作之间'),
        ([compute(-5, 3), collective(8, 15, [9, 15])], ten,
         parts(compute=[[0, 3]], exposed=[[9, 10]], other=[[3, 9]]), '只看 0 到 10 之间的时间'),
        ([p2p(1, 8, 8, [1, 8])], ten, parts(idle=[[0, 10]]), '没有任何工作：整步都是空转'),
        ([], (5, 9), parts(idle=[[5, 9]]), '没有事件：整步都是空转'),
    ]:
        got = call(events, step)
        assert not untidy(got), call.wrong(
            '每一部分是 (开始, 结束) 的列表，互不重叠', '像 union 给出的那样', untidy(got))
        assert agrees(got, expected), call.wrong(rule, expected)

    for events, step, expected in traces():  # 各种组合，先短后长，事件的先后打乱
        assert agrees(call(events, step), expected), call.wrong(
            '按 6 条规则拆开，四部分合起来正好是一步', expected)

# %% lang="en"
# CHECK 1
with check_todo(1, 'split_rank_step', measured=True) as call:
    from parlab.lesson.trace_cases import (
        agrees,
        all_of,
        collective,
        compute,
        p2p,
        parts,
        traces,
        untidy,
    )
    call.shown = all_of
    ring = {**collective(2, 6, [4, 6]), 'kind': 'ring'}
    f, ten = compute(0, 10), (0, 10)
    for events, step, expected, rule in [
        ([f], ten, parts(compute=[[0, 10]]), 'one chunk of compute fills the step'),
        ([compute(0, 4), compute(7, 10)], ten, parts(compute=[[0, 4], [7, 10]], other=[[4, 7]]),
         'between work and nothing there: other'),
        ([compute(3, 6)], ten, parts(compute=[[3, 6]], idle=[[0, 3], [6, 10]]),
         'before the first work and after the last: idle'),
        ([compute(0, 8), compute(2, 5), compute(6, 10)], ten, parts(compute=[[0, 10]]),
         'nested and overlapping chunks count once'),
        ([compute(0, 3), compute(5, 5), collective(6, 6, [6, 6]), compute(7, 10)], ten,
         parts(compute=[[0, 3], [7, 10]], other=[[3, 7]]), 'an interval of length 0 takes no time'),
        ([f, collective(4, 8, [4, 6])], ten, parts(compute=[[0, 4], [6, 10]], exposed=[[4, 6]]),
         'in flight from 4 to 8, exposed only while blocked, 4 to 6; that is no compute'),
        ([f, collective(2, 9)], ten, parts(compute=[[0, 10]]),
         'not blocked: covered, not exposed'),
        ([f, collective(2, 9, [2, 3], [7, 9])], ten,
         parts(compute=[[0, 2], [3, 7], [9, 10]], exposed=[[2, 3], [7, 9]]),
         'blocked may have several'),
        ([compute(0, 8), ring], (0, 8), parts(compute=[[0, 4], [6, 8]], exposed=[[4, 6]]),
         'ring counts as collective does'),
        ([compute(0, 2), p2p(2, 9, 6, [2, 9]), compute(9, 10)], ten,
         parts(compute=[[0, 2], [9, 10]], idle=[[2, 6]], exposed=[[6, 9]]),
         'the transfer begins at max(2, 6) = 6: idle before, exposed after'),
        ([compute(0, 2), p2p(2, 5, -3, [2, 5]), compute(5, 10)], ten,
         parts(compute=[[0, 2], [5, 10]], exposed=[[2, 5]]),
         'the peer posted at -3, so the transfer begins at max(2, -3) = 2: all exposed'),
        ([f, p2p(3, 9, 8, [3, 7])], ten, parts(compute=[[0, 3], [7, 10]], idle=[[3, 7]]),
         'waiting for the peer within a chunk is idle, not compute'),
        ([compute(0, 2), p2p(2, 9, 9, [2, 8]), collective(3, 5, [3, 5]), compute(8, 10)], ten,
         parts(compute=[[0, 2], [8, 10]], idle=[[2, 3], [5, 8]], exposed=[[3, 5]]),
         '3 to 5 it waits while other communication is exposed: exposed'),
        ([collective(2, 4, [2, 4]), compute(6, 8)], ten,
         parts(compute=[[6, 8]], exposed=[[2, 4]], idle=[[0, 2], [8, 10]], other=[[4, 6]]),
         'exposed communication is work too: 4 to 6 lies between work'),
        ([compute(-5, 3), collective(8, 15, [9, 15])], ten,
         parts(compute=[[0, 3]], exposed=[[9, 10]], other=[[3, 9]]),
         'only the time from 0 to 10 counts'),
        ([p2p(1, 8, 8, [1, 8])], ten, parts(idle=[[0, 10]]),
         'no work at all: idle for the whole step'),
        ([], (5, 9), parts(idle=[[5, 9]]), 'no event: idle for the whole step'),
    ]:
        got = call(events, step)
        assert not untidy(got), call.wrong(
            'each part is a list of (start, end) without overlaps', 'as of union', untidy(got))
        assert agrees(got, expected), call.wrong(rule, expected)

    for events, step, expected in traces():  # all kinds of combinations, short ones first
        assert agrees(call(events, step), expected), call.wrong(
            'split by the 6 rules, so that the four parts are exactly the step', expected)

# %% [markdown] lang="zh"
# #### 用你的函数读真实的时间线
#
# 记录里存着 G1 每个 rank 的原始事件。现在用**你的**函数把它们拆开，再和基准程序写进记录的数对照。先猜：哪个 rank 的空转最多？

# %% [markdown] lang="en"
# #### Your function on a real timeline
#
# The record keeps the raw events of every rank of G1. Split them with **your** function and compare with the numbers that the benchmark wrote. Predict: which rank is idle most?

# %%
if ready('split_rank_step'):
    step = (0.0, timeline['step_ms'])
    mine = {row['rank']: split_rank_step(row['events'], step) for row in timeline['trace']}
    rows = [('rank', 'compute', 'exposed', 'idle', 'other', 'in the record: compute, idle')]
    for row in pipeline['metrics']['parts_ms']:
        lengths = [f'{total(spans):.1f}' for spans in mine[row['rank']].values()]
        rows.append((str(row['rank']), *lengths, f"{row['compute']:.1f}, {row['idle']:.1f}"))
    print(table(rows))
    drawn = [{'rank': rank, **spans} for rank, spans in mine.items()]
    draw_timeline(pipeline, {**timeline, 'ranks': drawn})
    plt.show()

# %% [markdown] lang="zh"
# 数字一致，图也和上面那张一样：基准程序测量用的就是这个函数，它从本课的参考答案里加载，没有第二份。
#
# ### 从几个 rank 到两个占比
#
# 一个 rank 只知道自己。要说“这一步的气泡占比”，先要知道**一步从哪里到哪里**：从最先开始的 rank 的开始，到最后结束的 rank 的结束。早结束的 rank 要等别人做完这一步，才能开始下一步，这段时间也是空转。
#
# 还有一个陷阱：几台机器的时钟不一样。每个 rank 报告自己时钟上的时刻，外加一个 `clock_offset`：自己的时刻**加上**它，就是 rank 0 的时钟。
#
# 下图左边是 3 个 rank 各自的时钟，右边换到了同一个时钟上。先猜：左边看起来一步有多长？实际呢？

# %% [markdown] lang="en"
# The numbers agree, and the picture is the one above: the benchmark measures with this very function, loaded from this lesson's reference solution. There is no second copy.
#
# ### From several ranks to two ratios
#
# A rank knows only itself. To speak of "the bubble ratio of this step", first say **from where to where a step runs**: from the start of the rank that starts first to the end of the rank that ends last. A rank that ends early cannot start the next step before the others have ended this one, and that time is idle too.
#
# And there is a trap: the clocks of several machines differ. Every rank reports moments on its own clock, and a `clock_offset`: its own moment **plus** the offset is a moment on rank 0's clock.
#
# On the left the own clocks of 3 ranks, on the right the same on one clock. Predict: how long does the step seem on the left? And how long is it?

# %%
own, shared = [(0, 90), (-480, -400), (1010, 1100)], [(0, 90), (20, 100), (10, 100)]
draw_clocks(own, shared, 'three ranks, made by hand | no measurement')
for name, windows in (('own clocks', own), ('one clock', shared)):
    length = max(end for _, end in windows) - min(start for start, _ in windows)
    print(f'{name}: {length} ms from the first start to the last end')

# %% [markdown] lang="zh"
# 时钟差了 0.5 到 1.5 秒，一步只有 0.1 秒：不先对齐时钟，占比全是错的。
#
# ### TODO 2：气泡占比与通信占比
#
# `step_ratios(ranks)` 的每个 rank 是一个字典：
#
# | 键 | 意思 |
# |---|---|
# | `start`、`end` | 这个 rank 的一步，在自己的时钟上 |
# | `clock_offset` | 加上它就是 rank 0 的时钟 |
# | `compute`、`exposed`、`idle`、`other` | 从自己的 `start` 到自己的 `end`，四部分各多长 |
#
# 返回 `{'step': ..., 'bubble_ratio': ..., 'communication_ratio': ...}`：
#
# 1. `step` 是一步的长度：同一个时钟上，从最先的开始到最后的结束。
# 2. 一个 rank 在 `step` 里的空转，是它的 `idle`，加上开始之前和结束之后等别人的时间。
# 3. `bubble_ratio` 是各个 rank 的空转除以 `step`，再对 rank 求平均；`communication_ratio` 是暴露通信除以 `step`，再求平均。
#
# <details><summary>提示 1：方向</summary>
#
# 分三步：对齐时钟，找到一步的起止，再算每个 rank。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 先做两个列表：对齐以后的开始，对齐以后的结束。一个取最小，一个取最大，相减就是一步的长度。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 求平均是除以 rank 的个数。分母是整步的长度，不是这个 rank 自己的窗口，也不是它的计算时间。不要把结果取整。
# </details>

# %% [markdown] lang="en"
# The clocks are 0.5 to 1.5 s apart, the step is 0.1 s long: without aligning the clocks every ratio is wrong.
#
# ### TODO 2: bubble ratio and communication ratio
#
# In `step_ratios(ranks)` each rank is a dict:
#
# | key | meaning |
# |---|---|
# | `start`, `end` | this rank's step, on its own clock |
# | `clock_offset` | added, it gives rank 0's clock |
# | `compute`, `exposed`, `idle`, `other` | how long the four parts are, from its own `start` to its own `end` |
#
# Return `{'step': ..., 'bubble_ratio': ..., 'communication_ratio': ...}`:
#
# 1. `step` is the length of the step: on one clock, from the first start to the last end.
# 2. A rank's idle time within `step` is its `idle`, and the time it waits for others before it starts and after it ends.
# 3. `bubble_ratio` is each rank's idle time over `step`, averaged over the ranks; `communication_ratio` is exposed communication over `step`, averaged.
#
# <details><summary>Hint 1: direction</summary>
#
# There are three steps: align the clocks, find where the step begins and ends, then look at each rank.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Make two lists first: the aligned starts and the aligned ends. Take the least of one and the greatest of the other; their difference is the length of the step.
# </details>
# <details><summary>Hint 3: details</summary>
#
# To average, divide by the number of ranks. The denominator is the length of the whole step, not this rank's own window and not its compute time. Do not round.
# </details>

# %% lang="zh"
# TODO 2 · step_ratios
def step_ratios(ranks):
    """几个 rank 合起来的一步：多长，气泡占比和通信占比各是多少。"""
    # TODO 2：先放到同一个时钟上，再找一步的起止，最后对 rank 求平均。
    # length, bubble_ratio, communication_ratio = ???
    # BEGIN SOLUTION
    windows = [(r['start'] + r['clock_offset'], r['end'] + r['clock_offset']) for r in ranks]
    first = min(start for start, _ in windows)
    last = max(end for _, end in windows)
    length = last - first
    idle = [
        rank['idle'] + (start - first) + (last - end)
        for rank, (start, end) in zip(ranks, windows)
    ]
    bubble_ratio = sum(idle) / len(ranks) / length
    communication_ratio = sum(rank['exposed'] for rank in ranks) / len(ranks) / length
    # END SOLUTION
    return {'step': length, 'bubble_ratio': bubble_ratio,
            'communication_ratio': communication_ratio}

# %% lang="en"
# TODO 2 · step_ratios
def step_ratios(ranks):
    """The step of several ranks: how long it is, its bubble and communication ratios."""
    # TODO 2: put all on one clock, find where the step begins and ends, average over the ranks.
    # length, bubble_ratio, communication_ratio = ???
    # BEGIN SOLUTION
    windows = [(r['start'] + r['clock_offset'], r['end'] + r['clock_offset']) for r in ranks]
    first = min(start for start, _ in windows)
    last = max(end for _, end in windows)
    length = last - first
    idle = [
        rank['idle'] + (start - first) + (last - end)
        for rank, (start, end) in zip(ranks, windows)
    ]
    bubble_ratio = sum(idle) / len(ranks) / length
    communication_ratio = sum(rank['exposed'] for rank in ranks) / len(ranks) / length
    # END SOLUTION
    return {'step': length, 'bubble_ratio': bubble_ratio,
            'communication_ratio': communication_ratio}

# %% lang="zh"
# CHECK 2
with check_todo(2, 'step_ratios', measured=True) as call:
    from parlab.lesson.nearly import nearly
    from parlab.lesson.trace_cases import a_rank, groups
    one, two = a_rank(0, 100, (80, 10, 8, 2)), a_rank(0, 100, (50, 20, 28, 2))
    late, early = a_rank(20, 100, (60, 10, 10, 0)), a_rank(0, 60, (50, 5, 4, 1))
    far = a_rank(-980, -900, (60, 10, 10, 0), clock_offset=1000)
    # 1F1B，p = 4，m = 8，每个微批次前向 10、反向 20；rank i 晚开始 10i，早结束 20i
    pipeline = [a_rank(10 * i, 330 - 20 * i, (240, 0, 90 - 30 * i, 0)) for i in range(4)]
    for ranks, step, bubble, communication, rule in [
        ([one], 100, 8 / 100, 10 / 100, '一个 rank：idle / step 和 exposed / step'),
        ([one, two], 100, (8 + 28) / 200, (10 + 20) / 200,
         '对 2 个 rank 求平均，不是相加，也不是取最大'),
        ([one, late], 100, (8 + 10 + 20) / 200, 20 / 200, '晚开始 20：在那之前也是空转'),
        ([one, early], 100, (8 + 4 + 40) / 200, 15 / 200, '早结束 40：在那之后也是空转'),
        ([one, far], 100, (8 + 10 + 20) / 200, 20 / 200, '-980 + 1000 = 20：先加上 clock_offset'),
        ([late, early], 100, (30 + 44) / 200, 15 / 200, '最先开始和最后结束的可以是不同的 rank'),
        (pipeline, 330, 3 / 11, 0.0, '气泡占比是 (p − 1) / (m + p − 1) = 3 / 11，占总时间的比例'),
    ]:
        expected = {'step': step, 'bubble_ratio': bubble, 'communication_ratio': communication}
        assert nearly(call(ranks), expected), call.wrong(rule, expected)

    for ranks, expected in groups():  # 1 到 5 个 rank，时钟各不相同
        assert nearly(call(ranks), expected), call.wrong(
            '同一个时钟，整步做分母，对 rank 求平均', expected)

# %% lang="en"
# CHECK 2
with check_todo(2, 'step_ratios', measured=True) as call:
    from parlab.lesson.nearly import nearly
    from parlab.lesson.trace_cases import a_rank, groups
    one, two = a_rank(0, 100, (80, 10, 8, 2)), a_rank(0, 100, (50, 20, 28, 2))
    late, early = a_rank(20, 100, (60, 10, 10, 0)), a_rank(0, 60, (50, 5, 4, 1))
    far = a_rank(-980, -900, (60, 10, 10, 0), clock_offset=1000)
    # 1F1B, p = 4, m = 8, microbatch 10 forward, 20 backward; rank i: 10i late, 20i early
    pipeline = [a_rank(10 * i, 330 - 20 * i, (240, 0, 90 - 30 * i, 0)) for i in range(4)]
    for ranks, step, bubble, communication, rule in [
        ([one], 100, 8 / 100, 10 / 100, 'one rank: idle / step and exposed / step'),
        ([one, two], 100, (8 + 28) / 200, (10 + 20) / 200,
         'averaged over 2 ranks, not summed, not the largest'),
        ([one, late], 100, (8 + 10 + 20) / 200, 20 / 200,
         'starts 20 late: idle before that as well'),
        ([one, early], 100, (8 + 4 + 40) / 200, 15 / 200, 'ends 40 early: idle after that as well'),
        ([one, far], 100, (8 + 10 + 20) / 200, 20 / 200,
         '-980 + 1000 = 20: add clock_offset first'),
        ([late, early], 100, (30 + 44) / 200, 15 / 200,
         'first to start and last to end may be different ranks'),
        (pipeline, 330, 3 / 11, 0.0,
         'the bubble is (p − 1) / (m + p − 1) = 3 / 11, a share of total time'),
    ]:
        expected = {'step': step, 'bubble_ratio': bubble, 'communication_ratio': communication}
        assert nearly(call(ranks), expected), call.wrong(rule, expected)

    for ranks, expected in groups():  # 1 to 5 ranks, each on a clock of its own
        assert nearly(call(ranks), expected), call.wrong(
            'one clock, the whole step as denominator, averaged over the ranks', expected)

# %% [markdown] lang="zh"
# #### 测到的气泡和公式差多少
#
# 现在你的两个函数合起来，就能从原始事件算出记录里的占比。旁边是第 04 课的公式 (p − 1) / (m + p − 1)。先猜：真实的气泡会比公式大还是小？

# %% [markdown] lang="en"
# #### How far is the measured bubble from the formula
#
# Together your two functions make the record's ratios from raw events. Beside them stands lesson 04's formula (p − 1) / (m + p − 1). Predict: is the real bubble larger or smaller than the formula says?

# %%
if ready('split_rank_step', 'step_ratios'):
    rows = [('group', 'bubble', 'in the record', 'formula', 'communication', 'in the record')]
    for record in shown:
        ranks = []
        for row in (read_timeline(RESULT_DIR, record) or {'trace': []})['trace']:
            spans = split_rank_step(row['events'], (row['start'], row['end']))
            lengths = {part: total(times) for part, times in spans.items()}
            ranks.append({'start': row['start'], 'end': row['end'], 'clock_offset': 0, **lengths})
        if not ranks:
            continue  # no timeline: a group that failed, or one that a twin does not carry
        got, metrics = step_ratios(ranks), record['metrics']
        p, m = record['mesh']['pp'], record['workload']['microbatches']
        rows.append((record['name'], f"{got['bubble_ratio']:.3f}", f"{metrics['bubble_ratio']:.3f}",
                     f'{(p - 1) / (m + p - 1):.3f}', f"{got['communication_ratio']:.3f}",
                     f"{metrics['communication_ratio']:.3f}"))
    print(table(rows))

# %% [markdown] lang="zh"
# 占比对得上记录，也离公式不远。差别有来处：公式假设每个阶段一样快、传输不花时间；真实的最后一个阶段多一个 LM head，传输要时间，这里还有 4 个进程抢 2 个核。
#
# ### 一份诚实的记录
#
# 数有了，还要说清它值多少。四种常见的不诚实，都不是故意的：
#
# - 没测到的写成 0。0 毫秒的气泡是个好成绩，“没测”不是。没有测到的写 None，并写明**原因**。
# - 失败的一组不留记录。后来的人会以为没试过。
# - 把 CPU 上的快慢当成 GPU 的。
# - 拿不同来源的数算比值。扩展效率（scaling efficiency）是吞吐除以“rank 数 × 单进程吞吐”；单进程那次如果是别的工作负载、别的证据等级，比值没有意义。
#
# 真实的例子：Llama 3 405B（arXiv 2407.21783 表 4）用 8,192 张 GPU 时每张 430 TFLOP/s，用 16,384 张时每张 400。别人发表的数，等级是 `gpu_multi_node`；两次的批次大小也写明了，所以能比。先猜：翻一倍的扩展效率是多少？

# %% [markdown] lang="en"
# The ratios agree with the record and are not far from the formula. The difference has its reasons: the formula takes all stages to be equally fast and transfers to be free; in reality the last stage has the LM head too, transfers take time, and here 4 processes compete for 2 cores.
#
# ### An honest record
#
# The numbers are there; now say what they are worth. Four ways of being dishonest are common, and none is meant:
#
# - What was not measured is written as 0. A bubble of 0 ms is a fine result, "not measured" is none. Write None, and write down the **reason**.
# - A group that failed leaves no record. Whoever comes later thinks that nobody tried.
# - Speed on CPU is taken for speed on GPUs.
# - Ratios are made of numbers from different sources. Scaling efficiency is throughput over "ranks × throughput of one process"; if that process ran another workload, or at another evidence level, the ratio means nothing.
#
# A real example: Llama 3 405B (arXiv 2407.21783, Table 4) reaches 430 TFLOP/s a GPU on 8,192 GPUs and 400 on 16,384. These are others' published numbers at level `gpu_multi_node`; the batch sizes of both runs are given, so they can be compared. Predict: how efficient is doubling the number of GPUs?

# %%
published = {8_192: 430, 16_384: 400}  # GPUs: TFLOP/s a GPU, sequence 8,192
print(f'{published[16_384] / published[8_192]:.2f} of what a perfect doubling would give')

# %% [markdown] lang="zh"
# ### TODO 3：把一次运行写成记录
#
# `complete_record(run, baseline, judge)` 拿到一次运行的原始材料，返回完整的记录。`run` 里已经有 `name`、`workload`、`hardware`、`mesh`、`metrics`、`artifact`、`failure`、`reasons`；你来补 4 样。单元里已经取好了要用的东西，最后几行把你的结果放进记录。
#
# 1. **等级** `level`：`machine['device']` 是 `'cpu'`，就是 `'cpu_gloo'`；是 `'cuda'`，看 `machine['nodes']`：1 台机器是 `'gpu_single_node'`，多台是 `'gpu_multi_node'`；是 None，说明没有运行，是 `'analytic'`。**拥挤** `crowded`（bool）：在 CPU 上运行，并且 rank 数大于 `machine['cores'] * machine['nodes']`（`cores` 是一台机器的）。
# 2. **扩展效率**：把 `metrics['scaling_efficiency']` 设为 `speed['median']` 除以（rank 数 × 基线的 `['metrics']['throughput']['median']`）。只有这几条都成立才能算，否则保持 None：这次测到了吞吐；有基线（`baseline` 不是 None）；基线没有失败；基线的 `evidence_level` 等于 `level`；基线的 `['workload']['fingerprint']` 和这次相同。
# 3. **原因**：`metrics` 里每一个是 None 的值，在 `record['reasons']` 里要有键 `'metrics.名字'`。已经有原因的保留原样；没有的写一句话，运行失败的要写进失败的种类 `failure['kind']`。
# 4. **门槛**：`gates` 的 4 个数交给 `judge`。运行失败时，其中的 None 换成 0，这样失败原因恰好只有 `runtime`；换好的 0 也要留在 `gates` 里，末尾几行把它写进 `decision`；记录的 `metrics` 里仍然是 None。没有失败（`failure` 是 None）却有 None，就不能评判：`gate_failures` 是 `['unmeasured']`，不调用 `judge`。其余情况调用 `judge({'name': ..., **gates, 'failure': ...}, limits)`，取它的 `gate_failures`。
#
# `judge` 就是第 04 课的 `evaluate_internal_parallel_candidate`。不要改动输入。
#
# <details><summary>提示 1：方向</summary>
#
# 按 1 到 4 的顺序写，每一步只有几行。第 3 步放在第 2 步之后：算出了效率，就不缺原因了。
# </details>
# <details><summary>提示 2：结构</summary>
#
# 第 2 步的 5 个条件用 and 连起来，前面的不成立，后面的就不会求值。第 3 步遍历 metrics 的名字和值。第 4 步先处理失败，再看有没有 None。
# </details>
# <details><summary>提示 3：细节</summary>
#
# 字典的 setdefault 方法只在键不存在时写入，正好保留已有的原因。换 0 时用 is None 判断：测到的 0 也是一个数。推算的运行里 cores 是 None，所以先看等级，再做乘法。
# </details>

# %% [markdown] lang="en"
# ### TODO 3: make a record of a run
#
# `complete_record(run, baseline, judge)` gets the raw material of a run and returns the complete record. `run` already has `name`, `workload`, `hardware`, `mesh`, `metrics`, `artifact`, `failure`, `reasons`; you add 4 things. The cell has taken out what you need, and its last lines put your results into the record.
#
# 1. **The level** `level`: if `machine['device']` is `'cpu'`, it is `'cpu_gloo'`; if it is `'cuda'`, look at `machine['nodes']`: 1 machine is `'gpu_single_node'`, several are `'gpu_multi_node'`; if it is None nothing ran, and it is `'analytic'`. **Crowded** `crowded` (a bool): it ran on CPU, and there are more ranks than `machine['cores'] * machine['nodes']` (`cores` are those of one machine).
# 2. **Scaling efficiency**: set `metrics['scaling_efficiency']` to `speed['median']` over (ranks × the baseline's `['metrics']['throughput']['median']`). Only where all of this holds, else it stays None: this run's throughput was measured; there is a baseline (`baseline` is not None); the baseline did not fail; the baseline's `evidence_level` equals `level`; the baseline's `['workload']['fingerprint']` is that of this run.
# 3. **Reasons**: for every value in `metrics` that is None there must be a key `'metrics.name'` in `record['reasons']`. A reason that is there stays as it is; where there is none write a sentence, and for a run that failed put the kind of failure `failure['kind']` into it.
# 4. **Gates**: the 4 numbers in `gates` go to `judge`. If the run failed, each None in them becomes 0, so that the only reason for failure is `runtime`; these 0s must also be in `gates` afterwards, for the last lines put it into `decision`; in the record's `metrics` it stays None. If it did not fail (`failure` is None) and there is a None, it cannot be judged: `gate_failures` is `['unmeasured']`, and `judge` is not called. Otherwise call `judge({'name': ..., **gates, 'failure': ...}, limits)` and take its `gate_failures`.
#
# `judge` is no other than lesson 04's `evaluate_internal_parallel_candidate`. Do not change the input.
#
# <details><summary>Hint 1: direction</summary>
#
# Write 1 to 4 in this order; each step takes a few lines. Step 3 comes after step 2: once the efficiency is there it needs no reason.
# </details>
# <details><summary>Hint 2: structure</summary>
#
# Join the 5 conditions of step 2 by and: where an early one fails the later ones are not evaluated. Step 3 goes through names and values of metrics. Step 4 deals with failure first and then looks for None.
# </details>
# <details><summary>Hint 3: details</summary>
#
# A dict's setdefault method writes only where the key is missing, and so keeps a reason that is there. Ask is None before you put in 0: a measured 0 is a number too. In an analytic run cores is None, so look at the level before you multiply.
# </details>

# %% lang="zh"
# TODO 3 · complete_record
def complete_record(run, baseline, judge):
    """补上证据等级、扩展效率、空缺的原因和决定。"""
    record = deepcopy(run)
    machine, work, metrics = record['hardware'], record['workload'], record['metrics']
    ranks, limits, failure = work['world_size'], work['limits'], record['failure']
    speed, memory = metrics['throughput'], metrics['peak_memory_mb']
    gates = {
        'throughput': speed and speed['median'],
        'peak_memory_mb': memory and memory['max'],
        'bubble_ratio': metrics['bubble_ratio'],
        'communication_ratio': metrics['communication_ratio'],
    }
    # TODO 3：1 等级与拥挤，2 扩展效率，3 空缺的原因，4 门槛。
    # level, crowded, gate_failures = ???
    # BEGIN SOLUTION
    if machine['device'] == 'cuda':
        level = 'gpu_single_node' if machine['nodes'] == 1 else 'gpu_multi_node'
    else:
        level = 'cpu_gloo' if machine['device'] == 'cpu' else 'analytic'
    crowded = level == 'cpu_gloo' and ranks > machine['cores'] * machine['nodes']

    comparable_baseline = (
        baseline is not None
        and baseline['failure'] is None
        and baseline['evidence_level'] == level
        and baseline['workload']['fingerprint'] == work['fingerprint']
    )
    if speed and comparable_baseline:
        alone = baseline['metrics']['throughput']['median']
        metrics['scaling_efficiency'] = speed['median'] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else 'not measured'
    for name, value in metrics.items():
        if value is None:
            record['reasons'].setdefault(f'metrics.{name}', why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ['unmeasured']
    else:
        seen = {'name': record['name'], **gates, 'failure': failure}
        gate_failures = judge(seen, limits)['gate_failures']
    # END SOLUTION
    decision = {'limits': limits, 'gates': gates, 'gate_failures': gate_failures}
    decision['accepted'] = not gate_failures
    return {**record, 'evidence_level': level, 'oversubscribed': crowded, 'decision': decision}

# %% lang="en"
# TODO 3 · complete_record
def complete_record(run, baseline, judge):
    """Add the evidence level, scaling efficiency, reasons for what is missing, and the decision."""
    record = deepcopy(run)
    machine, work, metrics = record['hardware'], record['workload'], record['metrics']
    ranks, limits, failure = work['world_size'], work['limits'], record['failure']
    speed, memory = metrics['throughput'], metrics['peak_memory_mb']
    gates = {
        'throughput': speed and speed['median'],
        'peak_memory_mb': memory and memory['max'],
        'bubble_ratio': metrics['bubble_ratio'],
        'communication_ratio': metrics['communication_ratio'],
    }
    # TODO 3: 1 level and crowded, 2 scaling efficiency, 3 reasons, 4 gates.
    # level, crowded, gate_failures = ???
    # BEGIN SOLUTION
    if machine['device'] == 'cuda':
        level = 'gpu_single_node' if machine['nodes'] == 1 else 'gpu_multi_node'
    else:
        level = 'cpu_gloo' if machine['device'] == 'cpu' else 'analytic'
    crowded = level == 'cpu_gloo' and ranks > machine['cores'] * machine['nodes']

    comparable_baseline = (
        baseline is not None
        and baseline['failure'] is None
        and baseline['evidence_level'] == level
        and baseline['workload']['fingerprint'] == work['fingerprint']
    )
    if speed and comparable_baseline:
        alone = baseline['metrics']['throughput']['median']
        metrics['scaling_efficiency'] = speed['median'] / (ranks * alone)

    why = f"the run failed ({failure['kind']})" if failure else 'not measured'
    for name, value in metrics.items():
        if value is None:
            record['reasons'].setdefault(f'metrics.{name}', why)

    if failure:
        gates = {name: 0 if value is None else value for name, value in gates.items()}
    if None in gates.values():
        gate_failures = ['unmeasured']
    else:
        seen = {'name': record['name'], **gates, 'failure': failure}
        gate_failures = judge(seen, limits)['gate_failures']
    # END SOLUTION
    decision = {'limits': limits, 'gates': gates, 'gate_failures': gate_failures}
    decision['accepted'] = not gate_failures
    return {**record, 'evidence_level': level, 'oversubscribed': crowded, 'decision': decision}

# %% lang="zh"
# CHECK 3
with check_todo(3, 'complete_record') as call:
    from parlab.lesson.nearly import nearly
    from parlab.lesson.record_cases import (
        a_baseline,
        a_judge,
        a_run,
        handed,
        in_brief,
        look,
        runs,
        short,
        unexplained,
        unlike,
    )
    call.shown = in_brief
    gone = {'failure': 'killed'}
    zero = {'bubble_ratio': 0.0, 'communication_ratio': 0.0}
    none = {'throughput': None}
    E, M, G = 'metrics.scaling_efficiency', 'metrics.throughput', 'decision.gates.throughput'
    for change, base, want, rule in [
        ({}, {}, {'evidence_level': 'cpu_gloo', 'oversubscribed': True},
         'CPU 上 4 个 rank、2 个核：cpu_gloo，拥挤'),
        ({'cores': 4}, {}, {'oversubscribed': False},
         '4 个核、4 个 rank：每个 rank 一个核，不算拥挤'),
        ({'nodes': 2}, {}, {'evidence_level': 'cpu_gloo', 'oversubscribed': False},
         'CPU 上 2 台机器、每台 2 个核：仍是 cpu_gloo，4 个 rank 不拥挤'),
        ({'device': 'cuda'}, {'evidence_level': 'gpu_single_node'},
         {'evidence_level': 'gpu_single_node', 'oversubscribed': False},
         '1 台机器的 GPU；GPU 上不看核数'),
        ({'device': 'cuda', 'nodes': 2}, {}, {'evidence_level': 'gpu_multi_node'},
         '2 台机器的 GPU'),
        ({'device': None, 'nodes': None, 'cores': None}, {},
         {'evidence_level': 'analytic', 'oversubscribed': False}, '没有设备，就没有运行：analytic'),
        ({}, {}, {E: 6000 / (4 * 3000)}, '效率 = 6000 / (4 × 3000) = 0.5'),
        ({'device': 'cuda'}, {}, {E: None},
         '不跨证据等级比较：基线是 cpu_gloo，这次是 gpu_single_node'),
        ({}, {'fingerprint': 'other'}, {E: None}, '基线的指纹不同，不是同一个工作负载：不能比'),
        ({}, gone, {E: None}, '基线失败了，没有吞吐可比'),
        ({}, None, {E: None}, '没有基线，就没有效率'),
        ({}, {}, {'reasons': {'metrics.mfu': 'ran on CPU'}}, '已有的原因保留原样，不缺的不写原因'),
        (zero, {}, {'reasons': {'metrics.mfu': 'ran on CPU'}}, '测到的 0 不是 None：它不缺原因'),
        (gone, {}, {M: None, 'metrics.bubble_ratio': None},
         '没测到的在 metrics 里仍是 None，不是 0'),
        (gone, {}, {G: 0, 'decision.gates.peak_memory_mb': 0, 'decision.gates.bubble_ratio': 0},
         '运行失败：交给门槛的 None 换成 0'),
        ({**gone, 'bubble_ratio': 0.3}, {}, {'decision.gates.bubble_ratio': 0.3},
         '失败之前测到的数照用，只有 None 换成 0'),
        (none, {}, {M: None, E: None, G: None, 'decision.accepted': False,
                    'decision.gate_failures': ['unmeasured']},
         '没有失败却没测到：不能换成 0，也不能评判'),
    ]:
        run, judge = a_run(**change), a_judge()[0]
        got = call(run, None if base is None else a_baseline(**base), judge)
        lost = unlike(run, got)
        assert not lost, call.wrong('原有的内容都要留下', 'run', lost)
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong(rule, short(want), short(have))

    bare = {**gone, 'reasons': {}}
    for change, kind in (({}, ''), (none, ''), (gone, 'killed'), (bare, 'killed')):
        lost = unexplained(call(a_run(**change), None, a_judge()[0]), kind)
        assert not lost, call.wrong(
            '每个 None 都有原因；运行失败的，原因里有失败的种类', f'一句话，含 {kind!r}', lost)

    for change, failures in (({}, []), ({}, ['memory', 'bubble']), (gone, ['runtime'])):
        run, (judge, seen) = a_run(**change), a_judge(*failures)
        got, wanted = call(run, a_baseline(), judge), handed(run, change is gone)
        assert nearly(seen[-1:], [wanted]), call.wrong(
            '交给 judge 的是 name、4 个数、failure，还有 limits', repr(wanted), repr(seen[-1:]))
        want = {'decision.gate_failures': failures, 'decision.accepted': not failures}
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong('照 judge 说的写', short(want), short(have))

    found = look(call(a_run(**zero), None, a_judge()[0]), 'decision.gate_failures')
    assert found == [], call.wrong('测到的 0 不是 None：照样评判', '[]', repr(found))

    for run, baseline, want in runs():  # 等级、基线、失败的每一种组合
        got = call(run, baseline, a_judge()[0])
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong('4 条规则一起成立', short(want), short(have))

# %% lang="en"
# CHECK 3
with check_todo(3, 'complete_record') as call:
    from parlab.lesson.nearly import nearly
    from parlab.lesson.record_cases import (
        a_baseline,
        a_judge,
        a_run,
        handed,
        in_brief,
        look,
        runs,
        short,
        unexplained,
        unlike,
    )
    call.shown = in_brief
    gone = {'failure': 'killed'}
    zero = {'bubble_ratio': 0.0, 'communication_ratio': 0.0}
    none = {'throughput': None}
    E, M, G = 'metrics.scaling_efficiency', 'metrics.throughput', 'decision.gates.throughput'
    for change, base, want, rule in [
        ({}, {}, {'evidence_level': 'cpu_gloo', 'oversubscribed': True},
         '4 ranks on 2 cores, CPU: cpu_gloo, crowded'),
        ({'cores': 4}, {}, {'oversubscribed': False},
         '4 ranks on 4 cores: a core each, not crowded'),
        ({'nodes': 2}, {}, {'evidence_level': 'cpu_gloo', 'oversubscribed': False},
         'CPU, 2 machines with 2 cores each: cpu_gloo all the same, and 4 ranks are not crowded'),
        ({'device': 'cuda'}, {'evidence_level': 'gpu_single_node'},
         {'evidence_level': 'gpu_single_node', 'oversubscribed': False},
         'GPUs of 1 machine: cores do not matter'),
        ({'device': 'cuda', 'nodes': 2}, {}, {'evidence_level': 'gpu_multi_node'},
         'GPUs of 2 machines'),
        ({'device': None, 'nodes': None, 'cores': None}, {},
         {'evidence_level': 'analytic', 'oversubscribed': False},
         'no device, so nothing ran: analytic'),
        ({}, {}, {E: 6000 / (4 * 3000)}, 'efficiency = 6000 / (4 × 3000) = 0.5'),
        ({'device': 'cuda'}, {}, {E: None},
         'never across levels: baseline cpu_gloo, this run gpu_single_node'),
        ({}, {'fingerprint': 'other'}, {E: None},
         'the baseline has another fingerprint: another workload'),
        ({}, gone, {E: None}, 'the baseline failed, so there is no throughput to compare with'),
        ({}, None, {E: None}, 'no baseline, no efficiency'),
        ({}, {}, {'reasons': {'metrics.mfu': 'ran on CPU'}},
         'a reason stays as it is; what is there needs none'),
        (zero, {}, {'reasons': {'metrics.mfu': 'ran on CPU'}},
         'a measured 0 is not None: it needs no reason'),
        (gone, {}, {M: None, 'metrics.bubble_ratio': None},
         'what was not measured stays None in metrics, not 0'),
        (gone, {}, {G: 0, 'decision.gates.peak_memory_mb': 0, 'decision.gates.bubble_ratio': 0},
         'the run failed: for the gates each None becomes 0'),
        ({**gone, 'bubble_ratio': 0.3}, {}, {'decision.gates.bubble_ratio': 0.3},
         'what was measured before the failure stays; only None becomes 0'),
        (none, {}, {M: None, E: None, G: None, 'decision.accepted': False,
                    'decision.gate_failures': ['unmeasured']},
         'did not fail, not measured: no 0, no verdict'),
    ]:
        run, judge = a_run(**change), a_judge()[0]
        got = call(run, None if base is None else a_baseline(**base), judge)
        lost = unlike(run, got)
        assert not lost, call.wrong('all that was there must stay', 'run', lost)
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong(rule, short(want), short(have))

    bare = {**gone, 'reasons': {}}
    for change, kind in (({}, ''), (none, ''), (gone, 'killed'), (bare, 'killed')):
        lost = unexplained(call(a_run(**change), None, a_judge()[0]), kind)
        assert not lost, call.wrong(
            'each None has a reason; if the run failed, with the kind of failure',
            f'a sentence with {kind!r}', lost)

    for change, failures in (({}, []), ({}, ['memory', 'bubble']), (gone, ['runtime'])):
        run, (judge, seen) = a_run(**change), a_judge(*failures)
        got, wanted = call(run, a_baseline(), judge), handed(run, change is gone)
        assert nearly(seen[-1:], [wanted]), call.wrong(
            'judge gets name, the 4 numbers and failure, and limits', repr(wanted), repr(seen[-1:]))
        want = {'decision.gate_failures': failures, 'decision.accepted': not failures}
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong('as judge says', short(want), short(have))

    found = look(call(a_run(**zero), None, a_judge()[0]), 'decision.gate_failures')
    assert found == [], call.wrong('a measured 0 is not None: judge it', '[]', repr(found))

    for run, baseline, want in runs():  # every combination of level, baseline and failure
        got = call(run, baseline, a_judge()[0])
        have = {path: look(got, path) for path in want}
        assert nearly(have, want), call.wrong('all 4 rules hold together', short(want), short(have))

# %% [markdown] lang="zh"
# #### 你的函数重写示例记录
#
# 拿已有的记录，去掉证据等级和决定，让**你的**函数补回来，再逐项对照。接着看一次失败的运行：rank 2 被杀掉了。先猜：它的失败原因里会不会有 memory？

# %% [markdown] lang="en"
# #### Your function writes the example records again
#
# Take the records, remove evidence level and decision, let **your** function put them back, and compare item by item. Then look at a run that failed: rank 2 was killed. Predict: will memory be among its reasons for failure?

# %%
if ready('complete_record'):
    for record in shown:
        run = {**deepcopy(record), 'evidence_level': None, 'oversubscribed': None, 'decision': None}
        if record['name'] != 'baseline':
            run['metrics']['scaling_efficiency'] = None
        again = complete_record(run, records.get('baseline'), deciders[JUDGE])
        level, failures = again['evidence_level'], again['decision']['gate_failures']
        agree = (level == record['evidence_level']
                 and again['oversubscribed'] == record['oversubscribed']
                 and set(failures) == set(record['decision']['gate_failures']))
        print(f"{record['name']:<9} {level}, {failures}, agrees with the record: {agree}")

    from parlab.lesson.record_cases import a_run
    failed = complete_record(a_run(failure='killed'), None, deciders[JUDGE])
    print('failed run:', failed['decision']['gate_failures'], failed['metrics']['bubble_ratio'])
    print('  reason:', failed['reasons']['metrics.bubble_ratio'])

# %% [markdown] lang="zh"
# 失败的那一组，失败原因恰好是 `['runtime']`：不会因为“气泡是 0”就显得优秀，也不会被冤枉成显存超限。
#
# ### 5.6 解释结果，形成决策
#
# 只看一个数会看错，要放在一起解释。先看通信：下图是每一组在一步里交给通信的字节数，按轴（axis）和原因分开。先猜：G0 和 G2 都用 TP，谁传得多？

# %% [markdown] lang="en"
# The group that failed has exactly `['runtime']` as its reasons: it does not look excellent because "its bubble is 0", nor is it blamed for memory.
#
# ### 5.6 Explain the results and decide
#
# A single number misleads; explain them together. Communication first: the picture shows the bytes that a group hands to communication in one step, by axis and cause. Predict: G0 and G2 both use TP; which sends more?

# %%
draw_collectives(shown)
plt.show()

# %% [markdown] lang="zh"
# 字节数不依赖机器快慢，它在任何证据等级都算数。G0 的 4 个 rank 都参加每一层的 all-reduce，G2 的每一层只有 2 个 rank 参加；G1 只在阶段之间传激活和它的梯度，少得多。
#
# 再看内存。虚线是上限，每个细条是一个 rank，从左到右是 rank 0 到 3。先猜：PP 的哪个 rank 最占内存？

# %% [markdown] lang="en"
# Bytes do not depend on how fast the machine is: they count at every evidence level. In G0 all 4 ranks take part in every layer's all-reduce, in G2 only 2 ranks do for each layer; G1 sends activations and their gradients between stages only, which is far less.
#
# Now memory. The dashed line is the limit, each thin bar is a rank, rank 0 to 3 from left to right. Predict: which rank of PP needs most?

# %%
draw_memory(shown)
plt.show()

# %% [markdown] lang="zh"
# 模型太小，差别被 torch 自己占的几百 MB 盖住了：在 CPU 上读到的是整个进程的峰值（VmHWM）。这又是证据等级的问题，数是真的，只是回答不了“哪种摆法更省显存”。大模型、GPU 上读的是分配器的峰值，那时 1F1B 的第一个阶段最占：它同时存着最多的微批次。
#
# 最后看对不对，值不值。左图是和单进程相比最大的梯度误差，虚线是上限 1e-05；右图是扩展效率，1 是理想。

# %% [markdown] lang="en"
# The model is so small that the few hundred MB of torch itself hide the differences: on CPU the peak of the whole process is read (VmHWM). This is the evidence level again: the number is true, it just cannot say which layout saves memory. For a large model on GPUs the allocator's peak is read, and there the first stage of 1F1B needs most, for it holds most microbatches at a time.
#
# Last: is it right, and is it worth it? On the left the largest gradient error against one process, with the bound 1e-05 as a dashed line; on the right the scaling efficiency, where 1 is ideal.

# %%
draw_worth(shown)

# %% [markdown] lang="zh"
# 误差在浮点舍入的量级，所以**算得对**，这一条在 CPU 上就能下结论。效率画成浅色：4 个进程分 2 个核，理想也只有 0.5，它说明不了 GPU 上的事。
#
# #### 让三个函数决定
#
# 基线是尺子，不参加评选；训练结果和单进程对不上的组也不参加。只有同一个工作负载、同一个证据等级、同一台机器、rank 一样多的组能放在一起选。先猜：谁会当选？被淘汰的倒在哪道门槛？

# %% [markdown] lang="en"
# The errors are of the size of rounding, so it **computes rightly**, and that can be concluded on CPU. The efficiency is pale: with 4 processes on 2 cores even the ideal would be 0.5, and it says nothing about GPUs.
#
# #### Let the three functions decide
#
# The baseline is the yardstick and no candidate, nor is a group that does not train as one process does. Only groups with the same workload, the same evidence level, the same machine and as many ranks take part. Predict: who is chosen? And at which gate do the others fail?

# %%
def decide(groups, limits):
    judged = []
    for record in groups:
        facts = {**record['decision']['gates'], 'failure': record['failure']}
        judged.append(deciders[JUDGE]({'name': record['name'], **facts}, limits))
    return judged, deciders[CHOOSE](judged)

candidates = choosable(shown)
limits = shown[-1]['workload']['limits']
judged, choice = decide(candidates, limits)
rows = [('group', 'tokens/s', 'bubble', 'communication', 'peak MB', 'gates')]
for item in judged:
    rows.append((item['name'], f"{item['throughput']:.0f}", f"{item['bubble_ratio']:.3f}",
                 f"{item['communication_ratio']:.3f}", f"{item['peak_memory_mb']:.0f}",
                 ', '.join(item['gate_failures']) or 'eligible'))
print(table(rows))
print(choice, '| evidence level', shown[-1]['evidence_level'])
print('decision.json:', (read_decision(RESULT_DIR) or {}).get('meaning'))

# %% [markdown] lang="zh"
# 决定只在它的证据等级之内有效。这里说的是：**在这台机器、这个小模型、这些上限之下**，通信门槛淘汰了用 TP 的组。换成有 NVLink 的 GPU，all-reduce 快两个数量级，结论很可能反过来。
#
# 换一组上限试试。先猜：把通信上限放宽到 0.9，当选的会变吗？把气泡上限收紧到 0.2 呢？

# %% [markdown] lang="en"
# A decision holds within its evidence level. What it says is: **on this machine, with this small model and these limits**, the communication gate rejects the groups that use TP. On GPUs with NVLink an all-reduce is two orders of magnitude faster, and the outcome may well be the opposite.
#
# Try other limits. Predict: with the communication limit at 0.9, does the choice change? And with the bubble limit at 0.2?

# %%
for change in ({'communication_ratio': 0.9}, {'bubble_ratio': 0.2}):
    print(change, '->', decide(candidates, {**limits, **change})[1])

# %% [markdown] lang="zh"
# 有的改动让候选变多，有的让候选一个不剩。上限表达的是你要什么，应当在看到结果**之前**定下来，并写进记录。
#
# #### 换到 GPU，换到多台机器
#
# - 一台多卡机器：打开 `RUN_GPU_EXPERIMENT`，证据等级自动变成 `gpu_single_node`。真实大小的模型用命令加上 `--workload qwen3-0.6b`（先在课程文件夹里运行 `pip install -e ".[hub]"`）。
# - 多台机器：每台各启动一次 `parlab bench`，加上 `--nnodes`、`--node-rank`、`--rdzv-endpoint`；Slurm 的例子见 [benchmarks/slurm.sh](repo:benchmarks/slurm.sh)。等级是 `gpu_multi_node`。
# - 报告和图片：`parlab bench --report` 加上文件夹名，见[示例报告](repo:benchmarks/results/par_model_internal/report.md)。

# %% [markdown] lang="en"
# Some changes admit more candidates, others leave none. Limits state what you want; they should be fixed **before** you see results, and written into the record.
#
# #### On GPUs, on several machines
#
# - One machine with several GPUs: turn on `RUN_GPU_EXPERIMENT`, and the evidence level becomes `gpu_single_node` by itself. For a model of real size add `--workload qwen3-0.6b` to the command (first run `pip install -e ".[hub]"` in the course's folder).
# - Several machines: start `parlab bench` once on each, with `--nnodes`, `--node-rank`, `--rdzv-endpoint`; for Slurm see [benchmarks/slurm.sh](repo:benchmarks/slurm.sh). The level is `gpu_multi_node`.
# - Report and pictures: `parlab bench --report` with the folder's name; see the [example report](repo:benchmarks/results/par_model_internal/report.md).

# %% [markdown] lang="zh"
# ## 🛑 STOP HERE 🛑
#
# 先完成题目、通过检查，再看[参考答案](repo:solutions/05_multi_gpu_experiments.ipynb)。
#
# 做完了？打开 5.3 的 `RUN_CPU_REHEARSAL`，从头全部运行：每一张测量图都会换成**你的机器**上的数，由**你的函数**决定。正文说的仍是附带的示例记录：数不一样，就自己照样读一遍。
#
# **延伸阅读**
#
# - `torchrun` 怎样启动、重启、收尾：[文档](https://docs.pytorch.org/docs/stable/elastic/run.html)
# - Llama 3 怎样记录和报告 MFU：[arXiv 2407.21783](https://arxiv.org/abs/2407.21783) 3.3.2 节
# - 零气泡流水线，把反向拆开填补空转：[arXiv 2401.10241](https://arxiv.org/abs/2401.10241)
# - 性能测量里常见的 12 种误导：[Hoefler 与 Belli，SC'15](https://htor.inf.ethz.ch/publications/index.php?pub=222)

# %% [markdown] lang="en"
# ## 🛑 STOP HERE 🛑
#
# Finish the tasks and pass the checks before you look at the [reference solution](repo:solutions/en/05_multi_gpu_experiments.ipynb).
#
# Done? Turn on `RUN_CPU_REHEARSAL` in 5.3 and run all from the top: every measured picture changes to the numbers of **your machine**, and **your functions** decide. The text still speaks of the example records: where your numbers differ, read them the same way yourself.
#
# **Further reading**
#
# - How `torchrun` starts, restarts and ends ranks: [documentation](https://docs.pytorch.org/docs/stable/elastic/run.html)
# - How Llama 3 records and reports MFU: [arXiv 2407.21783](https://arxiv.org/abs/2407.21783), section 3.3.2
# - Zero-bubble pipelines, which split the backward to fill idle time: [arXiv 2401.10241](https://arxiv.org/abs/2401.10241)
# - 12 ways to mislead in performance measurement: [Hoefler and Belli, SC'15](https://htor.inf.ethz.ch/publications/index.php?pub=222)
