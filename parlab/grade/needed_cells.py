"""Which cells of a rebuilt notebook need not run: those that only draw or show.

Set-up, answers, helpers and checks always run. A course cell runs where one of these, or another
course cell that runs, takes a name that it binds.
"""

from functools import lru_cache

from nbformat import NotebookNode

from parlab.grade.clean import clean
from parlab.grade.names import ANY, from_outside, pieces

_ALWAYS = ("setup", "answer", "helper", "check")


def skippable(notebook: NotebookNode) -> set[str]:
    """The ids of the code cells that need not run.

    Args:
        notebook: as `rebuild` gives it, each code cell with its role.
    """
    skipped: set[str] = set()
    wanted: set[str] = set()
    for cell in reversed(notebook.cells):
        if cell.cell_type != "code":
            continue
        role = cell.metadata.get("parlab", {}).get("role", "course")
        binds, takes = _names(str(cell.source))
        needed = role == "course" and bool(binds & wanted or ANY in binds)
        if role in _ALWAYS or needed:
            # A check is one block that binds its own names before it reads them.
            wanted |= takes - binds if role == "check" else takes
        else:
            skipped.add(str(cell.id))
    return skipped


@lru_cache(maxsize=512)
def _names(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """What a cell binds, and takes from cells before it; nothing where it cannot be read."""
    cleaned = clean(source)
    if cleaned.tree is None:
        return frozenset(), frozenset()
    found = pieces(cleaned.source, cleaned.tree)
    binds = frozenset(name for piece in found for name in piece.binds)
    return binds, frozenset(from_outside(found))
