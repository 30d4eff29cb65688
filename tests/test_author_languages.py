"""What must agree between the languages, and what a code cell may hold."""

import sys
from pathlib import Path

import pytest
from author_fixtures.course import assert_refused, changed, refusals

# Allowed before Python 3.12 too
F_STRINGS = "f'{x}' f'{y[\"a\"]}' rf'\\d{x:{y}}' f'''{x['a']}'''"
LAST = '# %% tags=["demo"]\nprint(double(21))\n'


def code(zh: str, en: str) -> str:
    """The lesson with a language pair of code in its last cell's place."""
    return changed(LAST, f'# %% lang="zh"\n{zh}\n\n# %% lang="en"\n{en}\n')


def prose(zh: str, en: str) -> str:
    """The lesson with a pair of prose in its last cell's place; » may mark a line of it."""

    def commented(text: str) -> str:
        lines = (line.partition("»") for line in text.split("\n"))
        return "\n".join(f"{mark}# {before}{after}".rstrip() for before, mark, after in lines)

    return changed(
        LAST,
        f'# %% [markdown] lang="zh"\n{commented(zh)}\n\n'
        f'# %% [markdown] lang="en"\n{commented(en)}\n',
    )


DIFFERENT_CODE = {
    "operator": ("x = 1 + 2", "»x = 1 - 2", "`Add` in Chinese, `Sub` in English"),
    "number": ("x = 1", "»x = 2", "`1` in Chinese, `2` in English"),
    "number's type": ("x = 1", "»x = 1.0", "`1` in Chinese, `1.0` in English"),
    "name": ("def f(a):\n    return a", "»def f(b):\n    return b", "`a` in Chinese, `b` in"),
    "second line": ("x = 1\ny = 2", "x = 1\n»y = 3", "`2` in Chinese, `3` in English"),
    "more": ("x = 1", "x = 1\n»y = 2", "`y = 2` in English has nothing opposite in Chinese"),
    "less": ("x = 1\ny = 2", "x = 1", "`y = 2` in Chinese has nothing opposite in English"),
    "keyword": ("f(a=1)", "»f(b=1)", "`a=1` in Chinese, `b=1` in English"),
    "plain strings": ("f('a')", "»f('b')", "the code: `'a'` in Chinese, `'b'` in English"),
    "only English differs": ("f('ok')", "»f('fine')", "the code: `'ok'`"),
    "dict key": ("x = {'甲': 1}", "»x = {'a': 1}", "not a message"),
    "subscript": ("x['甲']", "»x['a']", "not a message"),
    "comparison": ("assert x == '甲', '乙'", "»assert x == 'a', 'b'", "not a message"),
    "argument in comparison": ("assert f('甲') == 1", "»assert f('a') == 1", "not a message"),
    "list in comparison": ("x = y in ['甲']", "»x = y in ['a']", "not a message"),
    "assigned": ("x = '甲'", "»x = 'a'", "not a message (put it straight into"),
    "returned": ("def f():\n    return '甲'", "def f():\n»    return 'a'", "not a message"),
    "default": ("def f(a='甲'): pass", "»def f(a='a'): pass", "not a message"),
    "condition": ("f(1 if '甲' else 2)", "»f(1 if 'a' else 2)", "not a message"),
    "expression": ("'甲'", "»'a'", "not a message"),
    "numbers": ("f('3 个')", "»f('4 of them')", "only in Chinese: 3; only in English: 4"),
    "numbers in f-strings": ("f(f'{x} 第 3')", "»f(f'{x} of 2')", "numbers"),
    "placeholder": ("f(f'甲 {x}')", "»f(f'a {y}')", "the placeholders"),
    "placeholder twice": ("f(f'甲 {x}')", "»f(f'a {x} {x}')", "the placeholders"),
    "no placeholder": ("f(f'甲 {x}')", "»f('a')", "the placeholders"),
    "format": ("f(f'甲 {x:.2f}')", "»f(f'a {x:.3f}')", "the placeholders"),
    "conversion": ("f(f'甲 {x!r}')", "»f(f'a {x}')", "the placeholders"),
    "looked up": ("f(x.get('甲'))", "»f(x.get('a'))", "not a message"),
    "looked for": ("f(x.startswith('甲'))", "»f(x.startswith('a'))", "not a message"),
    "opened": ("open('甲.txt')", "»open('a.txt')", "not a message"),
    "% placeholder": ("f('甲 %d' % x)", "»f('a %s' % x)", "the placeholders"),
    "% placeholders' order": ("f('%d 个 %s' % x)", "»f('%s of %d' % x)", "the placeholders"),
    "{} placeholder": ("f('甲 {} {}'.format(x, y))", "»f('a {}'.format(x, y))", "the placeholders"),
    "{} format": ("f('甲 {:.2f}'.format(x))", "»f('a {:.3f}'.format(x))", ""),
    "one docstring": (
        "def f():\n    '''甲'''\n    return 1",
        "»def f():\n    return 1",
        "a docstring on one side only",
    ),
    "string against code": ("f('甲')", "»f(a)", "the code"),
    "bytes": ("f(b'a')", "»f(b'b')", "the code"),
    "docstring against code": (
        "def f():\n    '''甲'''",
        "def f():\n»    pass",
        "`pass` in English has nothing opposite",
    ),
}


@pytest.mark.parametrize("case", DIFFERENT_CODE)
def test_different_code_is_refused(case: str, tmp_path: Path) -> None:
    zh, en, passage = DIFFERENT_CODE[case]
    source = code(zh, en)
    if "»" not in source:  # the English cell as a whole
        start = source.rindex('# %% lang="en"')
        source = source[:start] + "»" + source[start:]
    assert_refused(tmp_path, source, passage, "only docstrings, comments and messages may differ")


@pytest.mark.parametrize(
    ("zh", "en"),
    [
        ("x = 1  # 甲\n# 乙", "x = 1  # a"),
        ("def f():\n    '''甲 1'''\n    return 1", "def f():\n    '''a'''\n    return 1"),
        ("f('%d 个 %s' % (x, y))", "f('%d of %s' % (x, y))"),
        ("f('%(a)d 个 %(b)s' % x)", "f('%(b)s with %(a)d' % x)"),
        ("f('{{甲}} {} {a:.2f}'.format(x, a=y))", "f('{a:.2f} a {}'.format(x, a=y))"),
        ("f('100% 甲')", "f('100% a')"),
        ("f(x.get('a', '甲'))", "f(x.get('a', 'a'))"),
        ("f('甲'.strip())", "f('a'.strip())"),
        ("class A:\n    '''甲'''\n    x = 1", "class A:\n    '''A'''\n    x = 1"),
        ("assert x, '甲'", "assert x, 'a'"),
        ("assert x == 1, f'甲 {x}' + '乙'", "assert x == 1, f'a {x}' + 'b'"),
        ("assert x, '甲 {}'.format(x)", "assert x, 'a {}'.format(x)"),
        ("raise ValueError('甲')", "raise ValueError('a')"),
        ("f('甲', a='乙')", "f('a', a='b')"),
        ("f('甲' if x == 1 else '乙')", "f('a' if x == 1 else 'b')"),
        ("f(*['甲', ('乙', 1)])", "f(*['a', ('b', 1)])"),
        ("x = {'a': '甲', 'b': ['乙']}", "x = {'a': 'a', 'b': ['b']}"),
        ("f('、'.join(f'甲 {y}' for y in x))", "f(', '.join(f'a {y}' for y in x))"),
        ("f(f'甲 {x} 乙 {y!r:>3}')", "f(f'{y!r:>3} b {x} a')"),
        ("f(f'甲')", "f('a')"),
        ("f('甲'\n  '乙')", "f('a and b')"),
        ("f(f'甲 {x}' '乙')", "f('a ' f'{x} b')"),
        ("f(f\"{'甲' if x else '乙'} 1\")", "f(f\"{'a' if x else 'b'} 1\")"),
        ("f('一共 1,000 个')", "f('1000 in all')"),
        ("f(r'\\d')", "f('\\\\d')"),
        ("f('甲：“a”——b…')", "f('“a” — b…')"),
        ("for y in ('甲', '乙'):\n    f(y)", "for y in ('a', 'b'):\n    f(y)"),
    ],
)
def test_translated_messages_are_accepted(zh: str, en: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, code(zh, en)) == []


DIFFERENT_PROSE = {
    "heading's level": ("# 甲", "# a", "headings differ", "h1 there, h2 here"),
    "headings' number": ("## 甲", "text", "headings differ", "h2 there, none here"),
    "link": ("[甲](https://a.org)", "[a](https://b.org)", "links differ", "https://b.org"),
    "links' number": ("甲", "a <https://b.org>", "links differ", "only in English: https://b.org"),
    "picture": ("![甲](a.png)", "![a](b.png)", "links differ", "only in Chinese: a.png"),
    "HTML link": ('<a href="one.md">甲</a>', '<a href="two.md">a</a>', "links differ"),
    "formula": ("甲 $x_i$", "a $x_j$", "formulas differ", "only in English: x_j"),
    "block formula": ("$$\nx\n$$", "$$\ny\n$$", "formulas differ"),
    "number": (
        "甲 16 与 2",
        "a 16 and 3",
        "numbers differ",
        "only in Chinese: 2; only in English: 3",
    ),
    "number of numbers": ("甲 2", "a 2 or 2", "numbers differ", "only in English: 2"),
    "decimals": ("甲 0.20", "a 0.25", "numbers differ"),
    "bare address": (
        "见 https://a.org/x。",
        "see https://b.org/x.",
        "only in English: https://b.org/x",
    ),
    "fold": (
        "<details><summary>甲</summary>\n\n乙\n\n</details>",
        "a b",
        "folds and table rows differ",
        "only in Chinese: </details>, <details>",
    ),
    "table row": (
        "| 甲 | 乙 |\n|---|---|\n| 丙 | 丁 |\n| 戊 | 己 |",
        "| a | b |\n|---|---|\n| c | d |",
        "folds and table rows differ",
        "only in Chinese: table row",
    ),
    "number in code": ("甲 `f(1)`", "a `f(2)`", "numbers differ"),
}


@pytest.mark.parametrize("case", DIFFERENT_PROSE)
def test_different_prose_is_refused(case: str, tmp_path: Path) -> None:
    zh, en, *passages = DIFFERENT_PROSE[case]
    if case == "heading's level":
        en = "#" + en
    source = prose(f"前\n\n{zh}", f"before\n\n{en}")
    # Of what is compared by kind the cell is named; all else has a line of its own.
    start = source.rindex('# %% [markdown] lang="en"')
    if "heading" not in case and case not in ("fold", "table row"):
        start = source.index("# " + en.split("\n")[1 if case == "block formula" else 0], start)
    assert_refused(tmp_path, f"{source[:start]}»{source[start:]}", *passages, "Chinese cell (line")


@pytest.mark.parametrize(
    ("zh", "en"),
    [
        ("```\n# 甲\n$x$\n```", "```\n# a\n# b\n$y$\n```"),
        ("`$甲` 与 `$b`", "`$a` and `$c`"),
        ("[甲](https://a.org) <https://b.org>", "<https://b.org> [a](https://a.org)"),
        ("$x$，$y$", "$y$, $x$"),
        ("见https://a.org/x，乙", "See https://a.org/x, b."),
        ("甲 <https://a.org>", "[a](https://a.org)"),
        ("共 1,234 个，占 0.5", "0.5 of the 1234"),
        (r"\$甲 2", r"\$a 2"),
        (
            "<details><summary>甲</summary>\n\n乙\n\n</details>",
            "<details><summary>a</summary>\n\nb\n\n</details>",
        ),
        ("| 甲 | 1 |\n|---|---|\n| $x$ | 2 |", "| a | 1 |\n|---|---|\n| $x$ | 2 |"),
    ],
)
def test_agreeing_prose_is_accepted(zh: str, en: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, prose(zh, en)) == []


@pytest.mark.parametrize(
    ("zh", "en", "passage"),
    [
        ("<details>甲\n\n»$x$\n\n</details>", "<details>a\n\nb\n\n</details>", "say it in words"),
        ("»<details>甲", "<details>a", "not in pairs"),
        ("One text for all.", "One text for all.", "no Chinese in the Chinese cell (One"),
    ],
)
def test_what_prose_may_not_hold(zh: str, en: str, passage: str, tmp_path: Path) -> None:
    source = prose(zh, en)
    if "»" not in source:
        start = source.rindex('# %% [markdown] lang="zh"')
        source = f"{source[:start]}»{source[start:]}"
    assert_refused(tmp_path, source, passage)


@pytest.mark.parametrize("text", ["---", "$x = y$", "Megatron-LM", "```\nsome code and more\n```"])
def test_what_needs_no_chinese(text: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, prose(text, text)) == []


CELLS = {
    "shared cell": ("# %%\nx = 1\n»print('中文')\n", "'中文' in a shared cell", "pair"),
    "shared comment": ("# %%\n»# 甲\n", "'甲' in a shared cell"),
    "full-width": ("# %%\n»f('a，b')\n", "'，' in a shared cell"),
    "English code": ('# %% lang="zh"\n1\n\n# %% lang="en"\n»1  # 甲\n', "'甲' in an English cell"),
    "not Python": ("# %%\nx = 1\n»x = = 1\n", "not valid Python 3.10", "x = = 1"),
    "return": ("# %%\n»return 1\n", "not valid Python 3.10", "outside function"),
    "newer Python": ("# %%\n»type X = int\n", "not valid Python 3.10"),
    "newer f-string": ("# %%\nx = {}\n»f('{', f'{x['a']}')\n", "not valid Python 3.10"),
    "newer f-string, backslash": ("# %%\n»f\"{'\\n'}\"\n", "not valid Python 3.10"),
    "too deep": (f"# %%\n»{'+'.join('1' * 20000)}\n", "not valid Python 3.10"),
    "magic": ("# %%\nx = 1\n»%matplotlib inline\n", "'%matplotlib inline'", "magic", "drop it"),
    "shell": ("# %%\n»!pip install x\n", "'!pip install x'", "magic"),
    "null byte": ("# %%\n»x = '\0'\n", "not valid Python 3.10", "null bytes"),
    "raises tag": ('»# %% tags=["raises-exception"]\n1\n', "'raises-exception'", "drop it"),
    "nbval tag": ('»# %% tags=["nbval-skip"]\n1\n', "'nbval-skip'", "drop it"),
    "nbval comment": ("# %%\nx = 1\n»# NBVAL_SKIP\n", "'NBVAL_SKIP'", "drop it"),
    "comment after code": ("# %%\n»x = 1 #NBVAL_IGNORE_OUTPUT\n", "'NBVAL_IGNORE_OUTPUT'"),
    "other import": (
        "# %%\n»from parlab.plan import x\n",
        "parlab.plan",
        "only from parlab.lesson",
    ),
    "true assert": ("# %%\n»assert True\n", "assert True does not depend on"),
    "assert of a tuple": ("# %%\nx = 1\n»assert (x == 2, 'no')\n", "without parentheses"),
    "missing module": ("# %%\n»import parlab.lesson.nothing\n", "no such module"),
}


@pytest.mark.parametrize("case", CELLS)
def test_what_a_cell_may_not_hold(case: str, tmp_path: Path) -> None:
    cell, *passages = CELLS[case]
    assert_refused(tmp_path, changed(LAST, cell), *passages)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        ("ax.set_title('甲')", "set_title"),
        ("ax.plot(x, label='甲')", "plot"),
        ("ax.text(0, 0, f'{x} 甲')", "text"),
        ("plt.legend(['甲'])", "legend"),
        ("draw_mesh(title='甲')", "draw_mesh"),
        ("show(title='甲')", "show"),
        ("ax.hexbin(x, y, label='甲')", "hexbin"),
        ("Patch(label='甲')", "Patch"),
        ("Text(0, 0, '甲')", "Text"),
        ("ax.set_zticklabels(['甲'])", "set_zticklabels"),
        ("from matplotlib.pyplot import title as t; t('甲')", "t"),
    ],
)
def test_figures_hold_no_chinese(call: str, name: str, tmp_path: Path) -> None:
    english = call.replace("甲", "a")
    source = code(f"x = 1\n»{call}", f"x = 1\n{english}")
    assert_refused(tmp_path, source, "'甲'", f"{name}()", "label figures in English")


@pytest.mark.parametrize(
    ("zh", "en"),
    [
        ("ax.set_title('a')\nprint('甲')", "ax.set_title('a')\nprint('a')"),
        ("ax.text(0, 0, '×·→µ')  # 甲", "ax.text(0, 0, '×·→µ')"),
        ("'title'.title()", "'title'.title()"),
        ("# nbval judges this, no NBVAL marker\n1", "1"),
        (
            F_STRINGS,
            F_STRINGS,
        ),
        ("await f()", "await f()"),
        ("table('甲', set(['乙']))", "table('a', set(['b']))"),
        ("'\\d'", "'\\d'"),
        ("from parlab.lesson import unused", "from parlab.lesson import unused"),
    ],
)
def test_what_a_cell_may_hold(zh: str, en: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, code(zh, en)) == []


def test_english_prose_holds_no_chinese(tmp_path: Path) -> None:
    assert_refused(
        tmp_path, prose("甲\n\n乙", "a\n\n»b 乙"), "'乙' in an English cell", "translate"
    )


@pytest.mark.skipif(sys.version_info < (3, 12), reason="older parsers refuse these themselves")
@pytest.mark.parametrize("text", ["f'{x['a']}'", "f\"{'\\n'}\"", "f'{x # y\n}'", "f'{f'{x}'}'"])
def test_newer_f_strings_are_found_by_newer_pythons(text: str, tmp_path: Path) -> None:
    assert_refused(
        tmp_path, changed(LAST, f"# %%\n»{text}\n"), "an f-string that needs Python 3.12"
    )
