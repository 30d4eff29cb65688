"""What the two linear layers of lesson 02 are scored by. Values and gradients weigh most."""

from parlab.grade.cases import Rule

EACH = 3  # cases of one rule, with different numbers of ranks

_DIMS = Rule(
    "dims",
    1,
    (
        "x 前面有任意个维、内存不连续，结果也对",
        "right for any number of dims in front, and for an x that is not contiguous",
    ),
    (
        "矩阵乘只动最后一维，不需要改变形状。view 要求内存连续。",
        "a product touches the last dim only: reshape nothing. view wants contiguous memory.",
    ),
)
LARGEST = (
    "不要把自己那一块填成完整的大小，也不要先拼出完整的结果再切。",
    "do not pad your block to the whole size, and do not put the whole result together to cut it.",
)
_WEIGHT_GRADIENT = Rule(
    "weight_gradient",
    1,
    (
        "自己那一块权重的梯度等于完整梯度的那一块",
        "the gradient of a rank's block equals that block of the whole gradient",
    ),
    (
        "读出来的那一块就是叶子：直接用它，不要 detach，也不要放进 no_grad。",
        "what was read is a leaf: use it as it is, without detach and without no_grad.",
    ),
)

LINEAR = {
    1: (
        Rule(
            "y",
            3,
            (
                "每个 rank 的 y 等于完整结果里自己的那几列，形状是 [..., out / tp]",
                "each rank's y equals its columns of the whole result: [..., out / tp]",
            ),
            (
                "rank r 拥有第 r 段列：连续的一段，宽度是列数除以 rank 数。",
                "rank r owns run r of the columns: consecutive ones, columns over ranks of them.",
            ),
        ),
        _DIMS,
        Rule(
            "bias",
            1,
            (
                "自己那一段偏置只读一段、恰好加一次，梯度也对",
                "only the matching run of the bias is read, added exactly once, and its gradient "
                "is right",
            ),
            (
                "偏置和权重的列用同一个 slice。bias 可能是 None。",
                "the bias and the columns of the weight share one slice. bias may be None.",
            ),
        ),
        Rule(
            "x_gradient",
            2,
            (
                "反向之后，每个 rank 都有 x 的完整梯度",
                "after backward every rank has the complete gradient of x",
            ),
            (
                "一个 rank 算得出的只是 x 的梯度的一个加数。f 要放在乘法前面。",
                "a rank by itself has only a summand of x's gradient. f goes before the product.",
            ),
        ),
        _WEIGHT_GRADIENT,
        Rule(
            "block",
            2,
            ("只读第 r 段列", "run r of the columns is read, and nothing else"),
            (
                "在 weight 的第二个维上切片；切片之前不要把整个权重读出来。",
                "slice the second dim of weight; do not read the whole weight before you slice.",
            ),
        ),
        Rule(
            "forward",
            1,
            (
                "前向不通信（结果要对）",
                "no communication forward (with the right result)",
            ),
            (
                "列并行的每个 rank 留着自己的列：既不求和，也不拼。",
                "each rank keeps its columns: neither summed nor put side by side.",
            ),
        ),
        Rule(
            "backward",
            1,
            (
                "反向恰好 1 次 all-reduce（x 的梯度要对）",
                "exactly 1 all-reduce backward (with the right gradient of x)",
            ),
            (
                "x 经过 enter 恰好一次。",
                "x passes through enter exactly once.",
            ),
        ),
        Rule(
            "largest",
            1,
            (
                "没有比 x、自己的权重块和自己的 y 更大的张量",
                "no tensor is larger than x, the rank's block of the weight and its y",
            ),
            LARGEST,
        ),
    ),
    2: (
        Rule(
            "y",
            3,
            (
                "每个 rank 的 y 都等于完整的结果，形状是 [..., out]",
                "each rank's y equals the whole result: [..., out]",
            ),
            (
                "自己的 x 乘自己的那一段行，得到一个加数；各 rank 的加数求和。",
                "your x times your own rows gives a summand; sum the ranks' summands.",
            ),
        ),
        _DIMS,
        Rule(
            "bias",
            1,
            (
                "结果里恰好有一份偏置，也没有为它多通信一次",
                "the result holds exactly one bias, without an operation of its own",
            ),
            (
                "偏置在求和之前加，会被加几次？",
                "added before the sum, how often is the bias added?",
            ),
        ),
        Rule(
            "bias_gradient",
            1,
            (
                "每个 rank 的偏置梯度都是完整的（结果要对）",
                "the gradient of the bias is complete on every rank (with the right result)",
            ),
            (
                "除以 rank 数，值对了，梯度也被除了。",
                "divide by the number of ranks, and the value is right but the gradient divided.",
            ),
        ),
        Rule(
            "x_gradient",
            1,
            (
                "x 的梯度是完整梯度里自己的那一段",
                "the gradient of x is this rank's part of the whole gradient",
            ),
            (
                "x 已经是自己的那一段，梯度也只属于自己：不要再求和。",
                "x is your own part already and so is its gradient: do not sum it.",
            ),
        ),
        _WEIGHT_GRADIENT,
        Rule(
            "block",
            2,
            ("只读第 r 段行", "run r of the rows is read, and nothing else"),
            (
                "在 weight 的第一个维上切片；切片之前不要把整个权重读出来。",
                "slice the first dim of weight; do not read the whole weight before you slice.",
            ),
        ),
        Rule(
            "forward",
            1,
            (
                "前向恰好 1 次 all-reduce，形状和 y 一样（结果要对）",
                "exactly 1 all-reduce forward, of y's shape (with the right result)",
            ),
            (
                "一次求和就够：all-gather 再自己加，要收的数据是 tp 倍。",
                "one sum is enough: an all-gather to add up yourself brings tp times the data.",
            ),
        ),
        Rule(
            "backward",
            1,
            (
                "反向不通信（x 的梯度要对）",
                "no communication backward (with the right gradient of x)",
            ),
            (
                "all_reduce 的反向不通信；enter 在这里是多余的。",
                "backward of all_reduce does not communicate; enter is not needed here.",
            ),
        ),
        Rule(
            "largest",
            1,
            (
                "没有比自己的 x、自己的权重块和 y 更大的张量",
                "no tensor is larger than the rank's x, its block of the weight and y",
            ),
            LARGEST,
        ),
    ),
}
