"""What the three TODOs of lesson 05 are scored by. Each TODO's weights add up to 10."""

from parlab.grade.cases import Rule

EACH = 12  # cases of one rule

_UNCHANGED = Rule(
    "unchanged",
    1,
    ("输入保持原样，嵌套的值也是", "the input is left as it was, nested values included"),
    (
        "不要往输入里写，也不要就地排序。要改的话，先复制。",
        "do not write into the input and do not sort it in place. Copy first what you change.",
    ),
    about_input=True,
)


def _rule(key: str, zh: str, en: str, hint_zh: str, hint_en: str, weight: int = 1) -> Rule:
    return Rule(key, weight, (zh, en), (hint_zh, hint_en))


RULES = {
    1: (
        _rule(
            "chunks",
            "嵌套、重叠、长度为 0 的计算块只算一次",
            "chunks that nest, overlap or have no length count once",
            "先 union，再做别的；minus 的两个参数都要先经过 union。",
            "union first, then the rest; both arguments of minus must have been through union.",
        ),
        _rule(
            "gaps",
            "夹在工作之间是其他；第一份工作之前、最后一份之后是空转",
            "between work it is other; before the first and after the last work it is idle",
            "工作指计算或暴露的通信。先找到第一份和最后一份工作。",
            "work is compute or exposed communication. Find the first and the last of it.",
        ),
        _rule(
            "exposed",
            "collective 和 ring：只有 blocked 是暴露，它不再算计算",
            "collective and ring: only what is in blocked is exposed, and that is no compute",
            "blocked 可以有好几段，也可以没有；只是在传的通信不算。",
            "blocked may hold several intervals or none; communication that is merely in flight "
            "does not count.",
            weight=2,
        ),
        _rule(
            "transfer",
            "传输在两边发起时刻中较晚的那个开始：之前是空转，之后是暴露",
            "a transfer begins at the later of its posts: idle before, exposed after",
            "start 和 peer_start 谁晚用谁；对方早就发起了，就没有等待。",
            "take the later of start and peer_start; where the peer was early there is no waiting.",
        ),
        _rule(
            "waiting",
            "计算块里的等待是空转；同时另有通信暴露着，算暴露",
            "waiting within a chunk is idle; where other communication is exposed, it is exposed",
            "先后次序：暴露谁也不让，等待让给暴露，计算让给前两者。",
            "the priorities: exposed yields to nobody, waiting to exposed, compute to both.",
        ),
        _rule(
            "step",
            "只看这一步之内的时间",
            "only the time within the step counts",
            "事件可以从上一步伸进来，也可以伸到下一步去：用 within 截取。",
            "events may reach in from the step before and out into the next: cut them by within.",
        ),
        _rule(
            "no_work",
            "一点工作都没有：整步都是空转",
            "no work at all: idle for the whole step",
            "没有工作时，合并的结果是空列表，不能取它的第一项。",
            "without any work the joined list is empty and has no first item.",
        ),
        _rule(
            "together",
            "6 条规则一起成立，四部分合起来正好是一步",
            "all 6 rules hold together, and the four parts are exactly the step",
            "先让前面的规则都通过，再看它们怎样互相影响。",
            "get the rules above to pass first, then see how they act on each other.",
        ),
        _UNCHANGED,
    ),
    2: (
        _rule(
            "average",
            "占比是各 rank 的时间除以一步，再对 rank 求平均",
            "a ratio is each rank's time over the step, averaged over the ranks",
            "不是相加，不是取最大，不取整，也不用百分数；other 不是空转。",
            "neither summed nor the largest, not rounded, not in percent; other is not idle.",
            weight=2,
        ),
        _rule(
            "edges",
            "晚开始之前、早结束之后，等别人的时间也是空转",
            "waiting for others before a late start and after an early end is idle too",
            "在一步里，这个 rank 的空转 = 它的 idle + 开始之前 + 结束之后。",
            "within the step a rank is idle for its idle, and before it starts and after it ends.",
            weight=2,
        ),
        _rule(
            "denominator",
            "分母是整步的长度",
            "the denominator is the length of the whole step",
            "不是这个 rank 自己的窗口，也不是它的计算时间。",
            "not this rank's own window, and not its compute time.",
        ),
        _rule(
            "step",
            "一步从最先的开始到最后的结束",
            "the step runs from the first start to the last end",
            "最先开始的和最后结束的可以是不同的 rank；step 是一个长度。",
            "first to start and last to end may be different ranks; step is one length.",
            weight=2,
        ),
        _rule(
            "clocks",
            "先换到同一个时钟：自己的时刻加上 clock_offset",
            "put all on one clock first: own moments plus clock_offset",
            "是加，不是减；开始和结束都要加，之后才能比较。",
            "plus, not minus; both to start and end, and only then compare them.",
            weight=2,
        ),
        _UNCHANGED,
    ),
    3: (
        _rule(
            "level",
            "证据等级由设备和机器数决定，没有设备就是 analytic",
            "the evidence level follows from device and machines; without a device it is analytic",
            "CPU 上有几台机器都是 cpu_gloo；GPU 上才看是一台还是多台。",
            "on CPU it is cpu_gloo with any number of machines; only on GPUs that number matters.",
        ),
        _rule(
            "crowded",
            "拥挤：在 CPU 上，并且 rank 比所有机器的核还多",
            "crowded: on CPU, with more ranks than cores in all machines",
            "一样多不算拥挤；GPU 上不看核数；没有运行就没有核数，先看等级。",
            "as many is not crowded; on GPUs cores do not matter; where nothing ran there are no "
            "cores, so look at the level first.",
        ),
        _rule(
            "efficiency",
            "扩展效率 = 吞吐中位数 / (rank 数 × 基线的吞吐中位数)",
            "scaling efficiency = median throughput / (ranks × the baseline's median)",
            "用 median；写进 metrics 里；要除以 rank 数。",
            "take the median; write it into metrics; divide by the number of ranks.",
        ),
        _rule(
            "comparable",
            "基线不能比时，扩展效率保持 None",
            "where the baseline cannot be compared with, scaling efficiency stays None",
            "5 个条件缺一不可：测到了、有基线、基线没失败、等级相同、指纹相同。",
            "all 5 conditions: measured, a baseline, it did not fail, same level, same "
            "fingerprint.",
        ),
        _rule(
            "reasons",
            "metrics 里的每个 None 都有原因，已有的保留，失败的写明种类",
            "each None in metrics has a reason, given ones stay, a failure's kind is in it",
            "先算效率，再写原因：不缺的不写；已有的不覆盖；失败时把 failure['kind'] 写进去。",
            "efficiency first, reasons after: none for what is there, no given one replaced, and "
            "failure['kind'] in it where the run failed.",
        ),
        _rule(
            "kept",
            "原有的内容都要留下，没测到的仍是 None",
            "all that was there stays, and what was not measured is still None",
            "只有扩展效率可以填上；metrics 里的 None 不换成 0。",
            "only the scaling efficiency may be filled in; a None in metrics does not become 0.",
        ),
        _rule(
            "gates",
            "运行失败时，门槛里的 None 换成 0，测到的数照用；没失败就不换",
            "if the run failed each None for the gates becomes 0, measured numbers stay; else not",
            "用 is None 判断，测到的 0 也是一个数；没有失败的不能换。",
            "ask is None, since a measured 0 is a number too; without a failure nothing is put in.",
        ),
        _rule(
            "unmeasured",
            "没有失败却没测到：['unmeasured']，不调用 judge",
            "did not fail and was not measured: ['unmeasured'], and judge is not called",
            "先处理失败，再看 gates 里还有没有 None。",
            "deal with failure first, then see whether there is still a None in gates.",
        ),
        _rule(
            "judge",
            "judge 拿到 name、4 个数、failure 和 limits，照它说的写",
            "judge gets name, the 4 numbers, failure and limits, and its word is taken down",
            "失败的也要问 judge；取它结果里的 gate_failures。",
            "judge is asked about failed runs too; take gate_failures from its result.",
        ),
        _UNCHANGED,
    ),
}
