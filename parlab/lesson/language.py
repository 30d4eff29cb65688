"""The few sentences that the helpers themselves say, in the notebook's language."""

_TEXT = {
    "zh": {
        "open": '还没有完成：把 raise NotImplementedError("{key}") 换成你的代码，再运行这个检查。',
        "undefined": "还没有定义 {name}：先运行它所在的单元，再运行这个检查。",
        "passed": "{count} 次调用全部正确。",
        "waiting": "先完成 {label} 并通过它的检查，再运行这个单元。",
        "input": "输入",
        "rule": "规则",
        "expected": "期望",
        "actual": "实际",
        "where": "位置",
        "where_line": "第 {line} 行：{text}",
        "raised": "函数不应抛出异常",
        "changed": "函数不能改动它的输入，嵌套的值也不行",
        "was": "调用前 {value}",
        "now": "调用后 {value}",
        "type": "{value}（类型 {kind}）",
    },
    "en": {
        "open": 'not done yet: replace raise NotImplementedError("{key}") with your code, '
        "then run this check again.",
        "undefined": "{name} is not defined yet: run its cell first, then this check.",
        "passed": "all {count} calls right.",
        "waiting": "finish {label} and pass its check first, then run this cell again.",
        "input": "input",
        "rule": "rule",
        "expected": "expected",
        "actual": "actual",
        "where": "where",
        "where_line": "line {line}: {text}",
        "raised": "the function must not raise an exception",
        "changed": "the function must not change its input, nested values included",
        "was": "before the call {value}",
        "now": "after the call {value}",
        "type": "{value} (type {kind})",
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
