"""Builds the sample class: twelve notebooks in examples/class/, and examples/roster.csv.

    .venv/bin/python examples/make_class.py            write it
    .venv/bin/python examples/make_class.py --check    say whether it is what the sources make

The notebooks are made from the built exercise and the sample answers under tests/answers/, so they
follow the lesson when it changes. Nothing in them is random.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from grade_damage import (  # noqa: E402
    STYLES,
    Notebook,
    checks_edited,
    encoded,
    find,
    ids_gone,
    text_of,
)
from lessons import answers, load  # noqa: E402

LESSON = "04_model_internal_parallel"
FOLDER, ROSTER = ROOT / "examples" / "class", ROOT / "examples" / "roster.csv"

# Name, student number, what was handed in, the status it gets, and the TODOs that score full.
CLASS: tuple[tuple[str, int, str, str, tuple[int, ...]], ...] = (
    ("王芳", 2026001, "right", "ok", (1, 2, 3)),
    ("李伟", 2026002, "untouched", "unfinished", ()),
    ("张敏", 2026003, "first_error_only", "partial", (2, 3)),
    ("刘洋", 2026004, "colab", "ok", (1, 2, 3)),
    ("陈静", 2026005, "equality_fails", "partial", (1, 3)),
    ("Ann Smith", 2026006, "english_with_helpers", "ok", (1, 2, 3)),
    ("José García", 2026007, "throughput_only", "partial", (1, 2)),
    ("Zoë Müller", 2026008, "edited_checks", "partial", (2,)),
    ("赵强", 2026009, "renamed", "missing_answers", (2, 3)),
    ("Bob O'Neill", 2026010, "cut_off", "unreadable", ()),
    ("黄丽", 2026011, "solution", "ok", (1, 2, 3)),
    ("Sam Lee", 2026012, "two_of_three", "unfinished", (1, 2)),
)
ABSENT = (("周军", 2026013),)


def main(arguments: list[str]) -> int:
    """Writes the class, or compares it.

    Returns:
        0, or 1 where ``--check`` finds a difference.
    """
    wanted = build()
    there = [*FOLDER.glob("*"), *ROSTER.parent.glob(ROSTER.name)]
    have = {path.name: path.read_bytes() for path in there}
    if "--check" in arguments:
        differing = sorted(name for name in {*wanted, *have} if wanted.get(name) != have.get(name))
        for name in differing:
            print(f"examples/…/{name} is not what the sources make: run examples/make_class.py")
        return 1 if differing else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in have.keys() - wanted.keys():
        _place(name).unlink()
    for name, content in wanted.items():
        _place(name).write_bytes(content)
    return 0


def _place(name: str) -> Path:
    return ROSTER if name == ROSTER.name else FOLDER / name


def build() -> dict[str, bytes]:
    """File name → content."""
    files = {
        f"{name}_{number}_{LESSON}.ipynb": _MAKERS[kind]() for name, number, kind, _, _ in CLASS
    }
    people = [*((name, number) for name, number, _, _, _ in CLASS), *ABSENT]
    lines = [
        "学号,姓名,邮箱",
        *(f"{number},{name},s{number}@example.edu" for name, number in people),
    ]
    files[ROSTER.name] = ("\n".join(lines) + "\n").encode("utf-8-sig")
    return files


def _book(language: str = "zh", folder: str = "notebooks") -> Notebook:
    book: Notebook = json.loads(json.dumps(load(folder, LESSON, language)))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"], cell["execution_count"] = [], None
    return book


def _answers(**chosen: str) -> dict[int, tuple[str, str]]:
    """The first right answer of each TODO, or the one named ``t1``, ``t2``, ``t3``."""
    found: dict[int, tuple[str, str]] = {}
    functions = {n: text_of(_book()["cells"][find(_book(), f"# TODO {n} ·")]) for n in (1, 2, 3)}
    for answer in answers(LESSON):
        name = chosen.get(f"t{answer.todo}")
        if (answer.name == name) if name else (answer.right and answer.todo not in found):
            function = functions[answer.todo].split("\n")[0].rpartition(" ")[2]
            found[answer.todo] = (function, answer.source)
    return found


def _with(
    language: str = "zh", style: str = "plain", folder: str = "notebooks", **chosen: str
) -> Notebook:
    book = _book(language, folder)
    STYLES[style](book, _answers(**chosen))
    return book


def _renamed() -> Notebook:
    book = _with()
    cell = book["cells"][find(book, "# TODO 1 ·")]
    head, _, rest = text_of(cell).partition("\n")
    cell["source"] = head + "\n" + rest.replace("validate_mesh_layout", "check_layout")
    return book


def _two_of_three() -> Notebook:
    book = _book()
    chosen = _answers()
    chosen.pop(3)
    STYLES["helper_after"](book, chosen)
    return book


_MAKERS: dict[str, Callable[[], bytes]] = {
    "right": lambda: encoded(_with()),
    "untouched": lambda: encoded(_book()),
    "first_error_only": lambda: encoded(_with(t1="first_error_only")),
    "colab": lambda: encoded(ids_gone(_with(folder="colab"))),
    "equality_fails": lambda: encoded(_with(t2="equality_fails")),
    "english_with_helpers": lambda: encoded(_with("en", "helper_before")),
    "throughput_only": lambda: encoded(_with(t3="throughput_only")),
    "edited_checks": lambda: encoded(
        checks_edited(_with(t1="sum_of_axes", t3="ignores_eligibility"))
    ),
    "renamed": lambda: encoded(_renamed()),
    "cut_off": lambda: encoded(_with())[:30_000],
    "solution": lambda: encoded(_book(folder="solutions")),
    "two_of_three": lambda: encoded(_two_of_three()),
}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
