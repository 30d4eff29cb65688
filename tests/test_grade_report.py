"""Tables, pages, import files: right, harmless, readable."""

import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from browser import FLAGS, chromium
from grade_fakes import FakeParts, submission
from lessons import ROOT, answers
from matplotlib.text import Text

from parlab.grade.cases import find
from parlab.grade.corrections import Correction
from parlab.grade.exam import Exam, prepare
from parlab.grade.graded import Graded
from parlab.grade.report import lms, pages, tables, write
from parlab.grade.report.picture import draw
from parlab.grade.report.statistics import broken_rules, of_class
from parlab.grade.report.visible import cell, visible
from parlab.grade.report.words import _WORDS
from parlab.grade.roster import parse_roster
from parlab.grade.rows import Row, make_rows
from parlab.grade.session import grade_class
from parlab.grade.texts import NOTES, STATUS, say
from parlab.grade.types import STATUSES, Note, Submission

LESSON = "04_model_internal_parallel"
FUNCTIONS = {
    1: "validate_mesh_layout",
    2: "evaluate_internal_parallel_candidate",
    3: "select_internal_parallel_candidate",
}
POINTS = {1: 40.0, 2: 30.0, 3: 30.0}
BY_NAME = {f"{a.todo} {a.name}": a.source for a in answers(LESSON)}
RIGHT = {n: next(a.source for a in answers(LESSON) if a.right and a.todo == n) for n in FUNCTIONS}
# Names as people, and people who try things, have them.
NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    '=HYPERLINK("http://x","y")',
    "+1+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "＝1+1",
    'Doe, "J"\nnew line',
    "{{ 7*7 }}{% raw %}",
    "\u202egnp.exe\u202c",
    "\x1b[31mred\x00",
    "\ud800broken",
    "a" * 300,
    "张伟 · Ω ñ 𠮷 𰻞 👩‍💻",
    "&amp;lt;",
]


@pytest.fixture(scope="module")
def exam() -> Exam:
    return prepare(ROOT, LESSON, FUNCTIONS, seed=3)


def about(exam: Exam, language: str = "zh") -> pages.About:
    title = "04 · 模型内部并行：一个模型，一张 Device Mesh"
    return pages.About(LESSON, title, language, exam.seed, "2026-11-29 23:00", POINTS, exam.rules)


class Mixed(FakeParts):
    """Content ``todo k: name`` answers TODO k by that sample answer."""

    def rebuild(self, content: bytes) -> Any:
        found = re.fullmatch(r"sample (\d) (\w+)", content.decode())
        if not found:
            return super().rebuild(content)
        rebuilt = super().rebuild(b"right")
        answer = BY_NAME[f"{found[1]} {found[2]}"]
        return replace(rebuilt, answers={**rebuilt.answers, int(found[1]): answer})


def nasty_answer(text: str) -> str:
    """TODO 1 by somebody whose results and errors hold this text."""
    return (
        "todo 1:def validate_mesh_layout(config):\n"
        f"    if config['pp'] > 2: raise ValueError({text!r})\n"
        f"    return {{'valid': {text!r}, 'errors': [{text!r}]}}  # {ascii(text)}\n"
    )


def sample_class() -> list[Submission]:
    kinds = [
        ("wang", "王小明", "right"), ("chen", "陈静", "solution"), ("li", "李雷", "stub"),
        ("anna", "Anna Müller", "sample 1 without_kv_heads"),
        ("bob", "Bob O'Neil", "sample 1 axes_swapped"),
        ("carol", "Carol Díaz-Fernández de la Vega", "sample 2 equality_fails"),
        ("dan", "Dan", "sample 2 shallow_copy"), ("eve", "Eve", "sample 3 no_memory_level"),
        ("feng", "冯骥", "sample 3 sorts_in_place"), ("gao", "高远", "sample 1 only_a_bool"),
        ("han", "韩梅梅", "sample 1 key_error_without_kv_heads"), ("ivy", "Ivy", "timeout"),
        ("jin", "金", "missing"), ("kai", "Kai", "tampered"), ("luo", "罗", "wrong_lesson"),
        ("mao", "毛", "unreadable"), ("nora", "Nora", "broken grader"),
        ("olga", "Olga", "sample 2 one_list_for_all_calls"),
        ("pan", "潘", "sample 1 first_error_only"), ("qi", "齐", "sample 3 ignores_eligibility"),
    ]  # fmt: skip
    return [submission(key, kind, name) for key, name, kind in kinds]


def graded(exam: Exam, given: list[Submission], out: Path) -> list[Graded]:
    parts = Mixed(FUNCTIONS, RIGHT)
    return grade_class(exam, parts, given, len(given), out, "", 2, lambda line: None)


@pytest.fixture(scope="module")
def rows(exam: Exam, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    found = graded(exam, sample_class(), tmp_path_factory.mktemp("class"))
    fixed = {"li": [Correction("li", "3", 20, "课堂上讲清楚了思路", 2)]}
    absent = Submission("zoe", "Zoe", "", None, (), ("no_submission", {}))
    found += graded(exam, [absent], tmp_path_factory.mktemp("absent"))
    return make_rows(found, POINTS, fixed)


@pytest.fixture(scope="module")
def nasty(exam: Exam, tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    """Every text that a student can bring, in every place that it can come to."""
    given = []
    for index, text in enumerate(NASTY):
        one = submission(f"s{index}", nasty_answer(text.replace("\ud800", "")), text)
        notes = (
            ("several_files", {"kept": text, "left": [text, text]}),
            ("no_such_key", {"x": text}),
        )
        given.append(replace(one, path=f"{text}/x.ipynb", notes=notes))
    fixed = {f"s{i}": [Correction(text, "2", 1, text, i)] for i, text in enumerate(NASTY)}
    return make_rows(graded(exam, given, tmp_path_factory.mktemp("nasty")), POINTS, fixed)


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline="")))


# ------------------------------------------------------------------------------------------- tables


def test_grades_csv_has_one_line_a_student_that_a_spreadsheet_reads(rows: list[Row]) -> None:
    text = tables.grades_csv(rows, POINTS, "zh")
    assert text.startswith("\ufeffstudent,name,status,todo_1,todo_2,todo_3,total,max")
    lines = read_csv(text)
    assert [line[0] for line in lines[1:]] == [row.graded.student for row in rows]
    by_key = {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[1:]}
    assert by_key["wang"]["total"] == "100" and by_key["wang"]["status"] == "ok"
    assert by_key["anna"] | {"todo_1": "28", "total": "88"} == by_key["anna"]
    assert by_key["li"]["todo_3"] == "20" and by_key["li"]["corrected"] == "yes"
    assert by_key["nora"]["total"] == "" and by_key["nora"]["status"] == "grader_error"
    assert by_key["zoe"]["total"] == "" and by_key["zoe"]["status"] == "no_submission"
    assert "参考答案" in by_key["chen"]["notes"]


def test_no_cell_of_any_table_is_a_formula(exam: Exam, nasty: list[Row]) -> None:
    students = {
        row.graded.student: lms.Student("12", {"Student": row.graded.display}) for row in nasty
    }
    short = {row.graded.student: write.summary(row, about(exam)) for row in nasty}
    roster = Roster("canvas", ("Student", "ID", "Section"))
    for text in (
        tables.grades_csv(nasty, POINTS, "zh"),
        lms.moodle_csv(nasty, students, None, LESSON, 100, short),
        lms.canvas_csv(nasty, students, roster, LESSON, 100),
        lms.nbgrader_csv(nasty, students, LESSON, 100),
    ):
        lines = read_csv(text)
        assert len(lines) >= len(nasty) + 1
        assert {len(line) for line in lines} == {len(lines[0])}
        for line in lines:
            for value in line:
                assert not value.lstrip().startswith(("=", "+", "-", "@", "＝")), value
                assert not set(value) & set("\t\r\n\x00\x1b\u202e"), value


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\t=1", "\r=1", " =1", "＋1", "-"])
def test_a_formula_is_made_text(text: str) -> None:
    assert cell(text).startswith("'")


def test_numbers_and_plain_text_stay_as_they_are() -> None:
    assert [cell(v) for v in (-1, 0.25, 33.33, None, "x=1", "张 三")] == [
        "-1", "0.25", "33.33", "", "x=1", "张 三",
    ]  # fmt: skip


def test_hidden_characters_are_shown() -> None:
    assert visible("a\u202eb\x00\u200fc\ud800") == "a�b��c�"
    assert visible("👩‍💻 𰻞") == "👩‍💻 𰻞"


def test_grades_json_holds_everything(exam: Exam, rows: list[Row]) -> None:
    whole = json.loads(tables.grades_json(rows, {"lesson": LESSON, "seed": 3}, POINTS))
    assert whole["lesson"] == LESSON and whole["points"] == {"1": 40, "2": 30, "3": 30}
    assert len(whole["students"]) == len(rows)
    anna = next(one for one in whole["students"] if one["student"] == "anna")
    assert anna["total"] == 88 and anna["todos"][0]["failure"]["rule"] == "kv_heads"


# --------------------------------------------------------------------------------------- platforms


@dataclass(frozen=True)
class Roster:
    kind: str
    header: tuple[str, ...]
    possible: Mapping[str, str] = field(default_factory=dict)


MOODLE = (
    "\ufeffIdentifier", "Full name", "Email address", "Status", "Grade", "Maximum grade",
    "Grade can be changed", "Last modified (submission)", "Last modified (grade)",
    "Feedback comments",
)  # fmt: skip


def worksheet(rows: list[Row], most: str = "100.00") -> dict[str, lms.Student]:
    return {
        row.graded.student: lms.Student(
            "",
            dict(
                zip(
                    MOODLE,
                    (f"Participant {700 + i}", row.graded.display, "a@x", "Submitted", "", most,
                     "Yes", "Monday, 1 June 2026, 9:00 AM", "-", ""),
                    strict=True,
                )
            ),
        )
        for i, row in enumerate(rows)
    }  # fmt: skip


def test_moodle_s_worksheet_comes_back_filled_in(exam: Exam, rows: list[Row]) -> None:
    short = {row.graded.student: write.summary(row, about(exam, "en")) for row in rows}
    text = lms.moodle_csv(rows, worksheet(rows), Roster("moodle", MOODLE), LESSON, 100, short)
    lines = read_csv(text)
    assert lines[0] == [name.removeprefix("\ufeff") for name in MOODLE]
    assert lines[1][0] == "Participant 700" and lines[1][4] == "100"
    assert lines[1][8] == "-"  # Moodle's own word for no date
    assert lines[4][9].startswith("partly right; TODO 1: 28/40;")
    assert lines[-1][4] == ""  # nothing handed in: no zero


def test_moodle_s_own_maximum_is_kept(exam: Exam, rows: list[Row]) -> None:
    known = worksheet(rows, "10.00")
    text = lms.moodle_csv(rows, known, Roster("moodle", MOODLE), LESSON, 100, {})
    assert read_csv(text)[4][4] == "8.8"


def test_moodle_in_chinese_is_understood(rows: list[Row]) -> None:
    header = ("标识符", "全名", "成绩", "最后修改（教师）", "反馈评论")
    known = {
        "wang": lms.Student("", dict(zip(header, ("参与者7", "王", "", "-", ""), strict=True)))
    }
    text = lms.moodle_csv(rows, known, Roster("moodle", header), LESSON, 100, {"wang": "<b>"})
    assert read_csv(text)[1:] == [["参与者7", "王", "100", "-", "&lt;b&gt;"]]


def test_moodle_s_feedback_zip_has_a_folder_a_student(rows: list[Row]) -> None:
    found = {row.graded.student: f"<p>{row.graded.student}</p>" for row in rows}
    data = lms.moodle_zip(rows, worksheet(rows), found)
    assert data
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert names[0] == "王小明_700_assignfeedback_file_/feedback.html"
    for name in names:
        parts = name.split("/")[0].split("_", 4)  # as Moodle's importer takes it apart
        assert parts[1].isdecimal() and parts[2:] == ["assignfeedback", "file", ""]
    assert lms.moodle_zip(rows, {}, found) is None


def test_names_do_not_break_the_zip_s_folders(nasty: list[Row]) -> None:
    data = lms.moodle_zip(nasty, worksheet(nasty), {row.graded.student: "x" for row in nasty})
    assert data
    for name in zipfile.ZipFile(io.BytesIO(data)).namelist():
        folder, page = name.split("/")
        assert page == "feedback.html" and re.fullmatch(r"[^_]+_\d+_assignfeedback_file_", folder)


def test_canvas_gets_its_columns_and_this_assignment_alone(rows: list[Row]) -> None:
    header = (
        "Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Quiz (11)",
        f"{LESSON} (4242)", "Current Score",
    )  # fmt: skip
    known = {
        "wang": lms.Student(
            "", dict(zip(header, ("Wang", "71", "s1", "w", "A", "9", "", ""), strict=True))
        )
    }
    lines = read_csv(lms.canvas_csv(rows, known, Roster("canvas", header), LESSON, 100))
    assert lines[0] == [*header[:5], f"{LESSON} (4242)"]
    assert lines[1][0].strip() == "Points Possible" and lines[1][-1] == "100"
    assert lines[2] == ["Wang", "71", "s1", "w", "A", "100"]
    assert lines[-1][-1] == ""


def test_canvas_s_own_points_are_kept(rows: list[Row]) -> None:
    text = (
        f"Student,ID,Section,Quiz (11),{LESSON} (4242)\n    Points Possible,,,5,10\nWang,71,A,,\n"
    )
    roster = parse_roster(text)
    text = lms.canvas_csv(rows, {}, roster, LESSON, 100)
    assert "    Points Possible,,,10\r\n" in text
    lines = read_csv(text)
    anna = next(line for line in lines if line[0] == "Anna Müller")
    assert anna[-1] == "8.8" and lines[-1][-1] == ""


@pytest.mark.parametrize(
    ("titles", "chosen"),
    [
        (("Quiz (11)", "Lesson 4 (901)"), "Lesson 4 (901)"),
        (("Lesson 14 (11)", "Model Internal Parallel (12)"), "Model Internal Parallel (12)"),
        (("Lesson 4 (11)", "Lesson 04 (12)"), LESSON),
        (("Lesson 14 (4)", "Lesson 4"), LESSON),
    ],
)
def test_canvas_s_own_column_is_found_by_name_or_number(
    rows: list[Row], titles: tuple[str, ...], chosen: str
) -> None:
    roster = Roster("canvas", ("Student", "ID", "Section", *titles))
    assert read_csv(lms.canvas_csv(rows, {}, roster, LESSON, 100))[0][-1] == chosen


def test_canvas_without_an_export_makes_a_new_assignment(rows: list[Row]) -> None:
    lines = read_csv(lms.canvas_csv(rows, {}, None, LESSON, 100))
    assert lines[0] == ["Student", "ID", "Section", LESSON]


def test_nbgrader_s_columns(rows: list[Row]) -> None:
    lines = read_csv(lms.nbgrader_csv(rows, {}, LESSON, 100))
    assert tuple(lines[0]) == lms.NBGRADER
    anna = next(line for line in lines if line[3] == "anna")
    assert anna[0] == LESSON and anna[7] == anna[9] == "88" and anna[10] == "100"


@pytest.mark.parametrize(
    ("known", "number", "canvas_id"),
    [
        (lms.Student("", {}, "table", {"student_number": "2026001"}), "2026001", ""),
        (lms.Student("", {}, "list", {"student_number": "2026001"}), "2026001", ""),
        (lms.Student("71", {}, "canvas", {"student_number": "S1", "number": "71"}), "S1", "71"),
        (lms.Student("7", {}, "moodle", {"number": "Participant 7"}), "wang", ""),
        (lms.Student("7", {}, "moodle", {"student_number": "2026001"}), "2026001", ""),
        (lms.Student("u1", {}, "nbgrader", {"number": "u1"}), "u1", ""),
    ],
)  # fmt: skip
def test_every_platform_gets_the_student_s_number_and_none_another_s(
    rows: list[Row], known: lms.Student, number: str, canvas_id: str
) -> None:
    students = {"wang": replace(known, fields={**known.fields, "email": "w@x"})}
    moodle = read_csv(lms.moodle_csv(rows, students, None, LESSON, 100, {}))
    assert moodle[1][:2] == ["王小明", number] and moodle[2][1] == rows[1].graded.student
    table = read_csv(lms.nbgrader_csv(rows, students, LESSON, 100))
    assert (table[1][3], table[1][6]) == (number, "w@x")
    lines = read_csv(lms.canvas_csv(rows, students, None, LESSON, 100))
    wang = dict(zip(lines[0], lines[2], strict=True))
    assert wang["ID"] == canvas_id
    assert wang.get("SIS User ID", "") == known.fields.get("student_number", "")
    given_back = lms.moodle_zip(rows, students, {row.graded.student: "x" for row in rows})
    assert (given_back is not None) == (known.platform == "moodle")


# ------------------------------------------------------------------------------------------- pages


class Page(HTMLParser):
    """What a browser would make of a page: its tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


ALLOWED = {
    "html", "head", "meta", "title", "style", "link", "body", "main", "section", "div", "span", "p",
    "h1", "h2", "h3", "ul", "ol", "li", "dl", "dt", "dd", "code", "pre", "b", "i", "br", "footer",
    "figure", "img", "figcaption", "table", "thead", "tbody", "tr", "th", "td", "a",
}  # fmt: skip


@pytest.mark.parametrize("language", ["zh", "en"])
def test_no_student_s_text_is_ever_markup(exam: Exam, nasty: list[Row], language: str) -> None:
    told = about(exam, language)
    found = of_class(nasty, POINTS, exam.rules)
    lost = [Correction(text, "1", 1, text, 9) for text in NASTY]
    notes = [("left_aside", {"files": NASTY})]
    whole = pages.class_page(nasty, found, told, b"", notes, lost, [("grades.csv", "x")])
    for text in [*(pages.student_page(row, told) for row in nasty), whole]:
        page = Page(text)
        assert set(page.tags) <= ALLOWED
        assert not [name for name, _ in page.attributes if name.startswith("on")]
        for name, value in page.attributes:
            if name in ("href", "src"):
                assert re.match(r"data:image/|feedback/|grades\.csv$", value), value
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00\x1b]", text)
        assert "49" not in page.text.replace("7*7", "")[:200]
    assert "<script>alert(1)</script>" in Page(whole).text


def test_a_page_says_what_passed_what_failed_and_gives_a_hint(exam: Exam, rows: list[Row]) -> None:
    anna = next(row for row in rows if row.graded.student == "anna")
    text = Page(pages.student_page(anna, about(exam, "en"))).text
    for part in (
        "Anna Müller", "88", "28 / 40", "tp divides the number of KV heads",
        "validate_mesh_layout(", "'num_kv_heads': 1", "{'valid': False, 'errors': ['kv_heads']}",
        "{'valid': True, 'errors': []}", "Hint", "Look at the two numbers of this rule",
    ):  # fmt: skip
        assert part in text, part


def test_an_error_s_line_is_shown_and_the_hint_that_fits(exam: Exam, rows: list[Row]) -> None:
    han = next(row for row in rows if row.graded.student == "han")
    text = Page(pages.student_page(han, about(exam, "en"))).text
    assert "KeyError: 'num_kv_heads'" in text and "line 9" in text and "get method" in text
    gao = next(row for row in rows if row.graded.student == "gao")
    text = Page(pages.student_page(gao, about(exam, "en"))).text
    assert "should be dict, not bool" in text and "Hint" not in text


def one(exam: Exam, kind: str, out: Path, **corrections: Any) -> Row:
    """The row of one submission of this kind."""
    return make_rows(graded(exam, [submission("sam", kind, "Sam")], out), POINTS, corrections)[0]


def test_code_that_does_not_run_is_no_broken_rule(exam: Exam, tmp_path: Path) -> None:
    """The error comes first; nothing is said of rules that no call could keep or break."""
    row = one(exam, "todo 1:def validate_mesh_layout(config):\n  x = (\n", tmp_path)
    assert row.status == "does_not_run" and row.total == 60
    text = Page(pages.student_page(row, about(exam, "en"))).text
    first, _, second = text.partition("TODO 2")
    assert "does not run" in first and "syntax error" in first and "line 2" in first
    assert "✗" not in text and "<answer>" not in text and "Smallest" not in first
    assert "everything ran" not in text
    assert not of_class([row], POINTS, exam.rules).mistakes
    assert "✗" not in write.summary(row, about(exam, "en"))


def test_the_notebook_s_own_line_is_told_where_it_is_known(exam: Exam, tmp_path: Path) -> None:
    row = one(exam, "todo 1:def validate_mesh_layout(config):\n  x = (\n", tmp_path)
    values = {"todo": 1, "cell": 33, "line": 2, "message": "'(' was never closed"}
    row = replace(row, graded=replace(row.graded, notes=(("syntax_error", values),)))
    text = Page(pages.student_page(row, about(exam, "en"))).text
    said = "TODO 1 (cell 33) has a syntax error in line 2"
    assert text.count(said) == 1 and text.index(said) < text.index("TODO 2 ·")
    assert said in write.summary(row, about(exam, "en"))


SUM = """todo 1:def validate_mesh_layout(c):
    errors = []
    if c["pp"] + c["tp"] + c["cp"] != c["world_size"]: errors.append("mesh_product")
    if c["num_layers"] % c["pp"]: errors.append("pipeline_layers")
    if c["num_heads"] % c["tp"]: errors.append("attention_heads")
    if c.get("num_kv_heads") is not None and c["num_kv_heads"] % c["tp"]: errors.append("kv_heads")
    if c["sequence_length"] % c["cp"]: errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}
"""


def test_a_wrong_value_breaks_its_own_rule_alone(exam: Exam, tmp_path: Path) -> None:
    """Rules that need a right value are not judged: neither on the page nor for the class."""
    row = one(exam, SUM, tmp_path)
    text = Page(pages.student_page(row, about(exam, "en"))).text
    assert text.count("✗") == 1 and text.count("not judged: its cases depend") == 3
    found = of_class([row], POINTS, exam.rules)
    assert [mistake.rule.key for mistake in found.mistakes] == ["mesh_product"]
    assert write.summary(row, about(exam, "en")).count("✗") == 1


def test_a_rule_that_is_broken_by_itself_is_said_to_be(exam: Exam, rows: list[Row]) -> None:
    olga = next(row for row in rows if row.graded.student == "olga")
    broken = of_class([olga], POINTS, exam.rules).mistakes
    assert "fresh" in [mistake.rule.key for mistake in broken]


@pytest.mark.parametrize("lesson", ["01", "02", "03", "04", "05"])
def test_rules_need_rules_that_are_there_and_come_first(lesson: str) -> None:
    for todo in (1, 2, 3):
        rules = find(f"{lesson}_x").rules(todo)
        keys = [rule.key for rule in rules]
        for place, rule in enumerate(rules):
            assert set(rule.needs) <= set(keys[:place]), (lesson, todo, rule.key)


def test_points_can_be_added_up_from_the_page(exam: Exam, rows: list[Row]) -> None:
    """Each rule's points stand beside it; those that are met add up to the TODO's."""
    olga = next(row for row in rows if row.graded.student == "olga")
    text = pages.student_page(olga, about(exam, "en"))
    assert "a rule earns its points when all of its cases are right" in text
    for card, points in zip(text.split("<section")[1:], olga.points, strict=True):
        rules = re.findall(r">([✓✗–])</span>.*?· ([0-9.]+) points", card, re.DOTALL)
        assert points == pytest.approx(sum(float(n) for sign, n in rules if sign == "✓"), abs=0.02)


def test_a_correction_stands_on_the_page(exam: Exam, rows: list[Row]) -> None:
    li = next(row for row in rows if row.graded.student == "li")
    text = Page(pages.student_page(li, about(exam))).text
    assert "人工更正" in text and "课堂上讲清楚了思路" in text and "20 / 30" in text


def test_the_class_page_names_mistakes_and_who_needs_help(exam: Exam, rows: list[Row]) -> None:
    found = of_class(rows, POINTS, exam.rules)
    text = Page(pages.class_page(rows, found, about(exam, "en"), b"")).text
    assert found.handed_in == 20 and found.absent == 1
    assert found.mistakes[0].students >= 2
    assert {one.row.graded.student for one in found.help} == {"kai", "mao", "luo"}
    look = {row.graded.student for row, _ in found.to_look_at}
    assert look == {"kai", "luo", "mao", "nora", "chen", "jin"}
    assert "Commonest mistakes" in text and "Who needs help" in text


def test_what_a_teacher_gave_all_points_for_is_no_mistake(exam: Exam, rows: list[Row]) -> None:
    first = of_class(rows, POINTS, exam.rules).mistakes[0]
    broke = [(first.todo, first.rule) in broken_rules(row, exam.rules) for row in rows]
    assert sum(broke) >= first.students
    right = [
        replace(row, points=tuple(POINTS[todo] for todo in sorted(POINTS))) if broken else row
        for row, broken in zip(rows, broke, strict=True)
    ]
    assert first.rule not in [found.rule for found in of_class(right, POINTS, exam.rules).mistakes]


def noted(row: Row, *notes: Note) -> Row:
    return replace(row, graded=replace(row.graded, notes=notes))


def test_the_teacher_s_notes_are_the_teacher_s(exam: Exam, rows: list[Row]) -> None:
    """Neither page nor comment tells a student to check the roster, or of a suspicion."""
    row = noted(rows[0], ("is_solution", {}), ("not_on_roster", {"name": "Bob"}), ("late", {}))
    told = about(exam, "en")
    for text in (Page(pages.student_page(row, told)).text, write.summary(row, told)):
        assert "reference solution" not in text and "roster" not in text
    assert "late" in Page(pages.student_page(row, told)).text
    found = of_class([row], POINTS, exam.rules)
    text = Page(pages.class_page([row], found, told, b"")).text
    assert "reference solution" in text and "Bob is not on the roster" in text


def test_what_needs_an_eye_is_found_whatever_the_status(exam: Exam, rows: list[Row]) -> None:
    values = {"todo": 1, "function": "f", "cell": 3, "found": ["g"]}
    edited = {"count": 4, "cells": ["CHECK 3"]}
    each: list[Note] = [("is_solution", {}), ("renamed", values), ("not_on_roster", {"name": "x"})]
    odd = [noted(rows[0], note) for note in (*each, ("cells_edited", edited))]
    found = of_class([*odd, *[noted(rows[0])] * 9], POINTS, exam.rules)
    assert [row for row, _ in found.to_look_at] == odd
    assert [notes for _, notes in found.to_look_at] == [row.graded.notes for row in odd]


def test_cells_that_a_fix_of_the_course_changed_say_nothing_of_anybody(
    exam: Exam, rows: list[Row]
) -> None:
    everybody = [noted(rows[0], ("cells_edited", {"count": 1, "cells": ["CHECK 3"]}))] * 9
    assert not of_class(everybody, POINTS, exam.rules).to_look_at
    text = Page(pages.student_page(everybody[0], about(exam, "en"))).text
    assert "current version" in text and "edited" not in text and "costs nothing" in text


def test_a_todo_that_a_person_gave_all_points_shows_no_fault(exam: Exam, tmp_path: Path) -> None:
    for item, points in (("1", 40.0), ("total", 100.0)):
        row = one(exam, SUM, tmp_path, sam=[Correction("sam", item, points, "accepted", 2)])
        text = Page(pages.student_page(row, about(exam, "en"))).text
        assert row.total == 100 and "✗" not in text and "Hint" not in text
        assert "accepted" in text and "partly right" not in text
        name = "TODO 1: 40" if item == "1" else "Total: 100"
        assert f"{name} (accepted)" in tables.notes_text(row, "en")
    part = one(exam, SUM, tmp_path, sam=[Correction("sam", "1", 39.0, "almost", 2)])
    assert "✗" in pages.student_page(part, about(exam, "en"))


def test_a_file_that_is_none_is_not_said_to_lack_functions(exam: Exam, rows: list[Row]) -> None:
    mao = next(row for row in rows if row.graded.student == "mao")
    assert "is not there" not in Page(pages.student_page(mao, about(exam, "en"))).text


def test_a_renamed_function_s_card_says_so(exam: Exam, tmp_path: Path) -> None:
    row = one(exam, "missing", tmp_path)
    values = {"todo": 2, "function": "right_name", "cell": 3, "found": ["other"]}
    text = Page(pages.student_page(noted(row, ("renamed", values)), about(exam, "en"))).text
    assert text.count("must be called right_name") == 1
    assert text.index("must be called right_name") < text.index("TODO 3 ·")
    assert "was renamed its name back" in text


def test_one_is_not_called_several() -> None:
    for key in ("without_submission", "left_aside", "magics", "nbval_markers"):
        values = {"count": 1, "files": ["x"], "lines": ["1"], "tags": "-"}
        assert not re.search(r"\b1 [a-z]+s\b", say((key, values), "en")), key


def test_a_class_of_nobody_is_a_page_too(exam: Exam, tmp_path: Path) -> None:
    handout = write.Handout(about(exam), [], {}, None)
    assert write.write(handout, tmp_path).is_file()


def test_every_word_and_note_is_there_in_both_languages() -> None:
    assert all(len(both) == 2 and all(both) for both in _WORDS.values())
    assert set(STATUSES) < set(STATUS)
    for key, (chinese, english) in NOTES.items():
        names = set(re.findall(r"{(\w+)}", chinese))
        assert names == set(re.findall(r"{(\w+)}", english)), key
        values = dict.fromkeys(names, "X")
        for language in ("zh", "en"):
            assert "{" not in say((key, values), language)
    assert say(("unknown", {"a": ["x", "y"]}), "en") == "unknown, a = x, y"


def test_everything_is_written_and_old_pages_go(
    exam: Exam, rows: list[Row], tmp_path: Path
) -> None:
    (tmp_path / "feedback").mkdir()
    (tmp_path / "feedback" / "gone.html").write_text("old")
    handout = write.Handout(about(exam), rows, worksheet(rows), Roster("moodle", MOODLE))
    page = write.write(handout, tmp_path)
    assert page == tmp_path / "class.html"
    assert {path.name for path in tmp_path.iterdir()} == {
        "class.html", "class.png", "feedback", "grades.csv", "grades.json", "moodle.csv",
        "moodle-feedback.zip", "canvas.csv", "nbgrader.csv",
    }  # fmt: skip
    names = {path.stem for path in (tmp_path / "feedback").iterdir()}
    assert names == {row.graded.student for row in rows}
    links = [value for name, value in Page(page.read_text("utf-8")).attributes if name == "href"]
    for link in links:
        assert link.startswith("data:") or (tmp_path / link).is_file(), link
    write.write(replace(handout, students={}, roster=None), tmp_path)
    assert not (tmp_path / "moodle-feedback.zip").exists()


def test_the_picture_has_no_small_or_clipped_text(exam: Exam, rows: list[Row]) -> None:
    figure = draw(of_class(rows, POINTS, exam.rules), 100)
    figure.draw_without_rendering()
    said = " ".join(text.get_text() for text in figure.findobj(Text))
    assert not re.search("[a-z]{2,}", said)  # it stands on pages in either language
    width, height = figure.bbox.width, figure.bbox.height
    for axes in figure.axes:
        legend = axes.get_legend()
        ticks = [
            tick.label1
            for axis in (axes.xaxis, axes.yaxis)
            for tick in axis.get_major_ticks()
            if min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
        ]
        texts = [axes.title, axes.xaxis.label, axes.yaxis.label]
        for text in [*texts, *ticks, *(legend.get_texts() if legend else [])]:
            if text.get_text() and text.get_visible():
                box = text.get_window_extent()
                assert text.get_fontsize() >= 9
                assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height


# ------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    path = chromium()
    if path is None:
        if os.environ.get("PARLAB_REQUIRE") == "chromium":
            pytest.fail("no Chromium: install one or name it in PARLAB_CHROMIUM")
        pytest.skip("no Chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chrome = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield chrome
        chrome.close()


@pytest.mark.slow
@pytest.mark.xdist_group("chromium")
@pytest.mark.parametrize(
    ("language", "width", "every"),
    [("zh", 390, 1), ("en", 390, 1), ("en", 320, 7), ("zh", 1280, 7)],
)
def test_pages_fit_a_phone_and_a_desk(
    exam: Exam, rows: list[Row], nasty: list[Row], browser: Any, tmp_path: Path,
    language: str, width: int, every: int,
) -> None:  # fmt: skip
    """No page scrolls sideways, nothing is cut off, and no script runs."""
    everyone = [*rows, *nasty]
    keep = Correction("nobody" * 30, "total", 1, "x", 3)
    handout = write.Handout(
        about(exam, language), everyone, {}, None, [("left_aside", {"files": NASTY})], [keep]
    )
    write.write(handout, tmp_path)
    page = browser.new_page(viewport={"width": width, "height": 800})
    said: list[str] = []
    page.on("dialog", lambda dialog: (said.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda request: (
            said.append(request.url) if not request.url.startswith(("file:", "data:")) else None
        ),
    )
    shown = ["class.html", *(f"feedback/{row.graded.student}.html" for row in everyone[::every])]
    for name in shown:
        page.goto((tmp_path / name).as_uri())
        wide = page.evaluate(
            "() => [document.documentElement.scrollWidth, innerWidth,"
            " [...document.querySelectorAll('main *')].filter(e => {"
            "   const box = e.getBoundingClientRect(); return box.right > innerWidth + 1;"
            " }).map(e => e.outerHTML.slice(0, 80))]"
        )
        assert wide[0] <= wide[1] and not wide[2], (name, wide)
    page.close()
    assert said == []
