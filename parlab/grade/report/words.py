"""The pages' own words, in Chinese and in English."""

_WORDS: dict[str, tuple[str, str]] = {
    "lang": ("zh-CN", "en"),
    "feedback": ("反馈", "Feedback"),
    "class": ("全班情况", "The class"),
    "points": ("分", "points"),
    "of": ("满分", "of"),
    "no_points": ("没有分数", "no points"),
    "corrected": ("人工更正", "Corrected by hand"),
    "was": ("原来", "was"),
    "total": ("总分", "Total"),
    "status": ("状态", "Status"),
    "student": ("学生", "Student"),
    "rules": ("规则", "Rules"),
    "met": ("满足", "met"),
    "not_met": ("没有满足", "not met"),
    "not_counted": ("有了得分的规则才计入", "counts once another rule is met"),
    "not_judged": (
        "没有评：它的用例要用到上面没满足的规则",
        "not judged: its cases depend on a rule above that is not met",
    ),
    "how_points": (
        "每条规则后面是做对的用例数和这条规则的分：用例全对才得这条的分，错一个就不得，没有评的（–）也不得；"
        "各条得到的分加起来就是这个 TODO 的分。",
        "after each rule stand its cases that came out right and its points: a rule earns its "
        "points when all of its cases are right, and none otherwise, nor where it was not judged "
        "(–); a TODO's points are the sum.",
    ),
    "stopped": (
        "被停下的 TODO 不得分，不管下面哪些规则做对了。",
        "a TODO that was stopped earns nothing, whichever rules below are met.",
    ),
    "smallest": ("找到的最小反例", "Smallest failing case found"),
    "try_it": (
        "把它复制到 TODO 单元下面的新单元里，自己运行看看：",
        "copy it into a new cell below your TODO and run it yourself:",
    ),
    "rule": ("规则", "Rule"),
    "expected": ("期望", "Expected"),
    "actual": ("实际", "Yours"),
    "why": ("看到的", "What we see"),
    "hint": ("提示", "Hint"),
    "found": ("整理提交时注意到的", "Noticed while taking in your notebook"),
    "found_why": (
        "下面的改动已经替你还原，不扣分。",
        "these were put back as they should be; they cost no points.",
    ),
    "state_stub": ("还没有写：题目原样留着。", "still to be written: the stub is unchanged."),
    "state_missing": (
        "找不到这个 TODO 的单元或函数。",
        "the cell or the function of this TODO is not there.",
    ),
    "not_called": ("没有评到这一题。", "this TODO was not reached."),
    "all_met": ("所有规则都满足。", "All rules are met."),
    "check_differs": (
        "笔记本里的检查是通过的；评分用的用例更多，还有一些没有通过。",
        "the check in the notebook passes; grading uses more cases, and some of them fail.",
    ),
    "cases": ("个用例", "cases"),
    "made_by": ("由 parlab grade 生成", "Made by parlab grade"),
    "seed": ("用例种子", "cases from seed"),
    "handed_in": ("份提交", "handed in"),
    "absent": ("人没有提交", "not handed in"),
    "mean": ("平均", "mean"),
    "median": ("中位数", "median"),
    "picture": (
        "上图：总分（横轴）和人数（纵轴），虚线是中位数。下图：每个 TODO 有多少人得全部的分"
        "（100%）、一部分（1–99%）、零分（0%）。",
        "Above: how many students (upwards) have which total (across); the dashed line is the "
        "median. Below: how many have all (100%), some (1–99%) and none (0%) of each TODO's "
        "points.",
    ),
    "by_todo": ("每个 TODO", "TODO by TODO"),
    "full": ("全对", "all right"),
    "part": ("部分", "partly"),
    "zero": ("零分", "zero"),
    "mistakes": ("最常见的错误", "Commonest mistakes"),
    "no_mistakes": ("没有没满足的规则。", "No rule is broken."),
    "students": ("人", "students"),
    "help": ("谁需要帮助", "Who needs help"),
    "help_below": ("总分低于 60%，从低到高：", "totals below 60 %, the lowest first:"),
    "help_nobody": ("没有人低于 60%。", "Nobody is below 60 %."),
    "look": ("发成绩之前请看一看", "Look at these before the marks go out"),
    "statuses": ("状态", "Statuses"),
    "everyone": ("所有学生", "Everyone"),
    "lost": ("没有对上的更正", "Corrections that fit nobody"),
    "lost_why": (
        "corrections.csv 里的这些行找不到唯一的学生，没有生效：",
        "These lines of corrections.csv fit no student, or several, and had no effect:",
    ),
    "line": ("第 {line} 行", "line {line}"),
    "about": ("关于这一班", "About this class"),
    "files": ("文件", "Files"),
    "broken": ("没满足", "not met"),
}


def item_name(item: str, language: str) -> str:
    """What a hand correction is of, as people call it: ``TODO 2``, or the total."""
    return f"TODO {item}" if item.isdecimal() else words(language)["total"]


def words(language: str) -> dict[str, str]:
    """Every word in one language."""
    index = 0 if language == "zh" else 1
    return {key: both[index] for key, both in _WORDS.items()}
