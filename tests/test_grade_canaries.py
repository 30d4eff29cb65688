"""Canaries: each fails as it says, and as no other does, whatever names an answer has taken."""

import pytest

from parlab.grade.canaries import Canaries

# So many that two of them begin with the same number of five digits, again and again.
MANY = 3000
SHADOWED = ("tuple", "list", "str", "len", "print", "canary", "map", "range")


def test_no_two_canaries_are_taken_for_one_another() -> None:
    canaries = Canaries()
    made = [canaries.make() for _ in range(MANY)]
    assert len({cell.id for cell in made}) == MANY
    space = dict.fromkeys(SHADOWED, "taken")
    for cell in made:
        with pytest.raises(AssertionError) as caught:
            exec(cell.source, space)
        assert str(caught.value) == canaries.said(cell.id)


def test_a_cell_of_the_notebook_is_no_canary() -> None:
    canaries = Canaries()
    canaries.make()
    assert canaries.said("canary-0") is None
