"""Durations in requests: a number of seconds, or text such as `2h`."""

from __future__ import annotations

from typing import Annotated, Any

from mleredux.plugin.command import read_duration
from pydantic import BeforeValidator


def _seconds(value: Any) -> Any:
    return read_duration(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_seconds, json_schema_input_type=float | str)]
