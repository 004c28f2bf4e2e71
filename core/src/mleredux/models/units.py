"""Parse durations and sizes in human-readable notation."""

from __future__ import annotations

import re
from typing import Any

MAX_SEED = 2**32 - 1
"""The largest seed that all libraries accept: NumPy and scikit-learn reject larger and negative seeds."""
_ENDLESS = 1e12
"""Larger durations and sizes are mistakes: neither dates nor counters can hold them."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SIZES = {"": 1, "m": 1, "mb": 1, "g": 1024, "gb": 1024, "t": 1024**2, "tb": 1024**2}


def seconds(value: Any, *, zero: bool = False) -> float:
    """Parse `90`, `90s`, `30m`, `2h` or `1h30m` as seconds.

    Args:
        value: A number, or a string.
        zero: Whether a string may be zero.

    Raises:
        ValueError: The value is not a duration.
    """
    if isinstance(value, (int, float)):
        return float(value)
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        text += "s"
    if re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
        total = sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", text))
        if (total > 0 or zero) and total < _ENDLESS:
            return total
    raise ValueError(f"{value!r} is not a valid duration; write 90s, 30m, 2h or 1h30m.")


def megabytes(value: Any) -> int:
    """Parse `4096`, `512m` or `4g` as MiB.

    Raises:
        ValueError: The value is not a size.
    """
    if isinstance(value, int):
        return value
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", str(value).strip().lower())
    if match is None or match[2] not in _SIZES or float(match[1]) >= _ENDLESS:
        raise ValueError(f"{value!r} is not a valid size; write 512m, 4g or a number of megabytes.")
    return int(float(match[1]) * _SIZES[match[2]])
