"""What TODO 3 of lesson 02, the block, is scored by."""

from parlab.grade.cases import Rule
from parlab.grade.cases.lesson_02.linear_rules import LARGEST

BLOCK = (
    Rule(
        "y",
        3,
        (
            "每个 rank 的 y 都等于一个进程里的整个块",
            "each rank's y equals the whole block of one process",
        ),
        (
            "残差在求和之后加。头数用本地的，头的宽度从 wq 的列数来。",
            "add the residual after the sum. Use the local number of heads; a head's width "
            "comes from the columns of wq.",
        ),
    ),
    Rule(
        "grouped",
        1,
        (
            "几个 Q 头共用一个 KV 头时也对",
            "right where several Q heads share one KV head, too",
        ),
        (
            "Q 头和 KV 头各自按顺序切成 tp 段；一个 KV 头只在一个 rank 上。",
            "cut Q heads and KV heads in order into tp runs each; a KV head is on one rank.",
        ),
    ),
    Rule(
        "x_gradient",
        1,
        (
            "反向之后，每个 rank 都有 x 的完整梯度",
            "after backward every rank has the complete gradient of x",
        ),
        (
            "两段各要一个 enter；残差那条路不经过它。",
            "each of the two stretches needs an enter; the residual does not pass through it.",
        ),
    ),
    Rule(
        "weight_gradients",
        1,
        (
            "自己那几块权重的梯度等于完整梯度的那几块",
            "the gradients of a rank's blocks equal those blocks of the whole gradients",
        ),
        (
            "x 的梯度错了，前面一段的权重也会错：先看 enter。",
            "where x's gradient is wrong, the weights before it are wrong too: look at enter.",
        ),
    ),
    Rule(
        "norm_gradients",
        1,
        (
            "两个 norm 权重的梯度在每个 rank 上都是完整的",
            "the gradients of both norms are complete on every rank",
        ),
        (
            "enter 放在 norm 之后，流到 norm 的才是求过和的梯度。",
            "with enter behind the norm, what flows back into it has been summed.",
        ),
    ),
    Rule(
        "blocks",
        3,
        (
            "每个 rank 只读自己的块，norm 整个读（结果要对）",
            "each rank reads its own blocks only, and the norms whole (with the right result)",
        ),
        (
            "wq、wk、wv、w_gate、w_up 按列，wo、w_down 按行，都是第 r 段。",
            "wq, wk, wv, w_gate and w_up by columns, wo and w_down by rows: run r of each.",
        ),
    ),
    Rule(
        "forward",
        1,
        (
            "前向恰好 2 次 all-reduce，形状和 x 一样（结果要对）",
            "exactly 2 all-reduces forward, of x's shape (with the right result)",
        ),
        (
            "wo 之后一次，w_down 之后一次。",
            "one after wo, one after w_down.",
        ),
    ),
    Rule(
        "backward",
        1,
        (
            "反向恰好 2 次 all-reduce（x 的梯度要对）",
            "exactly 2 all-reduces backward (with the right gradient of x)",
        ),
        (
            "同一段的几个投影共用一个 enter 的结果。",
            "the projections of one stretch share the result of one enter.",
        ),
    ),
    Rule(
        "largest",
        1,
        (
            "没有完整的权重，也没有比自己的激活更大的张量",
            "no whole weight, and no tensor larger than the rank's activations",
        ),
        LARGEST,
    ),
    Rule(
        "sent",
        1,
        (
            "返回 (y, sent)：sent 是这个 rank 发出的字节数，是 int",
            "(y, sent) is returned, and sent is the bytes that this rank sends, as an int",
        ),
        (
            "4 次 all-reduce，每次 2(n − 1)/n 倍的数据；每个数几个字节由 x 决定。先乘后整除。",
            "4 all-reduces, each 2(n − 1)/n times the data; bytes of a number follow from x. "
            "Multiply first, divide last.",
        ),
    ),
)
