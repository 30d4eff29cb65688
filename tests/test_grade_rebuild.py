"""From a damaged notebook to the pristine exercise with the student's answers in it."""

import ast
import contextlib
import io
import json
import re
import types
from dataclasses import replace
from pathlib import Path

import matplotlib
import nbformat
import pytest
from grade_damage import HARMLESS, STYLES, code, encoded, find, put_answer, text_of
from grade_students import FULL, ZERO, Pupil, make_class
from lessons import LESSONS, ROOT, Kernel, answers

from parlab.grade.course import Course, load_course
from parlab.grade.notes_in import NOTES_IN
from parlab.grade.rebuild import rebuild
from parlab.grade.sources import call_sources, solution_sources
from parlab.grade.types import Rebuilt

matplotlib.use("Agg")
COURSE = load_course(ROOT, "04")
NAMES = {todo.number: todo.function for todo in COURSE.todos}
EVERY_LESSON = [load_course(ROOT, name) for name in LESSONS]


@pytest.fixture(scope="module")
def pupils() -> list[Pupil]:
    return make_class(COURSE, 60, seed=4)


def exercise(folder: str = "notebooks", course: Course = COURSE) -> dict:
    return json.loads((ROOT / folder / f"{course.name}.ipynb").read_text(encoding="utf-8"))


def right(number: int) -> str:
    return next(a.source for a in answers(COURSE.name) if a.right and a.todo == number)


def answered(**more: str) -> dict:
    book = exercise()
    for number, function in NAMES.items():
        put_answer(book, number, function, right(number))
    return book


def keys(rebuilt: Rebuilt) -> set[str]:
    return {key for key, _ in rebuilt.notes}


def verdicts(rebuilt: Rebuilt, scratch: bool = True) -> dict[int, str]:
    """What the checks of the rebuilt notebook say, run in this process: only of our own answers."""
    kernel = Kernel()
    found = {}
    for cell in rebuilt.notebook.cells:
        role = cell.metadata.get("parlab", {})
        if cell.cell_type != "code" or role["role"] == "course":
            continue
        if role["role"] == "scratch" and not scratch:
            continue
        try:
            kernel.run(cell.source)
            outcome = "passed"
        except SyntaxError:
            outcome = "failed"
        except Exception as error:
            outcome = type(error).__name__
        if role["role"] == "check":
            found[role["todo"]] = outcome
    return found


def judged(pupil: Pupil, rebuilt: Rebuilt) -> None:
    """Status, states and verdicts are what the pupil's making says."""
    states = set(rebuilt.state.values())
    status = rebuilt.status or ("unfinished" if "stub" in states else "ok")
    ran = ("partial", "does_not_run")  # what running it says
    assert status == (pupil.status if pupil.status not in ran else "ok")
    assert set(pupil.notes) <= keys(rebuilt) | {"byte_order_mark", "encoding"}
    assert keys(rebuilt) <= set(NOTES_IN)
    if rebuilt.notebook is None:
        assert set(pupil.scores.values()) == {ZERO}
        return
    nbformat.validate(rebuilt.notebook)
    found = verdicts(rebuilt)
    for number, score in pupil.scores.items():
        assert (found[number] == "passed") == (score == FULL), (pupil.kind, number, found)


@pytest.mark.parametrize("style", STYLES)
def test_a_right_answer_in_another_style_passes_its_check(style: str) -> None:
    book = exercise()
    STYLES[style](book, {n: (NAMES[n], right(n)) for n in NAMES})
    rebuilt = rebuild(encoded(book), COURSE)
    assert rebuilt.status is None and set(rebuilt.state.values()) == {"answered"}
    assert verdicts(rebuilt, scratch=False) == dict.fromkeys(NAMES, "passed")


@pytest.mark.parametrize("damage", HARMLESS)
def test_harmless_damage_leaves_the_answers_as_good_as_they_were(damage: str) -> None:
    rebuilt = rebuild(encoded(HARMLESS[damage](answered())), COURSE)
    assert rebuilt.status is None and set(rebuilt.state.values()) == {"answered"}
    assert verdicts(rebuilt) == dict.fromkeys(NAMES, "passed")


@pytest.mark.slow
def test_a_class_is_rebuilt_as_it_was_made(pupils: list[Pupil]) -> None:
    for pupil in pupils:  # those of one kind have tests of their own
        if pupil.content is not None and not pupil.kind.startswith(("right_", "damaged_")):
            judged(pupil, rebuild(pupil.content, COURSE))


@pytest.mark.parametrize("course", EVERY_LESSON, ids=lambda course: course.name)
@pytest.mark.parametrize("folder", ["notebooks", "notebooks/en", "colab", "colab/en"])
def test_the_shipped_exercise_is_all_stubs(course: Course, folder: str) -> None:
    rebuilt = rebuild((ROOT / folder / f"{course.name}.ipynb").read_bytes(), course)
    assert set(rebuilt.state.values()) == {"stub"} and rebuilt.status is None
    assert rebuilt.notes == () and rebuilt.helpers == ()
    language = "en" if folder.endswith("en") else "zh"
    assert rebuilt.notebook.metadata["parlab"]["language"] == language
    pristine = [cell.source for cell in course.exercise[language].cells]
    assert [cell.source for cell in rebuilt.notebook.cells] == pristine


@pytest.mark.parametrize("course", EVERY_LESSON, ids=lambda course: course.name)
@pytest.mark.parametrize("folder", ["solutions", "solutions/en"])
def test_the_solution_is_told(course: Course, folder: str) -> None:
    rebuilt = rebuild((ROOT / folder / f"{course.name}.ipynb").read_bytes(), course)
    assert rebuilt.is_solution and keys(rebuilt) == {"is_solution"}
    assert set(rebuilt.state.values()) == {"answered"}


@pytest.mark.parametrize("course", EVERY_LESSON, ids=lambda course: course.name)
def test_each_right_answer_of_every_lesson_can_be_called_by_itself(course: Course) -> None:
    for answer in answers(course.name):
        if not answer.right:
            continue
        book = exercise(course=course)
        function = next(t.function for t in course.todos if t.number == answer.todo)
        put_answer(book, answer.todo, function, answer.source)
        rebuilt = rebuild(encoded(book), course)
        assert rebuilt.state[answer.todo] == "answered", answer
        source, helpers = call_sources(rebuilt, course, answer.todo)
        assert callable(run([*helpers, source])[function])


@pytest.mark.parametrize("course", EVERY_LESSON, ids=lambda course: course.name)
def test_the_solution_can_be_called_one_function_at_a_time(course: Course) -> None:
    for todo in course.todos:
        source, helpers = solution_sources(course, todo.number)
        assert callable(run([*helpers, source])[todo.function])


def run(sources: list[str]) -> dict:
    module = types.ModuleType("answer")
    with contextlib.redirect_stdout(io.StringIO()):
        for source in sources:
            exec(compile(source, "<cell>", "exec"), module.__dict__)
    return module.__dict__


def test_nothing_of_a_submission_is_executed(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    book = answered()
    evil = f"open({str(trace)!r}, 'w').write('ran')\n__import__('os').system('touch {trace}')"
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["source"] = text_of(cell) + "\n" + evil
    rebuild(encoded(book), COURSE)
    assert not trace.exists()


def test_answers_hold_no_other_todos_function() -> None:
    book = exercise()
    STYLES["in_one_cell"](book, {n: (NAMES[n], right(n)) for n in NAMES})
    rebuilt = rebuild(encoded(book), COURSE)
    for number, source in rebuilt.answers.items():
        defined = {node.name for node in ast.walk(ast.parse(source)) if hasattr(node, "name")}
        assert not defined & (set(NAMES.values()) - {NAMES[number]})
        assert source.startswith(f"# TODO {number} · {NAMES[number]}\n")


def test_the_last_definition_that_is_no_stub_counts() -> None:
    book = answered()
    function = NAMES[1]
    book["cells"].append(code(f"def {function}(config):\n    return 'last'"))
    book["cells"].append(code(f"def {function}(config):\n    raise NotImplementedError('TODO 1')"))
    rebuilt = rebuild(encoded(book), COURSE)
    assert "return 'last'" in rebuilt.answers[1]
    assert {"several_answers", "stub_after_answer", "answer_elsewhere"} <= keys(rebuilt)


def test_a_helper_stands_before_the_first_todo_that_needs_it() -> None:
    book = exercise()
    put_answer(book, 2, NAMES[2], f"def {NAMES[2]}(m, l):\n    return outer(m, l)")
    put_answer(book, 3, NAMES[3], f"def {NAMES[3]}(c):\n    return SIZE, inner(c)")
    book["cells"].append(code("def outer(m, l):\n    return inner(m)\n\nprint('unneeded')"))
    book["cells"].append(code("def inner(x):\n    return x\nSIZE = 3\nSIZE += 1\nOTHER = 9"))
    rebuilt = rebuild(encoded(book), COURSE)
    code_cells = [cell for cell in rebuilt.notebook.cells if cell.cell_type == "code"]
    cells = [(cell.metadata["parlab"], cell.source) for cell in code_cells]
    cells = [(role, text) for role, text in cells if role["role"] in ("helper", "answer")]
    roles = [(role["role"], role.get("todo")) for role, _ in cells]
    assert roles == [("answer", 1), ("helper", None), ("helper", None), ("answer", 2),
                     ("helper", None), ("answer", 3)]  # fmt: skip
    assert "def outer" in cells[1][1] and "unneeded" not in cells[1][1]
    assert cells[2][1] == "def inner(x):\n    return x"
    assert cells[4][1] == "SIZE = 3\nSIZE += 1"
    scratch = [c.source for c in code_cells if c.metadata["parlab"]["role"] == "scratch"]
    assert any("unneeded" in source for source in scratch)
    assert any("OTHER = 9" in source for source in scratch)


def test_a_helper_in_another_todos_cell_is_found_for_both() -> None:
    book = answered()
    put_answer(book, 1, NAMES[1], "def shared(x):\n    return x\n\n" + right(1))
    put_answer(book, 3, NAMES[3], f"def {NAMES[3]}(c):\n    return shared(c)")
    rebuilt = rebuild(encoded(book), COURSE)
    assert any("def shared" in source for source in rebuilt.helpers)
    _, helpers = call_sources(rebuilt, COURSE, 3)
    assert any("def shared" in source for source in helpers)
    _, helpers = call_sources(rebuilt, COURSE, 2)
    assert not any("def shared" in source for source in helpers)


def test_an_edited_course_cell_gives_only_what_an_answer_uses() -> None:
    book = answered()
    put_answer(book, 1, NAMES[1], f"def {NAMES[1]}(c):\n    return EXTRA, meshes(8)")
    index = next(i for i, c in enumerate(book["cells"]) if "def meshes(" in text_of(c))
    cell = book["cells"][index]
    cell["source"] = "EXTRA = 4\n" + text_of(cell).replace("return [", "return 0 and [")
    rebuilt = rebuild(encoded(book), COURSE)
    assert rebuilt.helpers == ("EXTRA = 4",)
    assert "cells_edited" in keys(rebuilt)


@pytest.mark.parametrize(
    ("body", "stub"),
    [
        ("raise NotImplementedError('TODO 1')", True),
        ("errors = []\n    raise NotImplementedError('TODO 1')", True),
        ("pass", True),
        ("...", True),
        ("'only a docstring'", True),
        ("return {}\n    raise NotImplementedError('TODO 1')", False),
        ("if config:\n        return 1\n    raise NotImplementedError('TODO 1')", False),
        ("raise ValueError('TODO 1')", False),
        ("return None", False),
    ],
)
def test_what_counts_as_a_stub(body: str, stub: bool) -> None:
    book = exercise()
    put_answer(book, 1, NAMES[1], f"def {NAMES[1]}(config):\n    {body}")
    assert rebuild(encoded(book), COURSE).state[1] == ("stub" if stub else "answered")


def test_changes_to_course_cells_are_noted_by_name() -> None:
    book = answered()
    cells = book["cells"]
    cells[find(book, "# CHECK 1")]["source"] = "# CHECK 1\nprint('ok')"
    del cells[find(book, "# CHECK 2")]
    cells[find(book, "# CHECK 3")]["cell_type"] = "markdown"
    first = next(cell for cell in cells if text_of(cell).strip() == "draw_cuts()")
    cells.remove(first)
    cells += [first, dict(first)]
    notes = dict(rebuild(encoded(book), COURSE).notes)
    assert notes["cells_edited"]["cells"] == ["CHECK 1"]
    assert notes["cells_deleted"]["cells"] == ["CHECK 2"]
    assert notes["cells_prose"]["cells"] == ["CHECK 3"]
    assert notes["cells_doubled"]["cells"] == ["[2] draw_cuts()"]
    assert notes["cells_moved"]["cells"] == ["[2] draw_cuts()"]


def test_a_function_that_only_reads_like_it_is_another_lessons() -> None:
    book = {"cells": [code(f"def {NAMES[1]}_other(): pass")], "nbformat": 4}
    assert rebuild(encoded(book), COURSE).status == "wrong_lesson"
    assert rebuild(encoded({"cells": [], "nbformat": 4}), COURSE).status == "missing_answers"


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"cells": 3}', b"\xff\xfe", b"\0" * 100, b"PK\x03\x04",
        b'{"cells": [' + b"[" * 50_000 + b"]" * 50_000 + b"]}",
        b'{"cells": [' + b'{"a":1},' * 900_000 + b"{}]}",
        b'{"cells":[], "nbformat": ' + b"9" * 100_000 + b"}",
    ],
)  # fmt: skip
def test_bytes_that_are_no_notebook_raise_nothing(content: bytes) -> None:
    rebuilt = rebuild(content, COURSE)
    assert rebuilt.status in ("unreadable", "missing_answers")


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5_000, "x = " + "-" * 90_000 + "1", "a" + ".b" * 40_000, "\ud800", "def \0f(): pass",
        "if 1:\n" * 150, "%%bash\n" * 1_000, "!ls\n" * 3_000, "await x()", "return 5",
        "x = '" + "a" * 400_000 + "'", "match x:\n    case [a, *b]: pass", "f'{x!r:{y}}'",
        "from torch import *\n" * 50, "lambda: (yield)", "\t \x0c x = 1",
        "a = b = c = [" + "1," * 30_000 + "]",
    ],
)  # fmt: skip
def test_no_source_makes_the_rebuild_fail(source: str) -> None:
    book = answered()
    book["cells"].insert(3, code(source))
    put_answer(book, 2, NAMES[2], source)
    rebuilt = rebuild(json.dumps(book).encode(), COURSE)
    nbformat.validate(rebuilt.notebook)
    assert json.dumps(rebuilt.notebook).encode()
    assert rebuilt.state[1] == "answered"


def test_texts_name_only_values_that_the_notes_have(pupils: list[Pupil]) -> None:
    for key, texts in NOTES_IN.items():
        fields = [set(re.findall(r"{(\w+)}", text)) for text in texts]
        assert fields[0] == fields[1], key
    for pupil in pupils[::3]:
        for key, values in rebuild(pupil.content or b"", COURSE).notes:
            assert set(re.findall(r"{(\w+)}", NOTES_IN[key][0])) <= set(values), key


def test_the_lesson_with_most_functions_is_the_notebooks() -> None:
    other = dict.fromkeys(["merge", "head_tail", "ring"], "03_other")
    course = replace(COURSE, functions_elsewhere=other)
    both = [code(f"def {name}(): return 1") for name in (NAMES[1], "merge", "head_tail")]
    assert rebuild(encoded({"cells": both, "nbformat": 4}), course).status == "wrong_lesson"
    assert rebuild(encoded({"cells": both[:2], "nbformat": 4}), course).status == "missing_answers"


@pytest.mark.parametrize("lesson", ["02", "05"])
def test_a_switch_that_the_lesson_says_to_turn_on_is_no_edit(lesson: str) -> None:
    course = load_course(ROOT, lesson)
    book = exercise(course=course)
    for cell in book["cells"]:
        cell["source"] = re.sub(r"(?m)^(RUN_\w+) = False", r"\1 = True", text_of(cell))
    assert book != exercise(course=course)
    assert "cells_edited" not in keys(rebuild(encoded(book), course))


SEVEN = {
    "filled by a call": ("T = {}\ndef fill(t):\n    t['f'] = 7\nfill(T)", "T['f']"),
    "changed by a library": ("import heapq\nH = [9, 7]\nheapq.heapify(H)", "H[0]"),
    "set by setattr": ("class Box: pass\nBOX = Box()\nsetattr(BOX, 'x', 7)", "BOX.x"),
    "registered": (
        "REG = {}\ndef register(n):\n    def deco(f):\n        REG[n] = f\n        return f\n"
        "    return deco\n\n@register('f')\ndef g():\n    return 7",
        "REG['f']()",
    ),
    "dispatched": (
        "from functools import singledispatch\n@singledispatch\ndef go(x):\n    return 0\n\n"
        "@go.register(dict)\ndef _(x):\n    return 7",
        "go({})",
    ),
    "by a subclass": (
        "REG = []\nclass Base:\n    def __init_subclass__(cls):\n        REG.append(7)\n\n"
        "class One(Base):\n    pass",
        "REG[0]",
    ),
    "a global": ("def init():\n    global W\n    W = 7\n\ninit()", "W"),
    "through another": (
        "def put():\n    global W\n    W = 7\n\ndef init():\n    put()\n\ninit()", "W"
    ),
    "a name of Python's": ("def round(x):\n    return 7", "round(1)"),
    "Python's own name": ("sum = 0\nfor i in (1, 2):\n    sum = sum + i", "sum([3, 4])"),
}  # fmt: skip


@pytest.mark.parametrize("case", SEVEN)
def test_what_an_answer_needs_comes_with_it_however_it_came_about(case: str) -> None:
    helper, value = SEVEN[case]
    book = answered()
    put_answer(book, 1, NAMES[1], f"def {NAMES[1]}(config):\n    return {value}")
    book["cells"].insert(find(book, "# TODO 1 ·"), code(helper))
    source, helpers = call_sources(rebuild(encoded(book), COURSE), COURSE, 1)
    kernel = Kernel()
    for text in (*helpers, source):
        kernel.run(text)
    assert kernel[NAMES[1]]({}) == 7
