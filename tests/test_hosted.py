"""`make hosted` only: the twins on another Python and torch, with jupyter and matplotlib alone."""

from pathlib import Path

import pytest
from bare import hosted_python, kernel_for, no_network
from judge import judge, vector
from lessons import EVERY, answered, load
from test_nbval import assert_not_done

pytestmark = pytest.mark.skipif(not hosted_python(), reason="run by `make hosted`")


@pytest.mark.parametrize(("lesson", "language"), EVERY)
def test_the_twin_on_this_python(lesson: str, language: str, tmp_path: Path) -> None:
    python = hosted_python()
    assert python is not None
    variables, prefix = kernel_for(python, tmp_path / "jupyter"), no_network()
    twin = load("colab", lesson, language)
    assert_not_done(judge(twin, kernel="bare", environment=variables, prefix=prefix), [1, 2, 3])
    done = answered(lesson, language, [1, 2, 3], folder="colab")
    outcomes = judge(done, kernel="bare", environment=variables, prefix=prefix)
    assert vector(outcomes) == {}, [item.text for item in outcomes if item.text]
