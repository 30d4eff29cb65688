"""No exercise and no twin holds a line of an answer, in whatever cell."""

import pytest
from lessons import LANGUAGES, LESSONS, code_cells, load

# How long a line must be to be nobody's but the answer's, and how many such lines there are.
LONGER, MORE = {"01": 24, "05": 25}, {"01": 25, "02": 12, "05": 25}


def lines_of_answers(lesson: str) -> set[str]:
    found = set()
    for language in LANGUAGES:
        for item in code_cells(load("solutions", lesson, language)):
            _, _, rest = item.source.partition("# BEGIN SOLUTION")
            lines = map(str.strip, rest.partition("# END SOLUTION")[0].splitlines())
            found |= {line for line in lines if len(line) > LONGER.get(lesson[:2], 20)}
    if lesson[:2] == "01":  # its imports and plain loops are everybody's
        found = {line for line in found if not line.startswith(("from ", "for "))}
    assert len(found) > MORE.get(lesson[:2], 15)
    return found


@pytest.mark.parametrize("lesson", LESSONS)
@pytest.mark.parametrize("folder", ["notebooks", "colab"])
def test_no_exercise_holds_an_answer(folder: str, lesson: str) -> None:
    answers = lines_of_answers(lesson)
    for language in LANGUAGES:
        text = "\n".join(item.source for item in load(folder, lesson, language).cells)
        assert not [line for line in answers if line in text]
