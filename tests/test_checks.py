"""The helper behind every check: three states, copies of the input, strict comparison."""

import time

import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from lessons import Kernel

from parlab.lesson.checks import NotDone, Wrong
from parlab.lesson.compare import same, show
from parlab.lesson.language import say, speak

CHECK = """
from parlab.lesson.checks import check_todo, ready
with check_todo(1, "answer") as call:
    assert call.same(call([3]), 4), call.wrong("add one", 4)
"""


@pytest.fixture(autouse=True)
def _english() -> None:
    speak("en")


def run(answer: str, check: str = CHECK) -> str:
    kernel = Kernel()
    kernel.run(answer)
    return kernel.run(check)


def test_passed() -> None:
    assert run("def answer(x): return x[0] + 1") == "✅ TODO 1 · answer · all 1 calls correct.\n"


def test_not_done_when_the_stub_is_unchanged_or_missing() -> None:
    with pytest.raises(NotDone, match="^⏳ TODO 1 · answer · not done yet"):
        run('def answer(x): raise NotImplementedError("TODO 1")')
    with pytest.raises(NotDone, match="^⏳ TODO 1 · answer · answer is not defined yet"):
        run("")


def test_another_not_implemented_error_is_wrong() -> None:
    with pytest.raises(Wrong, match="NotImplementedError: later"):
        run('def answer(x): raise NotImplementedError("later")')


def test_wrong_shows_input_rule_expected_and_actual() -> None:
    with pytest.raises(Wrong) as caught:
        run("def answer(x): return 5")
    assert str(caught.value).splitlines() == [
        "❌ TODO 1 · answer",
        "   input | [3]",
        "   rule | add one",
        "   expected | 4",
        "   actual | 5",
    ]
    assert caught.value._render_traceback_() == str(caught.value).splitlines()


def test_a_wrong_type_and_a_missing_return_get_a_hint() -> None:
    with pytest.raises(Wrong, match=r"actual \| '4'\n   hint \| it should return int, not str"):
        run("def answer(x): return '4'")
    with pytest.raises(Wrong, match=r"hint \| the function returns nothing: is return missing\?"):
        run("def answer(x): x[0] + 1")


def test_of_two_dicts_what_differs_is_shown_and_odd_keys_are_named() -> None:
    expected = "{'a': 1, 'b': [2], 'c': 3}"
    check = CHECK.replace("4", expected)
    with pytest.raises(
        Wrong, match=r"expected \| \{'b': \[2\], …\}\n   actual \| \{'b': \[0\], …\}$"
    ):
        run("def answer(x): return {'a': 1, 'b': [0], 'c': 3}", check)
    with pytest.raises(Wrong, match=r"hint \| unexpected keys: 'd'; missing keys: 'c'"):
        run("def answer(x): return {'a': 1, 'b': [2], 'd': 3}", check)


def test_an_exception_shows_the_learner_s_line() -> None:
    with pytest.raises(Wrong, match=r"(?s)ZeroDivisionError.*where \| line 2"):
        run("def answer(x):\n    return 1 / 0")


def in_ipython(*cells: str) -> list[str]:
    """The last lines that each cell shows in IPython, errors included."""
    shell = InteractiveShell()
    shown = []
    for source in cells:
        with capture_output() as captured:
            shell.run_cell(source, store_history=True)
        shown.append(captured.stdout.strip())
    return shown


def test_a_helper_s_line_is_named() -> None:
    helper, answer = "def half(x):\n    return x / 0", "def answer(x): return half(x[0])"
    *_, shown = in_ipython(helper, answer, CHECK)
    assert "where | line 2, half: return x / 0" in shown


def test_a_cell_whose_last_run_did_not_take_effect_is_noticed() -> None:
    right = "# TODO 1 · answer\ndef answer(x): return x[0] + 1"
    broken = right.replace("return", "return return")
    renamed = right.replace("def answer", "def anser")
    shown = in_ipython(right, CHECK, broken, CHECK, right, CHECK, renamed, CHECK)
    assert [text[0] for text in shown[1::2]] == ["✅", "⏳", "✅", "⏳"]
    assert shown[3].startswith("⏳ TODO 1 · answer · the last run of the TODO 1 cell did not take")


def test_a_check_that_was_emptied_does_not_pass() -> None:
    with pytest.raises(Wrong, match="never called your function"):
        run("def answer(x): return 4", CHECK.partition("    assert")[0] + "    pass\n")


def test_even_an_exit_is_reported() -> None:
    with pytest.raises(Wrong, match="SystemExit"):
        run("def answer(x): raise SystemExit")


def test_an_interrupt_is_the_learner_s_own() -> None:
    with pytest.raises(KeyboardInterrupt):
        run("def answer(x): raise KeyboardInterrupt")


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True:\n  try: x = sum(range(9))\n  except BaseException: pass",
        "return max(i for i in iter(int, 1))",
    ],
    ids=["loop", "loop_that_catches_all", "endless_generator"],
)
def test_a_call_that_does_not_end_is_ended(body: str) -> None:
    began = time.monotonic()
    with pytest.raises(Wrong) as caught:
        run(f"def answer(x):\n {body}", CHECK.replace('"answer")', '"answer", seconds=0.3)'))
    assert time.monotonic() - began < 8
    said = str(caught.value).splitlines()
    assert said[2].startswith("   rule | each call must end within 0.3 s")
    assert said[3:5] == [
        "   expected | a result within 0.3 s",
        "   actual | still running after 0.3 s",
    ]
    sum(range(1_000_000))  # nothing of the limit is left behind


def test_a_changed_input_is_wrong_and_later_calls_get_a_fresh_one() -> None:
    twice = CHECK + "    assert call.same(call([3]), 4), call.wrong('again', 4)\n"
    with pytest.raises(Wrong, match=r"before the call \[3\]\n.*after the call \[3, 0\]"):
        run("def answer(x): x.append(0); return x[0] + 1", twice)
    with pytest.raises(
        Wrong, match=r"before the call \{'a': 1, …\}\n.*after the call \{'a': 2, …\}"
    ):
        change = CHECK.replace("call([3])", "call({'a': 1, 'b': 2})")
        run("def answer(x): x['a'] = 2; return 4", change)
    assert "all 2 calls" in run("def answer(x): return x[0] + 1", twice)


def test_the_block_s_variables_are_hidden_from_the_function_and_gone_afterwards() -> None:
    kernel = Kernel()
    kernel.run("good = 1\ndef answer(x): return x[0] + good")
    check = CHECK.replace("    assert", "    good, secret = 'mine', 4\n    assert")
    assert kernel.run(check).startswith("✅")
    assert kernel["good"] == 1 and not hasattr(kernel.module, "secret")
    kernel.run("def answer(x): return secret")
    with pytest.raises(Wrong, match="NameError: name 'secret' is not defined"):
        kernel.run(check)
    assert kernel["good"] == 1


def test_a_later_call_must_not_change_an_earlier_result() -> None:
    check = CHECK.partition("    assert")[0]
    check += "    for x in (1, 2):\n        assert call.same(call(x), [x]), call.wrong('', [x])\n"
    shared = "kept = []\ndef answer(x):\n    kept[:] = [x]\n    return kept"
    with pytest.raises(Wrong, match=r"each call makes a new result.*\n.*\[1\]\n.*\[2\]"):
        run(shared, check)
    assert "all 2 calls" in run("def answer(x): return [x]", check)


def test_a_callable_object_can_pass() -> None:
    kernel = Kernel()
    kernel.run("class Answer:\n    def __call__(self, x): return x[0] + 1\nanswer = Answer()")
    kernel.run(CHECK)
    assert kernel.run("print(ready('answer'))") == "True\n"


def test_an_extra_that_is_not_done_is_no_error() -> None:
    check = CHECK.replace("check_todo(1,", "check_todo('EXTRA',")
    assert run('def answer(x): raise NotImplementedError("EXTRA")', check).startswith("⏳ EXTRA")
    assert run("", check).startswith("⏳ EXTRA · answer · optional, you may skip it. ")
    assert run("def answer(x): return 4", check).startswith("✅ EXTRA · answer")


def test_an_extra_that_is_wrong_says_so_and_goes_on() -> None:
    check = CHECK.replace("check_todo(1,", "check_todo('EXTRA',")
    for answer in ("def answer(x): return 5", "def answer(x): return 1 / 0"):
        assert run(answer, check).startswith("❌ EXTRA · answer\n   input | [3]\n")


def test_ready_wants_the_function_that_passed() -> None:
    kernel = Kernel()
    kernel.run(CHECK.splitlines()[1] + "\ndef answer(x): return x[0] + 1")
    ask = "print(ready('answer'))"
    assert kernel.run(ask) == ("⏳ first get answer to pass, then run this cell again.\nFalse\n")
    kernel.run(CHECK)
    assert kernel.run(ask) == "True\n"
    kernel.run("def answer(x): return x[0] + 2")
    assert kernel.run(ask).endswith("False\n")
    with pytest.raises(Wrong):
        kernel.run(CHECK)
    assert kernel.run(ask).endswith("False\n")


class Anything:
    def __eq__(self, other: object) -> bool:
        return True

    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def test_same_compares_types_before_values() -> None:
    assert same({"a": [1, (2.0, None)]}, {"a": [1, (2.0, None)]})
    for got, expected in (
        (True, 1), (1.0, 1), ((1,), [1]), ([1, 2], [1]), ({"a": 1}, {"b": 1}), ({}, None),
        (Anything(), 1), ([Anything()], [1]), ({"a": Anything()}, {"a": 1}),
        ({Anything: 1}, {"a": 1}),
    ):  # fmt: skip
        assert not same(got, expected), (got, expected)


def test_same_with_a_free_order_keeps_count_and_type() -> None:
    assert same({"e": ["b", "a"]}, {"e": ["a", "b"]}, any_order=["e"])
    assert same(["b", "a"], ["a", "b"], any_order=True)
    assert not same({"e": ["b", "a"]}, {"e": ["a", "b"]})
    assert not same({"e": ["a", "a", "b"]}, {"e": ["a", "b"]}, any_order=["e"])
    assert not same({"e": ("a", "b")}, {"e": ["a", "b"]}, any_order=["e"])
    assert not same({"e": ["a", 1]}, {"e": ["a", "b"]}, any_order=["e"])


def test_show_is_short_and_survives_any_object() -> None:
    assert show({"pp": 2, "tp": 3}) == "pp=2, tp=3"
    assert show([{"name": "a", "ranks": [1]}, {"name": "b"}]) == "name='a'; name='b'"
    assert len(show("x" * 10_000)) <= 480
    assert "RuntimeError" in show(Anything())


def test_both_languages_say_the_same_things() -> None:
    with pytest.raises(ValueError, match="'fr' is not one of zh, en"):
        speak("fr")
    speak("zh")
    assert say("where_line", line=2, text="x") == "第 2 行，x"
