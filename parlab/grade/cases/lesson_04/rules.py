"""What the three TODOs of lesson 04 are scored by. Each TODO's weights add up to 10."""

from parlab.grade.cases import Rule

EACH = 12  # cases of one rule

_UNCHANGED = Rule(
    "unchanged",
    1,
    ("输入保持原样，嵌套的值也是", "the input is left as it was, nested values included"),
    (
        "不要往输入里写。排序用 sorted，不用 list.sort；要改的话，先复制。",
        "do not write into the input. Use sorted, not list.sort; copy first what you change.",
    ),
    about_input=True,
)
_FRESH = Rule(
    "fresh",
    1,
    (
        "每次调用都新建结果：后来的调用不改动之前的结果",
        "every call makes a new result: a later call does not change an earlier one",
    ),
    (
        "把列表建在函数里面：放在函数外面、或者放在默认参数里的列表，所有调用共用一个。",
        "make the list inside the function: one outside of it, or one as a default argument, is "
        "the same for all calls.",
    ),
)
_AXIS = (
    "看这条规则里的两个数：数量对的是哪个轴？能整除就是余数为 0，大小关系说明不了什么。",
    "look at the two numbers of this rule: which axis does this size go with? It divides evenly "
    "when the remainder is 0; which of the two is larger says nothing.",
)
_GATE = (
    "看这道门槛的两个数：metrics 的哪一项，和 limits 的哪一项比？",
    "look at the two numbers of this gate: which entry of metrics is compared with which limit?",
)


def _named(hint: tuple[str, str], **texts: tuple[str, str]) -> tuple[Rule, ...]:
    return tuple(Rule(key, 1, text, hint) for key, text in texts.items())


RULES = {
    1: (
        Rule(
            "mesh_product",
            1,
            ("pp × tp × cp 等于 world size", "pp × tp × cp equals the world size"),
            (
                "乘积要正好等于 world size：不是整除它，不是和，大了小了都不行。",
                "the product must equal the world size: not divide it, not the sum, "
                "neither more nor less.",
            ),
        ),
        *_named(
            _AXIS,
            pipeline_layers=("层数能被 pp 整除", "pp divides the number of layers"),
            attention_heads=("头数能被 tp 整除", "tp divides the number of heads"),
            kv_heads=("KV 头数能被 tp 整除", "tp divides the number of KV heads"),
            context_blocks=("序列长度能被 cp 整除", "cp divides the sequence length"),
        ),
        Rule(
            "several",
            2,
            (
                "恰好报告不满足的规则，几条同时不满足也一样",
                "exactly the broken rules are reported, several at once too",
            ),
            (
                "每条规则单独判断：不要在发现第一个错误时就返回，也不要用 elif。",
                "judge each rule on its own: do not return at the first error, and use no elif.",
            ),
        ),
        Rule(
            "without_kv_heads",
            1,
            (
                "没有 num_kv_heads、或者它是 None，就不检查 KV 头",
                "without num_kv_heads, or with None, KV heads are not checked",
            ),
            (
                "先问这个键有没有值。字典的 get 方法把“没有”和“None”合成一种情况。",
                "ask first whether the key has a value. A dict's get method makes “absent” and "
                "“None” one case.",
            ),
        ),
        _FRESH,
        _UNCHANGED,
    ),
    2: (
        Rule(
            "runtime",
            1,
            ("failure 不是空的，就报告 runtime", "runtime is reported where failure is not empty"),
            (
                "failure 可以是字符串，也可以是字典；None 和没有这个键都算空。",
                "failure may be a string or a dict; None and a missing key both count as empty.",
            ),
        ),
        *_named(
            _GATE,
            memory=("峰值显存不超过 memory_mb", "peak memory is not above memory_mb"),
            bubble=("气泡占比不超过上限", "the bubble ratio is not above its limit"),
            communication=("通信占比不超过上限", "the communication ratio is not above its limit"),
        ),
        Rule(
            "edge",
            1,
            ("恰好等于上限算通过，多一点都不行", "equal to the limit passes, a hair above fails"),
            (
                "失败的条件是严格大于。不要取整，不要留容差。",
                "failing means strictly greater. Do not round and leave no tolerance.",
            ),
        ),
        Rule(
            "several",
            2,
            ("几道门槛同时不通过，全部报告", "several gates fail: all are reported"),
            (
                "每道门槛单独判断，不要在第一道就返回。",
                "judge each gate on its own, do not return at the first.",
            ),
        ),
        Rule(
            "copy",
            1,
            (
                "结果是 metrics 的深拷贝，加上 eligible 和 gate_failures",
                "the result is a deep copy of metrics with eligible and gate_failures",
            ),
            (
                "其余的键都要原样带上；嵌套的列表和字典也要是新的，旧的结论要被覆盖。",
                "carry all other keys along; nested lists and dicts must be new ones, and an "
                "earlier verdict is replaced.",
            ),
        ),
        _FRESH,
        _UNCHANGED,
    ),
    3: (
        Rule(
            "throughput",
            2,
            ("吞吐最高的当选，领先再小也算", "the highest throughput wins, by any margin"),
            (
                "先比吞吐，越大越好。不要取整，也不要让通信和显存抢在前面。",
                "throughput first, more is better. Do not round, and do not let communication or "
                "memory come before it.",
            ),
        ),
        Rule(
            "communication",
            2,
            (
                "吞吐相同，选通信占比最低的",
                "on equal throughput the lowest communication ratio wins",
            ),
            (
                "第二项是通信占比，越小越好：它和吞吐方向相反。",
                "the second item is the communication ratio, less is better: it points the other "
                "way than throughput.",
            ),
        ),
        Rule(
            "memory",
            2,
            (
                "吞吐和通信都相同，选峰值显存最低的",
                "on equal throughput and communication the lowest peak memory wins",
            ),
            (
                "第三项是峰值显存，越小越好。比较的是数，不是字符串。",
                "the third item is peak memory, less is better. Compare numbers, not strings.",
            ),
        ),
        Rule(
            "eligible",
            2,
            ("只在合格的候选里选", "only eligible candidates are considered"),
            (
                "没有通过门槛的候选再快也不能选。",
                "a candidate that failed the gates is never chosen, however fast.",
            ),
        ),
        Rule(
            "nobody",
            1,
            ("一个合格的都没有，就 reject", "reject where no candidate is eligible"),
            (
                "空列表、没有合格者：decision 是 reject，candidate 是 None。",
                "an empty list, or nobody eligible: decision is reject, candidate is None.",
            ),
        ),
        _UNCHANGED,
    ),
}
