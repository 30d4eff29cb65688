"""What the grader says: statuses and notes, in Chinese and in English."""

from collections.abc import Mapping
from typing import Any

from parlab.grade.notes_in import NOTES_IN
from parlab.grade.types import Note

LANGUAGES = ("zh", "en")
LONGEST = 600  # characters of one value in a note

# Status → its name and what it means for the student.
STATUS = {
    "grader_error": (
        ("评分程序出错", "grader error"),
        (
            "评分程序自己出了错，这不是你的问题。老师会处理，没有分数被记下。",
            "the grader itself failed. This is not your fault: your teacher will look at it, and "
            "no points were recorded.",
        ),
    ),
    "unreadable": (
        ("无法读取", "unreadable"),
        (
            "交上来的文件读不出笔记本。请重新下载 .ipynb 文件，再交一次。",
            "no notebook could be read from what was handed in. Download the .ipynb file again "
            "and hand it in once more.",
        ),
    ),
    "wrong_lesson": (
        ("不是这一课", "wrong lesson"),
        (
            "交上来的是另一课的笔记本。请交这一课的。",
            "this is another lesson's notebook. Hand in the one of this lesson.",
        ),
    ),
    "missing_answers": (
        ("缺少答案", "missing answers"),
        (
            "有的 TODO 找不到函数。看下面的说明：改了名的，改回原来的名字；"
            "单元没有了的，从原来的练习里复制回来，再写一遍。",
            "the function of a TODO is not there: see below. Give one that was renamed its name "
            "back; copy a cell that is gone from the exercise and fill it in again.",
        ),
    ),
    "tampered": (
        ("运行被改动", "tampered"),
        (
            "笔记本改动了检查它的程序，所以没有得分。如果是无意的，请和老师说。",
            "the notebook changed the program that checks it, so it scores nothing. If you did "
            "not mean to, talk to your teacher.",
        ),
    ),
    "memory": (
        ("内存用尽", "out of memory"),
        (
            "运行用掉了允许的全部内存。找一找越来越长的列表，或者太大的张量。",
            "the run used up all the memory that it may have. Look for a list that keeps growing, "
            "or a tensor that is too large.",
        ),
    ),
    "output_limit": (
        ("输出过多", "too much output"),
        (
            "打印或返回的内容太多了。去掉循环里的 print。",
            "it printed or returned too much. Remove the print inside a loop.",
        ),
    ),
    "timeout": (
        ("超时", "timed out"),
        (
            "运行时间太长，被停下了。找一找不会结束的循环。",
            "it ran too long and was stopped. Look for a loop that does not end.",
        ),
    ),
    "kernel_died": (
        ("内核退出", "kernel died"),
        (
            "运行到一半，内核退出了。去掉 exit、quit 或 os._exit 这样的调用。",
            "the kernel was gone half-way. Remove calls such as exit, quit or os._exit.",
        ),
    ),
    "does_not_run": (
        ("代码运行不了", "does not run"),
        (
            "有 TODO 的代码运行不了，函数一次也没有被调用。先改好下面的错误。",
            "the code of a TODO does not run, so its function was never called. Mend the error "
            "below first.",
        ),
    ),
    "unfinished": (
        ("没有做完", "unfinished"),
        (
            "还有 TODO 没有写。写好之后再交一次。",
            "a TODO is still to be written. Write it and hand in again.",
        ),
    ),
    "partial": (
        ("部分正确", "partly right"),
        (
            "都运行了，还有规则没有满足。看下面的最小反例。",
            "everything ran; some rules are not met yet. See the smallest failing cases below.",
        ),
    ),
    "ok": (
        ("全部正确", "all right"),
        ("所有规则都满足，做得好！", "all rules are met. Well done!"),
    ),
    "no_submission": (
        ("没有提交", "not handed in"),
        ("名单上有，但没有收到提交。", "on the list, but nothing was handed in."),
    ),
}

NOTES: Mapping[str, tuple[str, str]] = {
    **NOTES_IN,
    # the session
    "grader_error": (
        "评分程序出错：{said}。详细记录在 {log}。",
        "the grader failed: {said}. More in {log}.",
    ),
    "same_key": (
        "另一份提交也叫 {key}：两份都保留，名字加了编号。",
        "another submission is called {key} too: both are kept, this one with a number.",
    ),
    # the run
    "run_again": (
        "第一次运行的结论是 {status}，再运行一次没有重现：以第二次为准。",
        "a first run came to {status}, a second did not: the second counts.",
    ),
    "markers_ignored": (
        "单元 {cell} 里有给检查程序的标记，没有理会。",
        "markers for the checking program in cell {cell} were ignored.",
    ),
    "canary_passed": (
        "单元 {cell} 之后，一个必定失败的检查竟然通过了。",
        "after cell {cell} a check that must fail passed.",
    ),
    "reply_differs": (
        "单元 {cell} 报告的状态和实际的不一样。",
        "the status that cell {cell} reported is not what happened.",
    ),
    "forged_message": (
        "单元 {cell} 送出了伪造的消息。",
        "cell {cell} sent a forged message.",
    ),
    "output_cut": (
        "输出超过 {mb} MB，多出的被截掉。",
        "the output went over {mb} MB and was cut.",
    ),
    "timeout": ("超过 {seconds} 秒，被停下。", "stopped after {seconds} seconds."),
    "memory": ("超过 {mb} MB 内存，被停下。", "stopped at {mb} MB of memory."),
    "kernel_died": ("单元 {cell} 让内核退出了。", "cell {cell} ended the kernel."),
    # one case
    "case_unanswered": (
        "函数没有运行到这个用例：前面的调用让它停下了。",
        "the function did not get to this case: an earlier call stopped it.",
    ),
    "case_not_alone": (
        "单独调用时这个用例是对的，在别的调用之后才错：函数把什么留到了下一次调用，"
        "比如函数外面的列表，或者默认参数里的列表。",
        "called alone this case comes out right; it fails only after other calls. The function "
        "keeps something from one call to the next, such as a list outside of it or a list as a "
        "default argument.",
    ),
    "case_raised": ("函数抛出了 {type}。", "the function raised {type}."),
    "case_line": ("位置：第 {line} 行，{text}", "where: line {line}, {text}"),
    "case_not_plain": (
        "返回值含有 {type}：只能返回普通的数、字符串、列表、字典或张量。",
        "the result holds a {type}: return plain numbers, strings, lists, dicts or tensors.",
    ),
    "case_changed_input": (
        "函数改动了它的输入。调用前：{was}；调用后：{now}",
        "the function changed its input. Before: {was}; after: {now}",
    ),
    "case_shares_input": (
        "结果里有和输入共用的列表或字典：输入后来一变，结果也跟着变了。",
        "the result shares a list or dict with the input: when the input changed later, so did "
        "the result.",
    ),
    "case_nothing": (
        "函数没有返回值：是不是忘了 return？",
        "the function returned nothing: is a return missing?",
    ),
    "case_type": (
        "类型不对：{place} 应是 {wanted}，不是 {got}。",
        "wrong type: {place} should be {wanted}, not {got}.",
    ),
    "case_keys": (
        "多出的键：{extra}；缺少的键：{missing}。",
        "keys too many: {extra}; keys missing: {missing}.",
    ),
    "case_slow": ("调用没有在时限内结束。", "the call did not end in time."),
    "case_ranks_left": (
        "有的 rank 结束了，别的 rank 还在等它：每个 rank 要按同样的顺序做同样的通信。",
        "a rank was done while others waited for it: every rank calls the same operations in "
        "the same order.",
    ),
    "case_ranks_differ": (
        "两个 rank 做的通信不一样：操作、形状、类型都要相同。",
        "two ranks called different operations: the operation, shape and dtype must be the same.",
    ),
    "case_timeout": ("调用超时。", "the call took too long."),
    "case_memory": ("调用用尽了内存。", "the call ran out of memory."),
    "case_kernel_died": ("调用让进程退出了。", "the call ended the process."),
    "case_output_limit": ("返回的内容太多。", "too much came back."),
    "case_not_defined": (
        "单元运行之后，没有这个名字的函数。{said}",
        "after the cell ran there is no function of this name. {said}",
    ),
    "case_source_raised": (
        "单元本身运行出错：{said}",
        "the cell itself failed when run: {said}",
    ),
    "case_syntax": ("单元有语法错误：{said}", "the cell has a syntax error: {said}"),
}


def status_name(status: str, language: str) -> str:
    """A status as people call it; an unknown one as it is."""
    names = STATUS.get(status)
    return names[0][LANGUAGES.index(language)] if names else status


def status_text(status: str, language: str) -> str:
    """What a status means, for the student."""
    names = STATUS.get(status)
    return names[1][LANGUAGES.index(language)] if names else ""


def say(note: Note, language: str) -> str:
    """A note as a sentence. One without a text is shown as key and values, never an error."""
    key, values = note
    given = {name: _word(value, language) for name, value in values.items()}
    text = NOTES.get(key)
    if text is not None:
        try:
            return text[LANGUAGES.index(language)].format_map(given)
        except (KeyError, IndexError, ValueError):
            pass
    return ", ".join([key, *(f"{name} = {value}" for name, value in given.items())])


def _word(value: Any, language: str) -> str:
    """A value in a sentence: lists joined, long text cut."""
    if isinstance(value, list | tuple):
        return ("、" if language == "zh" else ", ").join(_word(item, language) for item in value)
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
