"""Every figure of every lesson can be read: nothing clipped, overlapping, tiny or without glyph."""

import itertools
import re
import warnings
from collections.abc import Iterator
from unittest import mock

import matplotlib
import matplotlib.pyplot as plt
import pytest
from lessons import EVERY, LESSONS, ROOT, Kernel, code_cells, load
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Text

matplotlib.use("Agg")
NOTEBOOK_INCHES, SMALLEST_POINTS = 9.0, 9
CJK = re.compile(r"[\u2e80-\u9fff\uff00-\uffef]")


def drawn_texts(figure: Figure) -> list[Text]:
    """The texts that really are drawn: not those of hidden axes or of ticks beyond the limits."""
    drawn: list[Text] = []
    draw = Text.draw

    def record(text: Text, renderer: RendererBase) -> None:
        draw(text, renderer)
        if text.get_visible() and text.get_text().strip() and text not in drawn:
            drawn.append(text)

    with mock.patch.object(Text, "draw", record):
        figure.canvas.draw()
    return drawn


def problems(figure: Figure) -> Iterator[str]:
    """What a reader would trip over."""
    width = figure.get_size_inches()[0]
    if width > NOTEBOOK_INCHES:
        yield f"{width} inches wide"
    shown = drawn_texts(figure)
    edge = figure.bbox
    for text in shown:
        box, words = text.get_window_extent(), text.get_text()
        if box.x0 < -1 or box.y0 < -1 or box.x1 > edge.x1 + 1 or box.y1 > edge.y1 + 1:
            yield f"{words!r} is clipped at {box.extents.round()}"
        if text.get_fontsize() < SMALLEST_POINTS:
            yield f"{words!r} is set in {text.get_fontsize()} points"
        if CJK.search(words):
            yield f"{words!r} needs a Chinese font"
    boxes = [(text.get_text(), text.get_window_extent()) for text in shown]
    for (one, a), (other, b) in itertools.combinations(boxes, 2):
        if a.x0 + 1 < b.x1 and b.x0 + 1 < a.x1 and a.y0 + 1 < b.y1 and b.y0 + 1 < a.y1:
            yield f"{one!r} overlaps {other!r}"


@pytest.mark.slow
@pytest.mark.parametrize(("lesson", "language"), EVERY)
def test_figures_can_be_read(lesson: str, language: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []
    seen = 0

    def show() -> None:
        nonlocal seen
        for number in plt.get_fignums():
            seen += 1
            found.extend(f"figure {seen}: {what}" for what in problems(plt.figure(number)))
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    kernel = Kernel()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for cell in code_cells(load("solutions", lesson, language)):
            kernel.run(cell.source)
    assert found == []
    assert seen >= 4


def test_an_unreadable_figure_is_found() -> None:
    figure = plt.figure(figsize=(12, 3))
    figure.text(0.99, 0.5, "runs over the edge")
    figure.text(0.1, 0.5, "one", fontsize=20)
    figure.text(0.1, 0.52, "two", fontsize=4)
    said = "\n".join(problems(figure))
    plt.close(figure)
    for what in (
        "12.0 inches",
        "'runs over the edge' is clipped",
        "4.0 points",
        "'one' overlaps 'two'",
    ):
        assert what in said


@pytest.mark.parametrize("lesson", LESSONS)
def test_solutions_hold_the_figures_as_pictures(lesson: str) -> None:
    cells = code_cells(load("solutions", lesson, "en"))
    outputs = [output for cell in cells for output in cell.outputs]
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 4
    assert not any(output.get("name") == "stderr" for output in outputs)


def test_drawing_modules_hold_no_chinese() -> None:
    for module in (ROOT / "parlab" / "lesson").glob("draw_*.py"):
        assert not CJK.search(module.read_text(encoding="utf-8")), module.name
