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
        "query_saw": "rank {rank}：位置 {query} 的查询看了位置 {key} 的键 {times} 次",
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
        "slow": "每次调用都要在 {seconds} 秒内结束：是不是有停不下来的循环，或者步数太多？",
        "in_time": "{seconds} 秒内返回",
        "not_ended": "{seconds} 秒后还在运行",
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
        "forward": "前向",
        "backward": "反向",
        "operation": "{operation}（{direction}，{shape}）",
        "need_tensor": "{operation} 要的是张量，不是 {got}",
        "stored_read": "权重在磁盘上，整个形状是 {shape}：先用切片读出一块，例如 weight[:, 0:2]",
        "uneven": "{operation}：第 {dim} 维是 {size}，不能平分给 {ranks} 个 rank",
        "rank_raised": "rank {rank} 抛出 {error}",
        "rank_left": "{gone} 已经结束，{waiting} 还在等第 {number} 次通信：{operation}。"
        "每个 rank 要做同样次数的通信",
        "rank_does": "rank {rank} 做 {operation}",
        "rank_differ": "第 {number} 次通信对不上：{one}，{other}。"
        "每个 rank 要按同样的顺序做同样的通信，形状也要一样",
        "rank_late": "{seconds} 秒还没有结束：{parts}",
        "rank_stuck": "rank {rank} 还在运行（{where}）",
        "rank_waits": "rank {rank} 在等 {operation}",
        "rank_stopped": "运行被中断",
        "bench_off": "没有启动任何进程：两个开关都关着。下面讲解随课程提供的示例记录。",
        "bench_both": "没有启动任何进程：两个开关只能打开一个。",
        "bench_packages": "没有启动任何进程：缺少 {names}。先运行 pip install {names}。",
        "bench_stopping": "正在停止：结束所有 rank，写下带 failure 的记录……",
        "bench_stopped": "已中断：所有进程都结束了，记录的 failure 写着 interrupted。",
        "bench_done": "✅ 用了 {seconds} 秒。下面的单元读你的记录。",
        "bench_failed": "❌ 用了 {seconds} 秒，有的组失败或被拒绝：原因见上面，失败的组也有记录。",
        "deciders_learner": "由你的函数决定，来自 {source}",
        "deciders_solution": "由参考答案的函数决定，来自 {source}",
        "deciders_none": "没有找到 {lesson}.ipynb："
        "做完第 04 课，把它放到（或上传到）这个 notebook 旁边",
        "deciders_open": "{source} 还没有做完：TODO {number}",
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
        "query_saw": "rank {rank}: the query at {query} has seen the key at {key} {times} time(s)",
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
        "slow": "each call must end within {seconds} s: is there an endless loop, or are there too "
        "many steps?",
        "in_time": "a result within {seconds} s",
        "not_ended": "still running after {seconds} s",
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
        "forward": "forward",
        "backward": "backward",
        "operation": "{operation} ({direction}, {shape})",
        "need_tensor": "{operation} takes a tensor, not {got}",
        "stored_read": "the weight lies on disk, its whole shape is {shape}: read a block of it "
        "first, such as weight[:, 0:2]",
        "uneven": "{operation}: dim {dim} has {size}, which {ranks} ranks cannot share evenly",
        "rank_raised": "rank {rank} raised {error}",
        "rank_left": "{gone} ended while {waiting} waited in operation {number}: {operation}. "
        "Every rank must take part in the same number of operations",
        "rank_does": "rank {rank} calls {operation}",
        "rank_differ": "operation {number} does not match: {one}, {other}. "
        "Every rank must call the same operations in the same order, on the same shapes",
        "rank_late": "not finished after {seconds} seconds: {parts}",
        "rank_stuck": "rank {rank} is still running ({where})",
        "rank_waits": "rank {rank} waits in {operation}",
        "rank_stopped": "the run was interrupted",
        "bench_off": "nothing was started: both switches are off. "
        "What follows explains the example records that come with the course.",
        "bench_both": "nothing was started: turn on only one of the two switches.",
        "bench_packages": "nothing was started: {names} is missing. First run pip install {names}.",
        "bench_stopping": "stopping: ending every rank, writing a record with the failure …",
        "bench_stopped": "interrupted: every process has ended, and the record says so in failure.",
        "bench_done": "✅ took {seconds} s. The cells below read your records.",
        "bench_failed": "❌ took {seconds} s; some groups failed or were refused: the reasons "
        "stand above, and a group that failed has a record too.",
        "deciders_learner": "your functions decide, from {source}",
        "deciders_solution": "the reference solution's functions decide, from {source}",
        "deciders_none": "no {lesson}.ipynb found: finish lesson 04 and put it (or upload it) "
        "beside this notebook",
        "deciders_open": "{source} is not finished: TODO {number}",
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


def spoken() -> str:
    """The language chosen last."""
    return _spoken


def say(key: str, /, **values: object) -> str:
    """The sentence ``key`` in the chosen language, its placeholders filled."""
    return _TEXT[_spoken][key].format(**values)
