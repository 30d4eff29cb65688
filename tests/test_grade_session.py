"""A whole run: one row each, whatever a submission does; resumed, corrected, reproducible."""

import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from grade_fakes import FakeParts, submission
from lessons import ROOT, answers

from parlab.grade import corrections, rows
from parlab.grade.exam import Exam, prepare
from parlab.grade.graded import Graded, from_plain, to_plain
from parlab.grade.progress import Progress
from parlab.grade.session import grade_class
from parlab.grade.state import State
from parlab.grade.types import Rebuilt, RunOutcome, Submission

LESSON = "04_model_internal_parallel"
FUNCTIONS = {
    1: "validate_mesh_layout",
    2: "evaluate_internal_parallel_candidate",
    3: "select_internal_parallel_candidate",
}
POINTS = {1: 40.0, 2: 30.0, 3: 30.0}
RIGHT = {n: next(a.source for a in answers(LESSON) if a.right and a.todo == n) for n in FUNCTIONS}
FIRST_ONLY = next(a.source for a in answers(LESSON) if a.name == "first_error_only")
LIMITS = "defaults"


@pytest.fixture(scope="module")
def exam() -> Exam:
    return prepare(ROOT, LESSON, FUNCTIONS, seed=3)


@pytest.fixture
def parts() -> FakeParts:
    return FakeParts(FUNCTIONS, RIGHT)


def grade(
    exam: Exam,
    parts: FakeParts,
    submissions: list[Submission],
    out: Path,
    limits: str = LIMITS,
    jobs: int = 2,
) -> list[Graded]:
    return grade_class(
        exam, parts, submissions, len(submissions), out, limits, jobs, lambda line: None
    )


def test_each_submission_gets_its_row_status_and_share(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    kinds = {
        "ok": ("right", (1.0, 1.0, 1.0)),
        "unfinished": ("stub", (1.0, 1.0, 0.0)),
        "missing_answers": ("missing", (1.0, 0.0, 1.0)),
        "partial": ("todo 1:" + FIRST_ONLY, (0.8, 1.0, 1.0)),
        "unreadable": ("unreadable", (0.0, 0.0, 0.0)),
        "wrong_lesson": ("wrong_lesson", (0.0, 0.0, 0.0)),
        "tampered": ("tampered", (0.0, 0.0, 0.0)),
        "timeout": ("timeout", (1.0, 1.0, 1.0)),
        "grader_error": ("broken grader", (None, None, None)),
    }
    given = [submission(status, kind) for status, (kind, _) in kinds.items()]
    found = grade(exam, parts, given, tmp_path)
    assert [row.student for row in found] == list(kinds)  # in the order given
    assert [row.status for row in found] == list(kinds)
    for row in found:
        assert [todo.share for todo in row.todos] == list(kinds[row.status][1]), row.status


def test_a_file_that_could_not_be_read_is_a_row_too(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    bad = Submission("a", "A", "a.zip", None, (), ("too_large", {"mb": 1024}))
    (row,) = grade(exam, parts, [bad], tmp_path)
    assert row.status == "unreadable" and row.notes == (("too_large", {"mb": 1024}),)


def test_whoever_handed_nothing_in_has_no_points(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    absent = Submission("a", "A", "", None, (), ("no_submission", {}))
    (row,) = grade(exam, parts, [absent], tmp_path)
    assert row.status == "no_submission"
    assert rows.make_rows([row], POINTS, {})[0].total is None


def test_the_grader_s_own_failure_leaves_a_log_and_is_tried_again(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    first = submission("eve", "broken grader")
    for _ in range(2):
        (row,) = grade(exam, parts, [first], tmp_path)
        assert row.status == "grader_error" and not row.reused
    log = (tmp_path / "logs" / "eve.log").read_text(encoding="utf-8")
    assert "RuntimeError: no such cell" in log and "Traceback" in log


def test_a_run_that_the_grader_could_not_do_has_no_points_and_is_tried_again(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    given = [submission("a", "grader_error")]
    for _ in range(2):
        (row,) = grade(exam, parts, given, tmp_path)
        assert row.status == "grader_error" and [todo.share for todo in row.todos] == [None] * 3
    assert len(parts.runs) == 4


@pytest.mark.parametrize("status", ["tampered", "grader_error", "kernel_died"])
def test_what_an_honest_answer_never_leads_to_is_believed_when_it_comes_twice(
    status: str, exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    given = [submission("once", f"once {status}"), submission("twice", status)]
    once, twice = grade(exam, parts, given, tmp_path)
    assert once.status == "ok" and once.notes == (("run_again", {"status": status}),)
    assert twice.status == status and "run_again" not in dict(twice.notes)


def test_where_the_sandbox_s_parent_has_died_no_student_is_blamed(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    parts.alive = False
    (row,) = grade(exam, parts, [submission("a", "kernel_died")], tmp_path)
    assert row.status == "grader_error"
    parts.alive = True
    (row,) = grade(exam, parts, [submission("a", "kernel_died")], tmp_path)
    assert row.status == "kernel_died" and not row.reused


class CutOff(FakeParts):
    """The interrupt comes while another submission is running, which then ends as a dead kernel."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS, RIGHT)
        self.interrupted = threading.Event()

    def run(self, rebuilt: Rebuilt) -> RunOutcome:
        kind = rebuilt.notebook.metadata["kind"] if rebuilt.notebook else ""
        if kind == "right slow":
            self.interrupted.wait(20)
            time.sleep(0.5)
            return RunOutcome("kernel_died", {})
        self.interrupted.set()
        raise KeyboardInterrupt


def test_what_an_interrupt_cuts_off_is_not_kept(exam: Exam, tmp_path: Path) -> None:
    given = [submission("slow", "right slow"), submission("stop", "right stop")]
    with pytest.raises(KeyboardInterrupt):
        grade(exam, CutOff(), given, tmp_path, jobs=2)
    time.sleep(1.5)  # the one cut off has ended by now
    found = grade(exam, FakeParts(FUNCTIONS, RIGHT), given, tmp_path)
    assert [(row.status, row.reused) for row in found] == [("ok", False)] * 2


def test_the_solution_as_it_is_scores_full_with_a_note(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    (row,) = grade(exam, parts, [submission("a", "solution")], tmp_path)
    assert row.status == "ok" and row.notes == (("is_solution", {}),)


def test_a_counterexample_comes_with_a_partial_answer(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    (row,) = grade(exam, parts, [submission("a", "todo 1:" + FIRST_ONLY)], tmp_path)
    failure = row.todos[0].failure
    assert failure and failure.rule == "several" and failure.call.count("\n") < 12
    assert row.todos[1].failure is None


KEEPS = """
def validate_mesh_layout(config, errors=[]):
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    return {"valid": not errors, "errors": errors}
"""


def test_an_answer_that_keeps_something_between_calls_is_told_so(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    (row,) = grade(exam, parts, [submission("a", "todo 1:" + KEEPS)], tmp_path)
    failure = row.todos[0].failure
    assert failure and failure.reasons[0][0] == "case_not_alone"


def test_one_list_for_all_calls_is_shown_with_both_calls(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    source = next(a.source for a in answers(LESSON) if a.name == "one_list_for_all_calls")
    (row,) = grade(exam, parts, [submission("a", "todo 1:" + source)], tmp_path)
    failure = row.todos[0].failure
    assert failure and failure.rule == "fresh" and "result_2 = validate" in failure.call
    assert failure.call.endswith("[result_1, result_2]")


# ----------------------------------------------------------------------------------------- resuming


def test_an_unchanged_submission_is_not_run_again(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    given = [submission("a", "right"), submission("b", "stub")]
    first = grade(exam, parts, given, tmp_path)
    again = grade(exam, parts, [replace(given[0], display="Anna"), given[1]], tmp_path)
    assert sorted(parts.runs) == ["right", "stub"]
    assert [row.reused for row in again] == [True, True]
    assert again[0].display == "Anna" and again[0].status == first[0].status
    grade(exam, parts, [submission("a", "todo 1:" + FIRST_ONLY), given[1]], tmp_path)
    assert len(parts.runs) == 3


def test_other_cases_limits_or_lesson_run_everything_again(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    given = [submission("a", "right")]
    grade(exam, parts, given, tmp_path)
    grade(exam, parts, given, tmp_path, limits="others")
    grade(prepare(ROOT, LESSON, FUNCTIONS, seed=4), parts, given, tmp_path)
    grade(replace(exam, digest="other"), parts, given, tmp_path)
    assert len(parts.runs) == 4


def test_a_damaged_state_is_only_run_again(exam: Exam, parts: FakeParts, tmp_path: Path) -> None:
    given = [submission("a", "right")]
    grade(exam, parts, given, tmp_path)
    (file,) = (tmp_path / ".state").iterdir()
    for damage in (b"", b"{}", b'{"key": 1}', b"\xff\xfe", b"[" * 100_000, b"null"):
        file.write_bytes(damage)
        (row,) = grade(exam, parts, given, tmp_path)
        assert row.status == "ok" and not row.reused


class Interrupted(FakeParts):
    """Ctrl-C comes while the third submission runs."""

    def run(self, rebuilt: Rebuilt) -> RunOutcome:
        outcome = super().run(rebuilt)
        if len(self.runs) == 3:
            raise KeyboardInterrupt
        return outcome


def test_an_interrupted_run_goes_on_where_it_stopped(exam: Exam, tmp_path: Path) -> None:
    given = [submission(name, "right " + name) for name in "abcdef"]
    stopped = Interrupted(FUNCTIONS, RIGHT)
    with pytest.raises(KeyboardInterrupt):
        grade(exam, stopped, given, tmp_path, jobs=1)
    again = FakeParts(FUNCTIONS, RIGHT)
    found = grade(exam, again, given, tmp_path, jobs=1)
    assert [row.status for row in found] == ["ok"] * 6
    assert [row.reused for row in found][:2] == [True, True]
    assert len(again.runs) == sum(not row.reused for row in found) >= 1


def test_results_come_back_from_a_file_as_they_were(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    (row,) = grade(exam, parts, [submission("a", "todo 1:" + FIRST_ONLY)], tmp_path)
    assert from_plain(to_plain(row)) == row
    state = State(tmp_path, exam, LIMITS)
    assert state.load("a", row.digest) == row
    assert state.load("a", "other") is None and state.load("b", row.digest) is None


def test_state_files_of_strange_names_do_not_leave_the_folder(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    grade(exam, parts, [submission("../../x\ud800", "right", "x")], tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# ------------------------------------------------------------------------------- parallel, progress


class Counting(FakeParts):
    """Notes how many run at a time."""

    def __init__(self) -> None:
        super().__init__(FUNCTIONS, RIGHT)
        self.barrier = threading.Barrier(3, timeout=20)

    def run(self, rebuilt: Rebuilt) -> RunOutcome:
        self.barrier.wait()  # passes only if three are here at once
        return super().run(rebuilt)


def test_as_many_run_at_a_time_as_asked_for(exam: Exam, tmp_path: Path) -> None:
    parts = Counting()
    found = grade(exam, parts, [submission(f"s{i}", "right") for i in range(6)], tmp_path, jobs=3)
    assert [row.status for row in found] == ["ok"] * 6


def test_submissions_are_taken_as_they_are_needed(exam: Exam, tmp_path: Path) -> None:
    taken, parts = [], FakeParts(FUNCTIONS, RIGHT)

    def lazily() -> "list[Submission]":
        for index in range(40):
            taken.append(len(parts.runs))
            yield submission(f"s{index}", "right")  # type: ignore[misc]

    grade_class(exam, parts, lazily(), 40, tmp_path, LIMITS, 2, lambda line: None)
    assert len(parts.runs) == 40
    assert all(index - done <= 2 * 2 + 2 for index, done in enumerate(taken))


def test_two_students_of_one_key_both_get_a_row(
    exam: Exam, parts: FakeParts, tmp_path: Path
) -> None:
    given = [submission("li", "right"), submission("Li", "stub"), submission("li", "missing")]
    found = grade(exam, parts, given, tmp_path)
    assert [row.student for row in found] == ["li", "Li-2", "li-3"]
    assert [row.status for row in found] == ["ok", "unfinished", "missing_answers"]
    assert found[1].found == (("same_key", {"key": "Li"}),)


@pytest.mark.parametrize(("language", "left"), [("zh", "约剩 0:50"), ("en", "about 0:50 left")])
def test_progress_says_how_long_it_will_take(language: str, left: str) -> None:
    now, lines = 0.0, []
    progress = Progress(10, lines.append, language, lambda: now)
    for _ in range(5):
        now += 10
        progress.count()
    assert lines[-1] == f"5/10 · 0:50 · {left}"
    for index in range(5):
        progress.count(reused=index == 0)
    assert lines[-1].startswith("10/10 · 0:50") and "1" in lines[-1].rpartition("·")[2]


# --------------------------------------------------------------------------------- hand corrections


def corrected(tmp_path: Path, text: str | bytes) -> list[corrections.Correction]:
    path = tmp_path / "corrections.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return corrections.read(path, POINTS, LESSON)


def test_corrections_change_points_and_total(exam: Exam, parts: FakeParts, tmp_path: Path) -> None:
    found = grade(
        exam, parts, [submission("a", "stub", "李 雷"), submission("b", "broken grader")], tmp_path
    )
    manual = corrected(
        tmp_path,
        "student,item,points,reason\n李 雷,3,25,口头说明了思路\nb,TODO 1,40,\nb,2,30,\nb,3,0,\n",
    )
    by_student, lost = corrections.by_student(manual, {r.student: r.display for r in found})
    assert not lost
    first, second = rows.make_rows(found, POINTS, by_student)
    assert first.points == (40, 30, 25) and first.total == 95
    assert first.computed == (40, 30, 0) and first.corrections[0].reason == "口头说明了思路"
    assert second.points == (40, 30, 0) and second.total == 70


def test_a_corrected_total_wins(exam: Exam, parts: FakeParts, tmp_path: Path) -> None:
    found = grade(exam, parts, [submission("a", "stub")], tmp_path)
    manual = corrected(tmp_path, "student;item;points;reason\na;total;88.5;late penalty\n")
    by_student, _ = corrections.by_student(manual, {"a": "a"})
    (row,) = rows.make_rows(found, POINTS, by_student)
    assert row.total == 88.5 and row.points == (40, 30, 0)


def test_excel_s_chinese_csv_is_read(tmp_path: Path) -> None:
    text = "student,item,points,reason\r\n张三,1,10,补交\r\n"
    (one,) = corrected(tmp_path, text.encode("gb18030"))
    assert (one.student, one.reason) == ("张三", "补交")
    assert corrected(tmp_path, b"\xef\xbb\xbf" + text.encode()) == [one]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,4,1,", "item '4': write one of 1, 2, 3, total"),
        ("a,1,41,", "points '41': write a number from 0 to 40"),
        ("a,1,-1,", "from 0 to 40"),
        ("a,1,nan,", "from 0 to 40"),
        ("a,1,viel,", "points 'viel'"),
        (",1,1,", "no student"),
        ("a,1,1,\na,1,2,", "stands in line 2 already"),
    ],
)
def test_a_correction_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, line: str, said: str
) -> None:
    with pytest.raises(corrections.BadCorrections, match="corrections.csv:") as refused:
        corrected(tmp_path, "student,item,points,reason\n" + line + "\n")
    assert said in str(refused.value)


def test_corrections_that_fit_nobody_or_two_are_given_back(tmp_path: Path) -> None:
    manual = corrected(tmp_path, "student,item,points\nWang,1,1\nnobody,1,1\nw1,2,2\n")
    found, lost = corrections.by_student(manual, {"w1": "Wang", "w2": "Wang"})
    assert [one.student for one in lost] == ["Wang", "nobody"]
    assert [one.points for one in found["w1"]] == [2]


def test_all_lines_that_cannot_be_used_are_named_at_once(tmp_path: Path) -> None:
    lines = "student,item,points,reason\na,4,1,\n,1,1,\nb,1,1,\nb,1,2,\nc,1,99,\n,,,\n"
    with pytest.raises(corrections.BadCorrections) as refused:
        corrected(tmp_path, lines)
    numbers = [line.split("corrections.csv:")[1][0] for line in str(refused.value).splitlines()]
    assert numbers == ["2", "3", "5", "6"]


def test_a_correction_finds_its_student_by_what_else_names_it(tmp_path: Path) -> None:
    manual = corrected(tmp_path, "student,item,points\nA_1,1,1\nboth,1,1\nw2,1,3\n")
    names = {"w1": "Wang", "w2": "Li"}
    found, lost = corrections.by_student(
        manual, names, {"w1": ["A_1", "both", "w2"], "w2": ["both"]}
    )
    assert [one.student for one in lost] == ["both"]
    assert [one.points for one in found["w1"]] == [1] and [one.points for one in found["w2"]] == [3]


def test_a_table_for_several_lessons_gives_each_its_own(tmp_path: Path) -> None:
    lines = ["student,lesson,item,points,reason", "a,04,1,9,", "a,4,2,8,", "a,,3,7,", "a,02,1,500,"]
    found = corrected(tmp_path, "\n".join(lines))
    assert [(one.item, one.points) for one in found] == [("1", 9.0), ("2", 8.0), ("3", 7.0)]
    with pytest.raises(corrections.BadCorrections, match=r"csv:2: lesson 'four': .* as 04"):
        corrected(tmp_path, "student,lesson,item,points\na,four,1,9")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("student,item,points,课\na,1,9,04", "csv:1: column '课': the first line must be student"),
        ("student,item,points,lesson,lesson\na,1,9,04,03", "csv:1: column 'lesson'"),
        ('student,item,points,reason\na,1,9,"half\nb,1,9,x', "quotation mark that is not closed"),
        ("student,item,points\na,1," + "9" * 200_000, "field larger than field limit"),
    ],
    ids=["misnamed", "twice", "open quote", "huge"],
)
def test_a_table_that_would_be_misread_is_refused(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(corrections.BadCorrections, match=said):
        corrected(tmp_path, text)


def test_a_folder_is_no_table_and_an_empty_line_above_is_none(tmp_path: Path) -> None:
    with pytest.raises(corrections.BadCorrections, match="give a CSV file"):
        corrections.read(tmp_path, POINTS, LESSON)
    (found,) = corrected(tmp_path, "\nstudent,item,points,lesson\na,1,9,4.0")
    assert (found.line, found.points) == (3, 9.0)


def test_of_two_lines_for_one_student_the_later_counts_whatever_they_call_him(
    tmp_path: Path,
) -> None:
    manual = corrected(tmp_path, "student,item,points,reason\nw1,1,5,first\nWang,1,30,second")
    found, lost = corrections.by_student(manual, {"w1": "Wang"})
    assert [one.reason for one in found["w1"]] == ["second"]
    assert [one.reason for one in lost] == ["first"]


def test_no_file_and_an_empty_table_are_no_corrections(tmp_path: Path) -> None:
    assert corrections.read(tmp_path / "none.csv", POINTS, LESSON) == []
    assert corrected(tmp_path, "\ufeff" + corrections.template()) == []
