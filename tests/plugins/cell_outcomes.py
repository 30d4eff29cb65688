"""A pytest plugin: what nbval found, one JSON line a code cell, in the file $CELL_OUTCOMES."""

import json
import os
from collections.abc import Generator
from typing import Any

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: Any) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call" and hasattr(item, "cell"):
        outcome = "xfailed" if hasattr(report, "wasxfail") else report.outcome
        record = {
            "id": item.cell.get("id", ""),
            "source": item.cell.source,
            "outcome": outcome,
            "text": str(report.longrepr or ""),
            "seconds": report.duration,
        }
        with open(os.environ["CELL_OUTCOMES"], "a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    return report
