"""Every check accepts right answers however they are written, and rejects plausible wrong ones."""

from collections import Counter
from typing import Any

import matplotlib
import pytest
from lessons import (
    LANGUAGES,
    LESSONS,
    Answer,
    Kernel,
    answered,
    answers,
    cell,
    code_cells,
    load,
    needed,
    todo_numbers,
)
from matplotlib import pyplot

from parlab.lesson.checks import NotDone, Wrong

matplotlib.use("Agg")
ANSWERS = [answer for lesson in LESSONS for answer in answers(lesson)]
RIGHT = [answer for answer in ANSWERS if answer.right]
WRONG = [answer for answer in ANSWERS if not answer.right]
# These are found out when five seconds are over.
WAITING = ("never_ends", "rank_1_never_returns", "waits_for_a_missing_rank")


def check(answer: Answer, language: str, path: str) -> str:
    notebook, kernel = load("notebooks", answer.lesson, language), Kernel()
    kernel.run(cell(notebook, "setup").source)
    for number in needed(notebook, answer.todo):  # what this TODO calls is done and has passed
        kernel.run(cell(load("solutions", answer.lesson, language), f"todo-{number}").source)
        kernel.run(cell(notebook, f"check-{number}").source)
    kernel.run(answer.source, path)
    return kernel.run(cell(notebook, f"check-{answer.todo}").source)


def in_both_languages(answers: list[Answer]) -> list[Any]:
    """Each answer in one language quickly, languages in turn, and in the other as a slow test."""
    return [
        pytest.param(
            answer,
            language,
            marks=[pytest.mark.slow] if answer.name in WAITING or (place + turn) % 2 else [],
            id=f"{answer}-{language}",
        )
        for place, answer in enumerate(answers)
        for turn, language in enumerate(LANGUAGES)
    ]


@pytest.mark.parametrize(("answer", "language"), in_both_languages(RIGHT))
def test_a_right_answer_passes(answer: Answer, language: str) -> None:
    printed = check(answer, language, "<answer>")
    assert printed.startswith(f"✅ TODO {answer.todo} · ")
    assert printed.count("\n") == 1


@pytest.mark.parametrize(("answer", "language"), in_both_languages(WRONG))
def test_a_wrong_answer_is_told_the_rule_and_both_values(answer: Answer, language: str) -> None:
    with pytest.raises(Wrong) as caught:
        check(answer, language, "<answer>")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith(f"❌ TODO {answer.todo} · ")
    assert 4 <= len(lines) <= 6
    labels = [line.partition(" | ")[0].strip() for line in lines[1:]]
    zh, en = ("规则", "期望", "实际"), ("rule", "expected", "actual")
    wanted = zh if language == "zh" else en
    raised = "函数不应抛出异常" if language == "zh" else "must not raise"
    if raised in lines[2]:
        wanted = (wanted[0], wanted[2])
    assert [label for label in labels if label in wanted] == list(wanted)
    if language == "zh":
        assert answer.expects in str(caught.value)


@pytest.mark.parametrize("lesson", LESSONS)
def test_there_are_enough_sample_answers(lesson: str) -> None:
    right = Counter(answer.todo for answer in RIGHT if answer.lesson == lesson)
    wrong = Counter(answer.todo for answer in WRONG if answer.lesson == lesson)
    todos = todo_numbers(load("notebooks", lesson, "zh"))
    assert min(right[todo] for todo in todos) >= 3
    assert min(wrong[todo] for todo in todos) >= 6
    assert sum(wrong.values()) >= 30
    assert len({(a.todo, a.name) for a in answers(lesson)}) == right.total() + wrong.total()


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_stub_says_only_that_it_is_not_done(lesson: str, language: str) -> None:
    notebook, kernel = load("notebooks", lesson, language), Kernel()
    kernel.run(cell(notebook, "setup").source)
    for number in todo_numbers(notebook):
        check_cell = cell(notebook, f"check-{number}").source
        for todo in ("", cell(notebook, f"todo-{number}").source):
            kernel.run(todo)
            with pytest.raises(NotDone) as caught:
                kernel.run(check_cell)
            assert str(caught.value).startswith(f"⏳ TODO {number} · ")
            assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lesson", "language", "number"),
    [
        (lesson, LANGUAGES[(place + number) % 2], number)
        for place, lesson in enumerate(LESSONS)
        for number in (1, 2, 3)
    ],
)
def test_one_open_todo_fails_at_its_own_check(
    lesson: str, language: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at those of TODOs that call its function, which say what to finish first."""
    done = [other for other in (1, 2, 3) if other != number]
    exercise = answered(lesson, language, done)
    callers = [other for other in done if number in needed(exercise, other)]
    monkeypatch.setattr(pyplot, "show", lambda: pyplot.close("all"))
    kernel, failed = Kernel(), {}
    for item in code_cells(exercise):
        try:
            kernel.run(item.source)
        except NotDone as error:
            failed[item.id] = str(error)
    assert set(failed) == {f"check-{todo}" for todo in (number, *callers)}
    for check_id, said in failed.items():
        todo = check_id.removeprefix("check-")
        assert said.startswith(f"⏳ TODO {todo} · ") and "\n" not in said
