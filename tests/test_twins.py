"""The single-file twins run alone: an empty folder, three packages, no network."""

import os
from dataclasses import dataclass

import pytest
from bare import bare_python, kernel_for, no_network
from judge import judge, vector
from lessons import EVERY, ONCE, answered, load
from nbformat.v4 import new_code_cell, new_notebook
from test_nbval import assert_not_done

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("twins"),
    pytest.mark.skipif(os.name == "nt", reason="the bare environment is made of links"),
]
IN_TURN = pytest.mark.parametrize(("lesson", "language"), ONCE)
OTHER_TURN = pytest.mark.parametrize(
    ("lesson", "language"), [walk for walk in EVERY if walk not in ONCE]
)
PACKAGES = ("ipykernel", "torch", "matplotlib")


@dataclass(frozen=True)
class Bare:
    """How to run a notebook on the bare environment."""

    environment: dict[str, str]
    prefix: tuple[str, ...]


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Bare:
    folder = tmp_path_factory.mktemp("bare")
    python = bare_python(folder / "env", PACKAGES)
    return Bare(kernel_for(python, folder / "jupyter"), no_network())


def test_the_environment_is_bare_and_offline(bare: Bare) -> None:
    absent = "import importlib.util as u\nassert u.find_spec('{}') is None"
    names = ("parlab", "jupytext", "nbval", "pytest", "cell_outcomes", "jupyterlab")
    cells = [new_code_cell(absent.format(name)) for name in names]
    cells.append(new_code_cell("import torch, matplotlib"))
    if bare.prefix:
        reach = "import socket\ntry:\n    socket.create_connection(('192.0.2.1', 9), timeout=5)\n"
        cells.append(
            new_code_cell(reach + "except OSError as e:\n    assert e.errno == 101, e.errno\n")
        )
    outcomes = judge(
        new_notebook(cells=cells), kernel="bare", environment=bare.environment, prefix=bare.prefix
    )
    assert vector(outcomes) == {}, [item.text for item in outcomes]


@OTHER_TURN
def test_the_twin_fails_at_its_three_checks_only(bare: Bare, lesson: str, language: str) -> None:
    twin = load("colab", lesson, language)
    outcomes = judge(twin, kernel="bare", environment=bare.environment, prefix=bare.prefix)
    assert_not_done(outcomes, [1, 2, 3])


@IN_TURN
def test_the_twin_with_the_answers_passes(bare: Bare, lesson: str, language: str) -> None:
    twin = answered(lesson, language, [1, 2, 3], folder="colab")
    outcomes = judge(twin, kernel="bare", environment=bare.environment, prefix=bare.prefix)
    assert vector(outcomes) == {}, [item.text for item in outcomes]


@IN_TURN
def test_an_exercise_without_the_package_says_so_in_one_line(
    bare: Bare, lesson: str, language: str
) -> None:
    exercise = load("notebooks", lesson, language)
    exercise.cells = [item for item in exercise.cells if item.id == "setup"]
    (setup,) = judge(exercise, kernel="bare", environment=bare.environment)
    assert setup.outcome == "failed"
    assert len(setup.error) == 1 and "parlab" in setup.error[0] and "colab/" in setup.error[0]
