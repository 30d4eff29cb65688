"""What the three TODOs of lesson 03 are scored by. Values and gradients weigh most."""

from parlab.grade.cases import Rule

_BEFORE = (
    "在 exp 和 log 之前把坏的数换掉；事后用 where 或 nan_to_num 盖住，梯度里还是 NaN。",
    "replace what is bad before exp and log; covered afterwards by where or nan_to_num, the "
    "gradient is NaN still.",
)
_PEAK = (
    "不要对 lse 本身取 exp：权重只和两个 lse 的差有关。",
    "never take exp of an lse as it is: the weights depend on the difference of the two alone.",
)
_GLOBAL = (
    "掩码按全局位置：手里是哪个 rank 的块，就用哪个 rank 的那一行 positions。",
    "the mask goes by global positions: use the row of positions of the rank whose block is at "
    "hand.",
)
_GRADIENT = (
    "不要 detach，也不要用 no_grad；不要往自动求导存着的张量（视图）里写。",
    "no detach and no no_grad; do not write into tensors (views) that autograd has saved.",
)

RULES = {
    1: (
        Rule(
            "chunks",
            4,
            (
                "2 × cp 块，rank r 拿从前、从后数的第 r 块",
                "2 × cp chunks; rank r has chunk r from the front and chunk r from the back",
            ),
            (
                "先想块，再想 token。从后面数第 0 块是最后一块。",
                "think of chunks first, of tokens later. Chunk 0 from the back is the last one.",
            ),
        ),
        Rule(
            "ascending",
            1,
            (
                "positions 是普通的列表，每个 rank 的位置从小到大",
                "positions are plain lists, each rank's ascending",
            ),
            (
                "前面的块在先，每块里面从小到大；tolist 把张量变成列表。",
                "the front chunk comes first, each chunk ascending; tolist makes a tensor a list.",
            ),
        ),
        Rule(
            "inverse",
            3,
            (
                "inverse[p] 是 token p 在首尾相接的次序里的位置",
                "inverse[p] is the place of token p in the end-to-end order",
            ),
            (
                "次序本身说的是“第几个位置上是谁”，inverse 反过来：“谁在第几个位置”。",
                "the order says who stands at a place; inverse says at which place somebody "
                "stands.",
            ),
        ),
        Rule(
            "work",
            2,
            (
                "work 是每个 rank 的查询要算的分数数目，是 int",
                "work is the number of scores that each rank's queries need, as ints",
            ),
            (
                "位置 p 的 token 看 0 到 p，包括自己。",
                "the token at position p looks at 0 to p, itself included.",
            ),
        ),
    ),
    2: (
        Rule(
            "weighted",
            2,
            (
                "按 exp(lse) 加权，lse 是两边的 log-sum-exp",
                "weighted by exp(lse), and the lse is the log-sum-exp of both",
            ),
            (
                "lse 更大的一边更重；out 和 lse 都要合并，返回一个元组。",
                "more lse, more weight; merge out and lse both, and return a tuple.",
            ),
        ),
        Rule(
            "large",
            1,
            ("lse 很大或很小时也对", "right for very large and very small lse"),
            _PEAK,
        ),
        Rule(
            "apart",
            1,
            ("两边的 lse 相差很远时也对", "right where the two lse are far apart"),
            (
                "要减去的是两个里较大的那个，每个查询各自的。",
                "what to take off is the larger of the two, for each query by itself.",
            ),
        ),
        Rule(
            "one_blind",
            1,
            ("一边是 −inf，结果就是另一边", "where one side is −inf, the result is the other"),
            (
                "−inf 的一边权重是 0：exp(−inf) 正好是 0。",
                "the side with −inf has weight 0: exp(−inf) is just that.",
            ),
        ),
        Rule(
            "both_blind",
            1,
            (
                "两边都是 −inf：out 是 0，lse 是 −inf，没有 NaN",
                "where both are −inf, out is 0 and lse −inf, without NaN",
            ),
            (
                "−inf 减 −inf 是 NaN：先找出这些查询，在相减之前换掉一边。",
                "−inf minus −inf is NaN: find these queries, replace a side before you subtract.",
            ),
        ),
        Rule(
            "types",
            1,
            ("形状和类型不变，float32 也对", "shapes and types stay, in float32 too"),
            (
                "不要转成 double：在 float32 里减去较大的，一样稳定。",
                "no double: with the larger taken off, float32 is as stable.",
            ),
        ),
        Rule(
            "gradient",
            2,
            (
                "四个输入的梯度都对",
                "the gradients of all four inputs are right",
            ),
            _GRADIENT,
        ),
        Rule(
            "blind_gradient",
            2,
            (
                "有看不见的查询时，梯度里也没有 NaN",
                "no NaN in the gradients where queries see nothing",
            ),
            _BEFORE,
        ),
        Rule(
            "unchanged",
            1,
            ("输入保持原样", "the inputs are left as they were"),
            (
                "不要用带下划线的原地操作，比如 mul_、copy_。",
                "no in-place operations, such as mul_ or copy_.",
            ),
            about_input=True,
        ),
    ),
    3: (
        Rule(
            "contiguous",
            1,
            (
                "按顺序切，每个 rank 的结果等于一个进程的注意力",
                "cut in order, each rank's result is the attention of one process",
            ),
            (
                "掩码全部挡住的块不用算，但照样传。",
                "a block that is masked altogether needs no computing, but travels on.",
            ),
        ),
        Rule(
            "head_tail",
            1,
            (
                "首尾配对切，每个 rank 的结果等于一个进程的注意力",
                "split head-tail, each rank's result is the attention of one process",
            ),
            _GLOBAL,
        ),
        Rule(
            "any",
            2,
            (
                "随便怎么切，结果都等于一个进程的注意力",
                "the same for any other split",
            ),
            _GLOBAL,
        ),
        Rule("dq", 1, ("q 的梯度对", "the gradient of q is right"), _GRADIENT),
        Rule(
            "dkv",
            2,
            (
                "k 和 v 的梯度对：别的 rank 的贡献都回来了",
                "the gradients of k and v are right: the other ranks' parts have come home",
            ),
            _GRADIENT,
        ),
        Rule(
            "shifts",
            2,
            (
                "K/V 只用 shift 沿环传，每个 rank 不多不少送出 cp − 1 块（结果要对）",
                "K/V travel by shift alone; every rank sends cp − 1 blocks, no more and no less "
                "(with the right result)",
            ),
            (
                "最后一步之后不用再传；没有 all-gather。",
                "no shift after the last step; no all-gather.",
            ),
        ),
        Rule(
            "load",
            1,
            (
                "KV 头原样传：一次最多一块的 K 和 V（结果要对）",
                "KV heads travel as they are: at most one block of K and V at a time (with the "
                "right result)",
            ),
            (
                "partial_attention 自己会分组：不要复制 KV 头，Q 不用传。",
                "partial_attention groups heads itself: repeat no KV heads, and leave Q at home.",
            ),
        ),
        Rule(
            "largest",
            1,
            (
                "一步只算手里的一块，不攒着所有的块（结果要对）",
                "a step computes with the block at hand; none are hoarded (with the right result)",
            ),
            (
                "来一块，算一块，合并一块。",
                "a block comes, is computed, is merged.",
            ),
        ),
        Rule(
            "skips",
            1,
            (
                "看不见的查询和键不送进 partial_attention（结果要对）",
                "queries and keys that are not seen do not go into partial_attention (with the "
                "right result)",
            ),
            (
                "沿两个维各做一次 any：哪些查询、哪些键用得着。",
                "an any along each of the two dims says which queries and which keys are needed.",
            ),
        ),
        Rule(
            "sent",
            1,
            (
                "返回 (out, sent)：sent 是这个 rank 送出的字节数，是 int",
                "(out, sent) is returned, and sent is the bytes that this rank sends, as an int",
            ),
            (
                "x.nbytes 是一个张量的字节数；每传一次加一次。",
                "x.nbytes is the bytes of a tensor; add with every shift.",
            ),
        ),
    ),
}
