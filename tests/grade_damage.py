"""Ways in which a notebook arrives damaged, and ways in which a right answer may be written."""

import copy
import json
import re
from collections.abc import Callable
from typing import Any

Notebook = dict[str, Any]  # the notebook's JSON
SEPARATOR = "\n\n\n"


def code(source: str, **keys: Any) -> dict[str, Any]:
    """A new code cell, as an editor without cell ids writes it."""
    return {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None,
            "source": source, **keys}  # fmt: skip


def text_of(cell: dict[str, Any]) -> str:
    """A cell's source as one string."""
    source = cell.get("source", "")
    return source if isinstance(source, str) else "".join(source)


def find(book: Notebook, start: str) -> int:
    """Index of the first cell whose text starts so, or has that as a line of its own at the top."""
    for index, cell in enumerate(book["cells"]):
        lines = text_of(cell).split("\n")[:2]
        if any(line.startswith(start) for line in lines):
            return index
    raise LookupError(start)


def put_answer(book: Notebook, number: int, function: str, source: str) -> None:
    """The answer under the TODO's marker."""
    index = find(book, f"# TODO {number} ·")
    book["cells"][index]["source"] = f"# TODO {number} · {function}\n{source.strip()}\n"


# ------------------------------------------------------------------ right answers in other styles
# Each takes the notebook and {number: (function, source)}, and writes all the answers into it.
Style = Callable[[Notebook, dict[int, tuple[str, str]]], None]


def _inner(function: str, source: str) -> str:
    return re.sub(rf"\b{function}\b", f"_{function}_inner", source)


def plain(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        put_answer(book, number, function, source)


def helper_before(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        put_answer(book, number, function, _calls_inner(function))
        book["cells"].insert(find(book, f"# TODO {number} ·"), code(_inner(function, source)))


def helper_after(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        put_answer(book, number, function, _calls_inner(function))
        book["cells"].append(code(_inner(function, source)))


def helper_in_setup(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    setup = book["cells"][find(book, "# SETUP")]
    for number, (function, source) in answers.items():
        put_answer(book, number, function, _calls_inner(function))
        setup["source"] = text_of(setup) + SEPARATOR + _inner(function, source)


def helper_in_check(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        put_answer(book, number, function, _calls_inner(function))
        check = book["cells"][find(book, f"# CHECK {number}")]
        head, _, rest = text_of(check).partition("\n")
        check["source"] = f"{head}\n{_inner(function, source)}\n{rest}"


def decorated(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    helper = (
        "import functools as ft\n\ndef traced(fn):\n    @ft.wraps(fn)\n"
        "    def run(*args, **kwargs):\n        CALLS['n'] += 1\n"
        "        return fn(*args, **kwargs)\n"
        "    return run\n\nCALLS = {}\nCALLS['n'] = 0\nCALLS.update(seen=0)\n"
    )
    book["cells"].insert(find(book, "# TODO 1 ·"), code(helper))
    for number, (function, source) in answers.items():
        put_answer(book, number, function, f"{source}\n\n{function} = traced({function})")


def callable_object(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        made = (
            f"{_inner(function, source)}\n\nclass Answer{number}:\n"
            f"    def __call__(self, *args, **kwargs):\n"
            f"        return _{function}_inner(*args, **kwargs)\n\n{function} = Answer{number}()"
        )
        put_answer(book, number, function, made)


def as_lambda(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for number, (function, source) in answers.items():
        made = f"{_inner(function, source)}\n\n{function} = lambda *a: _{function}_inner(*a)"
        put_answer(book, number, function, made)


def in_one_cell(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    sources = SEPARATOR.join(source for _, source in answers.values())
    first = min(answers)
    put_answer(book, first, answers[first][0], sources)


def at_the_end(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    for _, source in answers.values():
        book["cells"].append(code(source))


def wrapped_later(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    plain(book, answers)
    for function, _ in answers.values():
        later = f"_old = {function}\n\ndef {function}(*args, _old=_old):\n    return _old(*args)"
        book["cells"].append(code(later))


def with_tryouts(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    plain(book, answers)
    for number, (function, _) in reversed(answers.items()):
        at = find(book, f"# TODO {number} ·")
        book["cells"].insert(at, code(f"print({function}(1, 2, 3))"))
        book["cells"].insert(at + 2, code(f"%timeit {function}\n1 / 0"))


def imports_in_own_cell(book: Notebook, answers: dict[int, tuple[str, str]]) -> None:
    """`import` lines of the answers in a first cell, with a pip line and a seed."""
    lines = []
    for number, (function, source) in answers.items():
        own = [line for line in source.split("\n") if re.match(r"(?:import|from) ", line)]
        lines += own
        rest = "\n".join(line for line in source.split("\n") if line not in own)
        put_answer(book, number, function, rest)
    head = "\n".join(["!pip install nothing-at-all", "import random", *lines, "random.seed(7)"])
    book["cells"].insert(0, code(head))


def _calls_inner(function: str) -> str:
    return f"def {function}(*args, **kwargs):\n    return _{function}_inner(*args, **kwargs)"


STYLES: dict[str, Style] = {
    style.__name__: style
    for style in (
        plain, helper_before, helper_after, helper_in_setup, helper_in_check, decorated,
        callable_object, as_lambda, in_one_cell, at_the_end, wrapped_later, with_tryouts,
        imports_in_own_cell,
    )
}  # fmt: skip


# ------------------------------------------------------------------------- harmless damage
# Each changes the notebook and leaves every answer as good as it was.
Damage = Callable[[Notebook], Notebook]


def ids_gone(book: Notebook) -> Notebook:
    """As Colab saves it: format 4.0, no ids, metadata of its own."""
    for number, cell in enumerate(book["cells"]):
        cell.pop("id", None)
        cell["metadata"] = {"id": f"x{number}", "colab": {"base_uri": "https://localhost"}}
    return {**book, "nbformat_minor": 0}


def metadata_gone(book: Notebook) -> Notebook:
    cells = [{k: v for k, v in cell.items() if k not in ("metadata", "id", "outputs")}
             for cell in book["cells"]]  # fmt: skip
    return {"cells": cells, "nbformat": 4}


def format_three(book: Notebook) -> Notebook:
    cells = []
    for cell in book["cells"]:
        kind = cell["cell_type"]
        key = "input" if kind == "code" else "source"
        cells.append({"cell_type": kind, "metadata": {}, key: cell["source"], "outputs": [],
                      "language": "python", "collapsed": False})  # fmt: skip
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""},
            "worksheets": [{"cells": cells, "metadata": {}}]}  # fmt: skip


def keys_missing(book: Notebook) -> Notebook:
    for number, cell in enumerate(book["cells"]):
        if number % 3 == 0:
            cell.pop("metadata", None)
        if cell["cell_type"] == "code":
            cell.pop("execution_count", None)
            cell["source"] = text_of(cell)
    book["cells"].append({})
    book["cells"].append({"cell_type": "markdown", "source": 5})
    book["cells"].append(None)
    return {"cells": book["cells"], "metadata": None, "nbformat": "4"}


def checks_deleted(book: Notebook) -> Notebook:
    book["cells"] = [c for c in book["cells"] if not text_of(c).startswith("# CHECK")]
    return book


def checks_as_markdown(book: Notebook) -> Notebook:
    for number, cell in enumerate(book["cells"]):
        if text_of(cell).startswith("# CHECK"):
            kept = {"cell_type": "markdown", "metadata": {}, "source": cell["source"]}
            book["cells"][number] = kept
    return book


def checks_edited(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        if text_of(cell).startswith("# CHECK"):
            cell["source"] = text_of(cell).split("\n")[0] + "\nprint('✅ passed')\n"
    return book


def setup_edited(book: Notebook) -> Notebook:
    cell = book["cells"][find(book, "# SETUP")]
    cell["source"] = text_of(cell) + "\nprint('hello')\nimport os\n"
    return book


def reversed_order(book: Notebook) -> Notebook:
    """Every cell below the set-up in reverse."""
    at = find(book, "# SETUP") + 1
    book["cells"][at:] = reversed(book["cells"][at:])
    return book


def cells_doubled(book: Notebook) -> Notebook:
    book["cells"] = [copy.deepcopy(cell) for cell in book["cells"] for _ in range(2)]
    return book


def stubs_below(book: Notebook) -> Notebook:
    """A copy of each answered TODO cell's stub after it, as pasting the exercise again makes."""
    for cell in list(book["cells"]):
        found = re.match(r"# TODO (\d+) · (\w+)", text_of(cell))
        if found:
            number, function = found.groups()
            stub = f'# TODO {number} · {function}\ndef {function}(*args):\n    """x"""\n'
            stub += f'    raise NotImplementedError("TODO {number}")\n'
            book["cells"].insert(book["cells"].index(cell) + 1, code(stub))
    return book


def todo_split(book: Notebook) -> Notebook:
    """The marker, and all that stands above the last definition, in a cell of its own."""
    for cell in list(book["cells"]):
        source = text_of(cell)
        found = re.match(r"# TODO (\d+) · (\w+)", source)
        at = source.rfind(f"\ndef {found[2]}(") if found else -1
        if found and at > 0:
            own = copy.deepcopy(cell)
            own["source"], cell["source"] = source[: at + 1], source[at + 1 :]
            own.pop("id", None)
            book["cells"].insert(book["cells"].index(cell), own)
    return book


def markers_gone(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        if re.match(r"# TODO \d+ ·", text_of(cell)):
            cell["source"] = text_of(cell).partition("\n")[2]
            cell.pop("id", None)
    return book


def markers_sloppy(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        cell["source"] = re.sub(r"^# TODO (\d+) · ", r"#todo\1: ", text_of(cell))
    return book


def todos_as_markdown(book: Notebook) -> Notebook:
    for number, cell in enumerate(book["cells"]):
        if re.match(r"# TODO \d+ ·", text_of(cell)):
            kept = {"cell_type": "markdown", "metadata": {}, "source": cell["source"]}
            book["cells"][number] = kept
    return book


def other_kernel(book: Notebook) -> Notebook:
    book["metadata"] = {"kernelspec": {"name": "conda-env-nowhere-py", "display_name": "x"},
                        "language_info": {"name": "python"}}  # fmt: skip
    return book


def large_outputs(book: Notebook) -> Notebook:
    outputs = [{"output_type": "stream", "name": "stdout", "text": ["line of output\n"] * 1000}]
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = outputs * 8
            cell["execution_count"] = 3
    return book


def nbval_marks(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            head, _, rest = text_of(cell).partition("\n")
            cell["source"] = f"{head}\n# NBVAL_SKIP\n{rest}" if rest else text_of(cell)
            cell.setdefault("metadata", {})["tags"] = ["raises-exception", "nbval-skip"]
    return book


def magics_inside(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        if re.match(r"# TODO \d+ ·", text_of(cell)):
            cell["source"] = f"{text_of(cell).rstrip()}\n%matplotlib inline\n!ls\nlen?\n"
    book["cells"].insert(0, code("%%bash\nrm -rf /tmp/nothing"))
    book["cells"].insert(0, code("%pip install something\n%load_ext autoreload"))
    return book


def windows_lines(book: Notebook) -> Notebook:
    for cell in book["cells"]:
        cell["source"] = text_of(cell).replace("\n", "\r\n")
    return book


def prose_deleted(book: Notebook) -> Notebook:
    book["cells"] = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    return book


HARMLESS: dict[str, Damage] = {
    damage.__name__: damage
    for damage in (
        ids_gone, metadata_gone, format_three, keys_missing, checks_deleted, checks_as_markdown,
        checks_edited, setup_edited, reversed_order, cells_doubled, stubs_below, todo_split,
        markers_gone, markers_sloppy, todos_as_markdown, other_kernel, large_outputs, nbval_marks,
        magics_inside, windows_lines, prose_deleted,
    )
}  # fmt: skip


def encoded(book: Notebook, how: str = "utf-8") -> bytes:
    """The notebook's bytes; ``how`` as Python calls the encoding."""
    return json.dumps(book, ensure_ascii=False, indent=1).encode(how)


def truncated(content: bytes) -> bytes:
    """As an upload that broke off leaves it."""
    return content[: len(content) * 2 // 3]
