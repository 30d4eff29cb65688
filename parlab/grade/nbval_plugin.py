"""A pytest plugin that makes nbval sound.

It looks at the reply's status, sees a kernel die, ignores markers in the notebook, and runs
canaries: cells that must fail, and do unless somebody has changed how cells fail. What it finds
can lower a grade, never raise it.
"""

# mypy: disable-error-code="misc,no-untyped-call"

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from parlab.grade.canaries import Canaries
from parlab.grade.sound_kernel import RunEnded, SoundKernel

_CHECK = re.compile(r"# CHECK ([1-9]\d*)\b")
_TEXT = 2000  # characters of an error that are kept
_CELLS = 2000


class Sound:
    """The plugin of one run.

    Args:
        limits: what the submission may use.
        skip: ids of cells that are not run.
    """

    def __init__(self, limits: dict[str, Any], skip: frozenset[str]) -> None:
        self._limits, self._skip = limits, skip
        self._status: str | None = None
        self._notes: list[tuple[str, dict[str, Any]]] = []
        self._checks: dict[int, str] = {}
        self._canaries = Canaries()
        self._kernel: SoundKernel | None = None

    def pytest_configure(self, config: pytest.Config) -> None:
        """nbval gets a kernel that notices more."""
        from nbval import plugin as nbval

        SoundKernel.limits = self._limits
        nbval.RunningKernel = SoundKernel

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Markers count for nothing; a canary follows each check, and one ends the run."""
        kept: list[Any] = []
        for item in items[:_CELLS]:
            number = _check_number(item)
            if number:
                self._checks[number] = "unknown"
            if item.options.keys() - {"check"} or item.options["check"]:
                self._note("markers_ignored", item)
            item.options = defaultdict(bool, check=False)
            item.cell.outputs = []
            if str(item.cell.get("id")) not in self._skip or number:
                kept.append(item)
            if number or item is items[-1]:
                kept.append(self._canary(item))
        items[:] = kept

    def _canary(self, after: Any) -> Any:
        cell = self._canaries.make()
        options = defaultdict(bool, check=False)
        return type(after).from_parent(
            after.parent, name=cell.id, cell_num=after.cell_num, cell=cell, options=options
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Any:
        """Once nothing more can be learnt, nothing more is run."""
        if self._status is not None:
            return True
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any, call: pytest.CallInfo[None]) -> Any:
        """Judges a cell by what nbval, the reply and the kernel's messages say together."""
        error = call.excinfo.value if call.excinfo else None
        if isinstance(error, RunEnded):
            self._end(error.status, str(error), item)
        elif call.when == "setup" and error is not None:
            self._end("grader_error", f"{type(error).__name__}: {error}", item)
        elif call.when == "call":
            self._judge(item, error)
        return (yield)

    def _judge(self, item: Any, error: BaseException | None) -> None:
        kernel = self._kernel = item.parent.kernel
        replies = list(kernel.replies.values())
        reply = replies[-1] if replies else {}
        status, name, text = reply.get("status"), str(reply.get("ename")), str(reply.get("evalue"))
        for key, _ in kernel.problems[:1]:
            self._end("tampered", key, item)
        shown = error is not None
        if error is not None and type(error).__name__ != "NbCellError":
            self._end("tampered", f"{type(error).__name__}: {error}", item)
        elif said := self._canaries.said(item.cell.id):
            if not (shown and status == "error" and name == "AssertionError" and text == said):
                self._end("tampered", "canary_passed", item)
        elif shown != (status == "error"):
            self._end("tampered", "reply_differs", item)
        number = _check_number(item)
        if number:
            done = "passed" if not shown and status == "ok" else "failed"
            state = "not_done" if shown and name == "NotDone" else done
            if self._checks.get(number) in (None, "unknown", "passed"):  # the first that is not
                self._checks[number] = state

    def _end(self, status: str, text: str, item: Any) -> None:
        self._kernel = getattr(item.parent, "kernel", None) or self._kernel
        if self._status is None:
            self._status = status
            key = text if status == "tampered" and text.isidentifier() else status
            self._note(key, item, text)

    def _note(self, key: str, item: Any, text: str = "") -> None:
        if len(self._notes) < 50:
            cell = str(item.cell.get("id", item.cell_num))[:64]
            self._notes.append((key, {"cell": cell, "text": text[:_TEXT]}))

    def write(self, path: Path, code: int) -> None:
        """Writes what was found, for `parlab.grade.runner`."""
        ended: dict[str, Any] = getattr(self._kernel, "ended", None) or {}
        if code not in (0, 1, 5) and self._status is None:
            self._status = "grader_error"
            self._notes.append(("grader_error", {"cell": "", "text": f"pytest ended with {code}"}))
        outcome = {
            "status": self._status,
            "checks": self._checks,
            "notes": self._notes,
            "peak_memory_mb": ended.get("peak_memory_mb"),
            "cpu_seconds": ended.get("cpu_seconds"),
        }
        path.write_text(json.dumps(outcome), encoding="utf-8")


def _check_number(item: Any) -> int | None:
    found = _CHECK.match(item.cell.source)
    return int(found[1]) if found else None
