"""The committed notebooks and pages are what the sources make."""

from lessons import ROOT

from parlab.author.build import check
from parlab.author.repository import find_repository


def test_the_repository_is_what_its_sources_build() -> None:
    said: list[str] = []
    assert check(find_repository(ROOT), (), said.append), "\n".join(said)
