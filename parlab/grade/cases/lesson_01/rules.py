"""What the three TODOs of lesson 01 are scored by. Each TODO's weights add up to 10."""

from parlab.grade.cases import Rule

EACH = 12  # cases of one rule
SECONDS = 3  # of CPU time that a call may take, as the lesson says

_UNCHANGED = Rule(
    "unchanged",
    1,
    ("输入保持原样，嵌套的值也是", "the input is left as it was, nested values included"),
    (
        "不要往输入里写，也不要从里面取走。要改的话，先复制。",
        "do not write into the input and take nothing out of it. Copy first what you change.",
    ),
    about_input=True,
)


def _entry(key: str, zh: str, en: str, hint_zh: str, hint_en: str, weight: int = 1) -> Rule:
    return Rule(key, weight, (zh, en), (hint_zh, hint_en))


RULES = {
    1: (
        _entry(
            "slowest",
            "规则 1：最慢的阶段尽可能快",
            "rule 1: the slowest stage is as fast as possible",
            "比较的是一个阶段里各层代价之和，不是层数；层的顺序不能变，一个阶段的层要连续。",
            "compare the sums of costs, not the numbers of layers; the order of the layers stays, "
            "and a stage's layers are neighbours.",
            weight=2,
        ),
        _entry(
            "squares",
            "规则 2：最慢的阶段一样快，选平方和最小的",
            "rule 2: the slowest stage ties, so the smallest sum of squares wins",
            "最慢的阶段有了上限以后，还有几种切法？其余的阶段也要尽量平均。",
            "how many splits are left within the limit of the slowest stage? The other stages are "
            "to be as even as possible too.",
            weight=2,
        ),
        _entry(
            "first",
            "规则 3：前两条都一样，选字典序最小的层数列表",
            "rule 3: both tie, so the lexicographically smallest list of sizes wins",
            "平局时比较两个层数列表，Python 比较列表就是字典序。",
            "in a tie compare the two lists of sizes; Python compares lists lexicographically.",
        ),
        _entry(
            "whole",
            "第一个阶段最慢时，其余的阶段按整体的规则切",
            "where the first stage is slow, the rest is split by the rules of the whole",
            "其余各层自己的最优，拼起来不一定是整体的最优：它们只要不超过整体的上限。",
            "the best of the remaining layers by themselves need not be part of the best whole: "
            "all they must do is stay within the limit of the whole.",
        ),
        _entry(
            "edges",
            "一个阶段、一层一个阶段、不花时间的层都对",
            "one stage, a stage for each layer, and layers that cost nothing are right too",
            "每个阶段至少一层，个数恰好是 stages；代价可以是 0，也可以全是 0。",
            "every stage has a layer at least, and there are exactly as many as stages says; "
            "costs may be 0, even all of them.",
        ),
        _entry(
            "large",
            "上百层、十几个阶段，每次调用在 3 秒内结束",
            "a hundred layers over a dozen stages, and every call ends within 3 seconds",
            "切法太多，不能一种一种地试：把子问题的答案记住，不要重复算。",
            "there are too many splits to try each: remember the answers of subproblems instead "
            "of computing them again.",
            weight=2,
        ),
        _UNCHANGED,
    ),
    2: (
        _entry(
            "warm_up",
            "第一个反向之前的前向：最后一个阶段 1 个，每往前一个阶段多 1 个",
            "forwards before the first backward: 1 on the last stage, 1 more on each before it",
            "p = 3 时，rank 0、1、2 先做几个前向？和 rank 有什么关系？",
            "with p = 3, how many forwards do ranks 0, 1 and 2 begin with? How does that depend "
            "on the rank?",
            weight=3,
        ),
        _entry(
            "each_once",
            "每个微批次恰好一个前向、一个反向，都按 0, 1, 2, … 的次序",
            "one forward and one backward for each microbatch, each in the order 0, 1, 2, …",
            "数一数：前向和反向各有 microbatches 个，最后剩下的反向也要做完。",
            "count them: there are as many forwards and backwards as microbatches, and the "
            "backwards that are left in the end must be done too.",
        ),
        _entry(
            "alternate",
            "第一个反向之后，一个反向、一个前向地交替，直到前向用完",
            "after the first backward, backward and forward take turns until no forward is left",
            "每做完一个反向，跟一个还没做过的前向；没有前向了，就只剩反向。",
            "each backward is followed by a forward that has not been done; when there is none "
            "left, only backwards are.",
            weight=3,
        ),
        _entry(
            "few",
            "微批次不够时，有几个前向就先做几个",
            "where there are too few microbatches, as many forwards come first as there are",
            "先做的前向不会比微批次多。微批次比阶段少的时候，每个 rank 各是什么顺序？",
            "there are never more forwards than microbatches. With fewer microbatches than "
            "stages, what is the order of each rank?",
            weight=2,
        ),
        _entry(
            "single",
            "只有一个阶段、只有一个微批次、最后一个阶段：前向、反向轮流",
            "one stage, one microbatch, the last stage: forward and backward in turn",
            "这三种情形里，每个前向后面马上是它的反向。",
            "in all three, each forward is followed at once by its backward.",
        ),
    ),
    3: (
        _entry(
            "waits",
            "一步在它等的东西到齐时开始，用时是 times[种类][阶段]",
            "a step begins when all that it waits for is there, and takes times[kind][stage]",
            "前向等上一个阶段，反向等自己的前向和下一个阶段；同一个 rank 一步做完才做下一步。",
            "a forward waits for the stage before, a backward for its own forward and the stage "
            "after; a rank does one step after another.",
            weight=2,
        ),
        _entry(
            "transfer",
            "从别的 rank 传来的，再等 transfer；传输不占用任何 rank",
            "what comes from another rank takes the transfer on top, which occupies no rank",
            "传输只加在收的一方等待的时刻上，不加在用时上，发的一方马上做下一步。",
            "a transfer is added to the moment that the receiver waits for, not to the duration; "
            "the sender goes on at once.",
        ),
        _entry(
            "two_stages",
            "一个 rank 可以管两个阶段，它们之间不用传输",
            "a rank may hold two stages, and nothing is sent between them",
            "要不要传输，看两步是不是在同一个 rank 上，不是看阶段。",
            "whether there is a transfer depends on the ranks of the two steps, not their stages.",
        ),
        _entry(
            "makespan",
            "makespan 是最后一步结束的时刻",
            "the makespan is when the last step ends",
            "最后结束的不一定是 rank 0。",
            "it need not be rank 0 that ends last.",
        ),
        _entry(
            "rank_bubbles",
            "一个 rank 的气泡占比 = 1 − 它干活的时间 / makespan",
            "a rank's bubble = 1 − its working time / makespan",
            "分母是整个 makespan，开始之前和结束之后的空转也算；要的是占比，不是时间。",
            "the denominator is the whole makespan, and idle time before and after counts; it is "
            "a share that is wanted, not a time.",
        ),
        _entry(
            "bubble",
            "总的气泡占比 = 所有 rank 的空转之和 / (rank 数 × makespan)",
            "the whole bubble = idle time of all ranks / (ranks × makespan)",
            "不是最大的那个 rank，也不是公式：阶段有快有慢。",
            "it is not that of the worst rank and not the formula: stages differ in speed.",
        ),
        _entry(
            "in_flight",
            "在途：F 已经开始、B 还没有结束的微批次，取最多的时候",
            "in flight: F has begun, B has not ended; the most at any time",
            "按这个 rank 自己的顺序数：F 加一，B 减一，W 不算，记住最大的。",
            "count along the rank's own order: one more at F, one less at B, nothing at W; "
            "keep the largest.",
        ),
        _entry(
            "deadlock",
            "死锁时返回 {'stuck': [...]}：每个 rank 卡住的那一步，做完的写 None",
            "in a deadlock return {'stuck': [...]}: each rank's step, None where it has finished",
            "整整一轮谁也没有前进，就停下来；不抛出异常，每个 rank 都有一项。",
            "stop when a whole round moves nobody; raise nothing, and have an entry for each rank.",
        ),
        _UNCHANGED,
    ),
}
