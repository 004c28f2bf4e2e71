"""Durations as numbers or text."""

from __future__ import annotations

from datetime import timedelta

from mleredux.models import units

from mleredux_client.errors import UsageError

Duration = float | str | timedelta
"""Seconds, text such as `90s`, `30m`, `2h`, `1h30m` or `7d`, or a `timedelta`."""


def seconds(value: Duration) -> float:
    """Return the seconds of a duration.

    Raises:
        UsageError: It is not a duration.
    """
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    try:
        return units.seconds(str(value), zero=True)
    except ValueError:
        hint = "Use seconds, a timedelta, or text like 90s or 1h30m."
        raise UsageError(f"{value!r} is not a duration.", hint=hint) from None
