"""What a caller may hand in as a measured number."""

from typing import Any


def is_number(value: Any) -> bool:
    """A whole or floating number that is not negative; no bool, no NaN."""
    return type(value) in (int, float) and value >= 0
