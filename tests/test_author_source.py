"""The form of a source: encoding, headers, language partners, identity and markers."""

from pathlib import Path

import pytest
from author_fixtures.course import (
    BODY,
    HEADER,
    assert_refused,
    changed,
    make_course,
    read,
    refusals,
)

MARKED = "    # BEGIN SOLUTION\n    return 2 * x\n    # END SOLUTION\n"
LAST = '# %% tags=["demo"]\nprint(double(21))\n'
EXTRA = f"# %%\n»# EXTRA · f\ndef f(x):\n{MARKED}"
CHECKS = BODY[BODY.index('# %% lang="zh"\n# CHECK 1') : BODY.index(LAST)]
SECOND = f"# %%\n# TODO 2 · f\ndef f(x):\n{MARKED}\n# %%\n# CHECK 2\nassert f(1) == 2\n"

# What stands in the last cell's place; » marks the line to name; what the message must say.
LAST_CELLS = {
    "header without blank": ("»#%%\n1\n", "'#%%'", "write '# %%'"),
    "header with md": ('»# %% [md] lang="zh"\n# x\n', "[md]", '[markdown] lang="zh"'),
    "unquoted value": ("»# %% lang=zh\n1\n", "lang=zh", "write '# %% lang=\"zh\"'"),
    "json header": ('»# %% {"lang": "zh"}\n1\n', '{"lang": "zh"}', "write '# %% lang=\"zh\"'"),
    "title": ("»# %% Title\n1\n", "'# %% Title'", "malformed"),
    "unknown key": ('»# %% name="x"\n1\n', 'name="x"', 'only lang="zh"'),
    "unknown language": ('»# %% lang="fr"\n1\n', 'lang="fr"', 'only lang="zh"'),
    "key twice": ('»# %% lang="zh" lang="en"\n1\n', "malformed"),
    "raw cell": ("»# %% [raw]\n# x\n", "[raw]", "malformed"),
    "indented header": ("# %%\nif 1:\n»    # %%\n    2\n", "'    # %%'", "write '# %%'"),
    "blank after header": ("»# %% \n1\n", "'# %% '", "write '# %%'"),
    "tags spaced otherwise": ('»# %% tags=["a","b"]\n1\n', 'write \'# %% tags=["a", "b"]\''),
    "quoted markdown": (
        '# %% [markdown] lang="zh"\n»"""\nx\n"""\n',
        "write markdown as lines that start with #",
    ),
    "no language": ("»# %% [markdown]\n# x\n", "without a language", 'add lang="zh"'),
    "no English partner": ('»# %% lang="zh"\n1\n', "without an English partner directly after"),
    "no Chinese partner": ('»# %% lang="en"\n1\n', "without a Chinese partner directly before"),
    "partner of another kind": (
        '»# %% lang="zh"\n1\n\n# %% [markdown] lang="en"\n# 1\n',
        "without an English partner",
    ),
    "cell between partners": (
        '»# %% lang="zh"\n1\n\n# %%\n2\n\n# %% lang="en"\n1\n',
        "without an English partner",
    ),
    "partners reordered": (
        '»# %% lang="en"\n1\n\n# %% lang="zh"\n1\n',
        "English before its Chinese partner",
        "swap them",
    ),
    "partners' tags": (
        '# %% lang="zh" tags=["a"]\n1\n\n»# %% lang="en"\n1\n',
        "tags [] differ from the Chinese cell's ['a']",
    ),
    "empty code cell": ("»# %%\n\n# %%\n1\n", "empty", "drop it"),
    "empty markdown": (
        '»# %% [markdown] lang="zh"\n#\n\n# %% [markdown] lang="en"\n# 1\n',
        "empty",
    ),
    "set-up twice": ("# %%\n»# SETUP\n", "a second setup", "keep one"),
    "almost an anchor": ("# %%\n»# CHECK1\n1\n", "'# CHECK1'", "'# CHECK 1'"),
    "anchor in small letters": ("# %%\n»# todo 2 · f\n1\n", "'# todo 2 · f'", "'# TODO 1 · f"),
    "anchor with dash": ("# %%\n»# TODO 2 - f\n", "'# TODO 2 - f'", "'# TODO 1 · f"),
    "anchor with more": ("# %%\n»# SETUP of it\n", "'# SETUP of it'", "'# SETUP'"),
    "more percent signs": ("# %%\n1\n»# %%%\n2\n", "'# %%%' starts no cell"),
    "anchor below": ("# %%\n1\n»# CHECK 1\n", "'# CHECK 1'", "start a cell with it"),
    "partner with another anchor": (
        '# %% lang="zh"\n# EXTRA · f\n1\n\n# %% lang="en"\n»# EXTRA · g\n1\n',
        "the Chinese cell starts '# EXTRA · f'",
    ),
    "check of no todo": ("# %%\n»# CHECK 2\nassert 1\n", "check-2 has no todo-2 before it"),
    "check twice": ("# %%\n»# CHECK 1\nassert 1\n", "a second check-1", "keep one"),
    "check of another number": (
        SECOND.replace("assert", "»check(1)\nassert"),
        "1 in the check of check-2: write 2",
    ),
    "check of another function": (
        SECOND.replace("assert", "»check_todo(2, 'g')\nassert"),
        "'g' in the check of check-2: write 'f'",
    ),
    "empty block": (
        "# %%\n# EXTRA · f\ndef f(x):\n»    # BEGIN SOLUTION\n    # END SOLUTION\n    return x\n",
        "holds no code",
    ),
    "block of comments": (
        "# %%\n# EXTRA · f\ndef f(x):\n»    # BEGIN SOLUTION\n    # x\n    # END SOLUTION\n    1\n",
        "holds no code",
    ),
    "solution shown": (
        "# %%\ndef g(x):\n»    return 2 * x\n",
        "the solution of TODO 1 stands here",
    ),
    "check without assert": (
        f"{EXTRA.replace('»', '')}\n# %%\n»# CHECK EXTRA\nf(1) == 2\n",
        "check-extra holds no assert",
    ),
    "extra without check": (EXTRA, "EXTRA · f has no check", "'# CHECK EXTRA'"),
    "marker elsewhere": ("# %%\n»# BEGIN SOLUTION\n1\n# END SOLUTION\n", "outside a TODO or EXTRA"),
}


@pytest.mark.parametrize("case", LAST_CELLS)
def test_a_cell_is_refused(case: str, tmp_path: Path) -> None:
    cell, *passages = LAST_CELLS[case]
    assert_refused(tmp_path, changed(LAST, cell), *passages)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("# SETUP\nfrom", "»from"),
        ("# %%\n# SETUP", "# %%\n»1\n\n# %%\n# SETUP"),
    ],
)
def test_the_first_code_cell_is_the_set_up(old: str, new: str, tmp_path: Path) -> None:
    assert_refused(tmp_path, changed(old, new), "start it with '# SETUP'")


@pytest.mark.parametrize(
    ("old", "new"), [(CHECKS, ""), (CHECKS + LAST, f"{SECOND}\n{CHECKS}")], ids=["missing", "late"]
)
def test_a_todo_has_its_check_before_the_next_todo(old: str, new: str, tmp_path: Path) -> None:
    source = changed(old, new).replace("# TODO 1", "»# TODO 1", 1)
    assert_refused(tmp_path, source, "TODO 1 · double has no check: add a cell '# CHECK 1'")


def test_todos_are_numbered_in_order(tmp_path: Path) -> None:
    assert refusals(tmp_path, changed(LAST, SECOND)) == []
    source = changed(LAST, SECOND.replace("# TODO 2", "»# TODO 3"))
    assert_refused(tmp_path, source, "TODO 3 stands where TODO 2 belongs: renumber it")


@pytest.mark.parametrize(
    ("block", "passage"),
    [
        ("»    # BEGIN SOLUTION\n    return 2 * x\n", "never closed"),
        ("    return 2 * x\n»    # END SOLUTION\n", "closes nothing"),
        (f"»    ### BEGIN SOLUTION\n{MARKED}", "'### BEGIN SOLUTION'"),
        (f"»    # Begin solution\n{MARKED}", "write '# BEGIN SOLUTION'"),
        (f"»    x = 1  # BEGIN SOLUTION\n{MARKED}", "alone on its line"),
        (f"    # BEGIN SOLUTION\n»{MARKED}", "inside the block of line"),
    ],
)
def test_markers_are_balanced(block: str, passage: str, tmp_path: Path) -> None:
    source = (HEADER + BODY).replace(MARKED, block, 1)
    assert_refused(tmp_path, source, passage)


def test_a_task_may_have_several_blocks(tmp_path: Path) -> None:
    inner = "".join(f"    {line}\n" for line in MARKED.splitlines())
    blocks = HEADER + BODY.replace(MARKED, f"    if x:\n{inner}{MARKED}")
    assert refusals(tmp_path, blocks) == []
    none = HEADER + BODY.replace(MARKED, "    return 2 * x\n").replace("# TODO", "»# TODO", 1)
    assert_refused(tmp_path, none, "TODO 1 has no solution block", "# BEGIN SOLUTION")


def test_a_stub_is_python_and_defines_its_function(tmp_path: Path) -> None:
    named = (HEADER + BODY).replace("# TODO 1", "»# TODO 1", 1)
    misnamed = named.replace("def double", "def doubled", 1)
    assert_refused(tmp_path, misnamed, "TODO 1 names double", "def double")
    deeper = named.replace("    # BEGIN", "    if x:\n        y = 1\n      # BEGIN", 1)
    assert_refused(tmp_path, deeper, "without its solution TODO 1 is not Python", "move the")


def test_partners_hide_the_same_code(tmp_path: Path) -> None:
    before = "    y = 2\n    # BEGIN SOLUTION\n    return y * x\n    # END SOLUTION\n"
    after = "    # BEGIN SOLUTION\n    y = 2\n    return y * x\n    # END SOLUTION\n"
    same = HEADER + BODY.replace(MARKED, before)
    assert refusals(tmp_path, same) == []
    zh, en = same.split('# %% lang="en"\n', 1)
    differs = f'{zh}# %% lang="en"\n»{en.replace(before, after)}'
    assert_refused(tmp_path, differs, "the solution markers enclose other code")


def test_all_problems_are_listed(tmp_path: Path) -> None:
    source = changed("$a+b$，", "$a-b$，").replace(LAST, "#%%\nx = = 1\n\n# %%\nprint('中')\n")
    found = refusals(tmp_path, source)
    assert len(found) == 4, found


@pytest.mark.parametrize(
    ("data", "line", "passage"),
    [
        ((HEADER + BODY).encode("utf-8-sig"), 1, "without BOM"),
        ((HEADER + BODY).replace("\n", "\r\n").encode(), 1, "LF line ends"),
        ((HEADER + BODY).encode("gbk", "replace"), 12, "save the file as UTF-8"),
        ((HEADER + BODY).rstrip("\n").encode(), (HEADER + BODY).count("\n"), "newline"),
        (BODY.encode(), 1, "YAML header is missing"),
        (
            HEADER.replace("percent", "light").encode() + BODY.encode(),
            6,
            "light: set it to percent",
        ),
        (HEADER.replace("'1.3'", "'1.2'").encode() + BODY.encode(), 7, "'1.2': set it to '1.3'"),
        (
            HEADER.replace("#       jupytext_version: 1.19.6\n", "").encode() + BODY.encode(),
            1,
            "jupytext_version is missing",
        ),
        ((HEADER + "x = 1\n\n" + BODY).encode(), 11, "'x = 1' stands before the first cell"),
        (HEADER.encode(), 1, "no cell"),
        (b"", 1, "YAML header is missing"),
        ((HEADER + BODY + "\n# %%\nx = 'a\x0cb'\n").encode(), None, "jupytext would rewrite"),
    ],
)
def test_the_file_itself(data: bytes, line: int | None, passage: str, tmp_path: Path) -> None:
    found = refusals(tmp_path, data)
    named = f"{line}: " if line else ""
    assert any(p.startswith(named) and passage in p for p in found), found


@pytest.mark.parametrize(
    "cell",
    [
        '# %%\ntext = """\n# %%\n#%% [md]\n"""\n',
        "# %%\n# copy the mesh, then ls\nx = 1\n",
        "# %%\n# TODOs are above\nx = 1\n",
        "# %%\n# Check that it holds\nx = 1\n",
        "# %%\n# Setup of the figure\nx = 1\n",
        "# %%\ndef f():\n\treturn 1\n",
        "# %%\nx = f\"{f'{1}'} it's\"\n",
        "# %%\n# it's a solution: begin with it\n'\"'\n",
        '# %%\ntext = "# BEGIN SOLUTION"\n',
        '# %%\n"""\n# CHECK 1\n# BEGIN SOLUTION\n# %%%\n"""\n',
        '# %% lang="zh" tags=["a", "b-c"]\n1\n\n# %% lang="en" tags=["a", "b-c"]\n1\n',
        "# %%\n1\n\n# %%\n1\n",
        "# %%\n1\n\n\n\n# %%\n2\n\n\n",
        "# %%\nawait_me = 1\n",
        f"# %%\n# EXTRA · f\ndef f(x):\n{MARKED}\n# %%\n# CHECK EXTRA\nassert f(1) == 2\n",
        '# %% [markdown] lang="zh"\n# ```\n# # %%\n# ```\n\n'
        '# %% [markdown] lang="en"\n# ```\n# # %%\n# ```\n',
    ],
)
def test_near_misses_are_accepted(cell: str, tmp_path: Path) -> None:
    assert refusals(tmp_path, changed(LAST, cell)) == []


def test_cells_know_their_lines(tmp_path: Path) -> None:
    body = changed(LAST, '# %%\na = """\n# %%\n"""\n\n# %% tags=["x"]\nb = 1\n').removeprefix(
        HEADER
    )
    lesson = read(make_course(tmp_path, body))
    last = lesson.units[-1].zh
    lines = (HEADER + body).split("\n")
    assert lines[last.line - 1] == '# %% tags=["x"]'
    assert lines[last.line] == last.source == "b = 1"
    assert last.tags == ("x",)
