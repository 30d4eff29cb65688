"""What a field may hold, and how a refusal shows a value: in one short line, whatever it is."""

import re
import reprlib
from collections.abc import Mapping
from dataclasses import field, fields
from typing import Any

Rule = Mapping[str, Any]
_KEY = re.compile(r"[A-Za-z0-9_./-]{1,64}")


def integer(low: int, high: int) -> Any:
    """A dataclass field that holds an integer from ``low`` to ``high``."""
    return field(metadata={"type": int, "low": low, "high": high})


def number(low: float, high: float) -> Any:
    """A dataclass field that holds a number; an integer will do."""
    return field(metadata={"type": float, "low": low, "high": high})


def choice(*values: str) -> Any:
    """A dataclass field that holds one of some words."""
    return field(metadata={"type": str, "choices": values})


def line(optional: bool = False, longest: int = 200) -> Any:
    """A dataclass field that holds a text of one line."""
    return field(metadata={"type": str, "optional": optional, "longest": longest})


def flag() -> Any:
    """A dataclass field that holds true or false."""
    return field(metadata={"type": bool})


def rules(kind: type[Any]) -> dict[str, Rule]:
    """A dataclass's rules by the names of its fields."""
    return {item.name: item.metadata for item in fields(kind)}


def problem(where: str, value: Any, rule: Rule) -> str | None:
    """Why a field must not hold ``value`` (None: nothing was given), or None where it may."""
    if value is None:
        return None if rule.get("optional") else f"{where} is missing ({_allowed(rule)})"
    if _legal(value, rule):
        return None
    return f"{where} = {shown(value)}: must be {_allowed(rule)}"


def _legal(value: Any, rule: Rule) -> bool:
    kinds = (int, float) if rule["type"] is float else (rule["type"],)
    if type(value) not in kinds:  # True is no integer here
        return False
    if "low" in rule:
        return bool(rule["low"] <= value <= rule["high"])  # false for NaN
    if "choices" in rule:
        return value in rule["choices"]
    if rule["type"] is str:
        return 0 < len(value) <= rule["longest"] and bool(value.isprintable())
    return True


def _allowed(rule: Rule) -> str:
    if "choices" in rule:
        return "one of " + ", ".join(rule["choices"])
    if rule["type"] is int:
        return f"an integer from {rule['low']} to {rule['high']}"
    if rule["type"] is float:
        return f"a number from {rule['low']:g} to {rule['high']:g}"
    if rule["type"] is bool:
        return "true or false"
    return f"a text of one line, not empty, at most {rule['longest']} characters"


def key(name: str) -> str:
    """A key as a message tells it: as it is where it is plain, else quoted and cut."""
    return name if _KEY.fullmatch(name) else shown(name)


class _Short(reprlib.Repr):
    """Deep, long and large values cut down."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 2, 60, 60

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to spell out what has more than some thousand digits."""
        if abs(x) < 10**20:
            return repr(x)
        return f"an integer of about {int(x.bit_length() * 0.30103) + 1} digits"


shown = _Short().repr
