"""The few sentences that the helpers themselves say, in the notebook's language."""

_TEXT = {
    "zh": {
        "open": '还没有完成：把 raise NotImplementedError("{key}") 换成你的代码，'
        "运行那个单元，再运行这个检查。",
        "undefined": "还没有定义 {name}：先运行它所在的单元，再运行这个检查；"
        "函数名要和题目里的一样。",
        "outdated": "{key} 单元最近一次运行没有生效（语法错误，或函数改了名）："
        "函数必须叫 {name}。改好、运行它，再运行这个检查。",
        "optional": "选做，可以跳过。",
        "passed": "{count} 次调用全部正确。",
        "never_called": "这个检查没有调用你的函数：检查单元被改动了，从原文件复制回来。",
        "waiting": "先让 {names} 通过检查，再运行这个单元。",
        "waiting_check": "它要用到 {names}：先让 {names} 通过检查，再运行这个检查。",
        "and": "、",
        "input": "输入",
        "rule": "规则",
        "expected": "期望",
        "actual": "实际",
        "hint": "提示",
        "where": "位置",
        "where_line": "第 {line} 行，{text}",
        "raised": "函数不应抛出异常",
        "changed": "函数不能改动它的输入，嵌套的值也不行",
        "was": "调用前 {value}",
        "now": "调用后 {value}",
        "nothing": "函数没有返回值：是不是忘了 return？",
        "type": "应返回 {kind}，不是 {got}",
        "type_at": "{place} 应是 {kind}，不是 {got}",
        "kept": "每次调用都要新建结果：后来的调用改动了之前的结果",
        "no_asserts": "Python 以 -O 运行，assert 都失效了：去掉 -O 或 PYTHONOPTIMIZE 再来。",
        "keys": "多出的键：{extra}；缺少的键：{missing}",
        "proof_off": "没有启动进程。把 RUN_PROOF 改成 True 再运行这个单元，就在真实进程里验证；"
        "不运行也算学完本课。",
        "proof_torch": "这个证明需要 torch ≥ {wanted}，这里是 {have}。不运行也算学完本课。",
        "proof_carry": "证明带不走 {name}（{kind}）：函数只能用导入的模块、数字和自己定义的函数。",
        "proof_start": "启动 {ranks} 个进程，最多 {seconds} 秒；可以随时中断。",
        "proof_up": "{ranks} 个进程都已就绪（{seconds} 秒）。",
        "proof_done": "证明完成，共 {seconds} 秒。",
        "proof_failed": "rank {rank} 失败：{said}",
        "proof_late": "{seconds} 秒后仍未结束的 rank：{ranks}。已全部停止。",
        "proof_impossible": "这里启动不了进程（{reason}）。不运行也算学完本课。",
    },
    "en": {
        "open": 'not done yet: replace raise NotImplementedError("{key}") with your code, '
        "run that cell, then run this check.",
        "undefined": "{name} is not defined yet: run its cell first, then this check; "
        "keep the function's name as given.",
        "outdated": "the last run of the {key} cell did not take effect (a syntax error, or a "
        "renamed function): the function must be called {name}. Mend and run it, then this check.",
        "optional": "optional, you may skip it. ",
        "passed": "all {count} calls correct.",
        "never_called": "this check never called your function: its cell was changed; "
        "copy it back from the original file.",
        "waiting": "first get {names} to pass, then run this cell again.",
        "waiting_check": "it calls {names}: first get {names} to pass, then run this check.",
        "and": ", ",
        "input": "input",
        "rule": "rule",
        "expected": "expected",
        "actual": "actual",
        "hint": "hint",
        "where": "where",
        "where_line": "line {line}, {text}",
        "raised": "the function must not raise an exception",
        "changed": "the function must not change its input, nested values included",
        "was": "before the call {value}",
        "now": "after the call {value}",
        "nothing": "the function returns nothing: is return missing?",
        "type": "it should return {kind}, not {got}",
        "type_at": "{place} should be {kind}, not {got}",
        "kept": "each call makes a new result: a later call changed an earlier one",
        "no_asserts": "Python runs with -O, which switches asserts off: "
        "start it without -O or PYTHONOPTIMIZE.",
        "keys": "unexpected keys: {extra}; missing keys: {missing}",
        "proof_off": "nothing was started. Set RUN_PROOF = True and run this cell again to prove "
        "it in real processes; the lesson is complete without.",
        "proof_torch": "this proof needs torch ≥ {wanted}, here is {have}. "
        "The lesson is complete without.",
        "proof_carry": "the proof cannot take {name} ({kind}) along: functions may use imported "
        "modules, numbers and functions of your own.",
        "proof_start": "starting {ranks} processes, {seconds} seconds at most; "
        "you can interrupt at any time.",
        "proof_up": "{ranks} processes are up ({seconds} s).",
        "proof_done": "proved, {seconds} s in all.",
        "proof_failed": "rank {rank} failed: {said}",
        "proof_late": "not finished after {seconds} s: rank {ranks}. Everything is stopped.",
        "proof_impossible": "no processes can be started here ({reason}). "
        "The lesson is complete without.",
    },
}
_spoken = "zh"


def speak(language: str) -> None:
    """Choose the language of the helpers' sentences: ``"zh"`` or ``"en"``.

    Raises:
        ValueError: for any other language.
    """
    global _spoken
    if language not in _TEXT:
        raise ValueError(f"language {language!r} is not one of {', '.join(_TEXT)}")
    _spoken = language


def say(key: str, /, **values: object) -> str:
    """The sentence ``key`` in the chosen language, its placeholders filled."""
    return _TEXT[_spoken][key].format(**values)
