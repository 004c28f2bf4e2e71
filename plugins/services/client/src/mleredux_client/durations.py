"""Durations as programs and people give them."""

from __future__ import annotations

import re
from datetime import timedelta

from mleredux_client.errors import UsageError

Duration = float | str | timedelta
"""Seconds, a text like `90s`, `30m`, `2h`, `1h30m` or `7d`, or a `timedelta`."""
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds(value: Duration) -> float:
    """The seconds of a duration.

    Raises:
        UsageError: It is none.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return float(text)
    if re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
        return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)([smhd])", text))
    raise UsageError(f"{value!r} is not a duration.", hint="Give seconds, a timedelta, or text like 90s or 1h30m.")
