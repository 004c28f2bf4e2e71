"""Durations and sizes as types of options."""

from __future__ import annotations

from typing import Any

import click

from mleredux.models.units import megabytes, seconds


class Duration(click.ParamType[float]):
    """`90`, `90s`, `30m`, `2h`, `1h30m` → seconds."""

    name = "duration"
    """The type's name in messages."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return seconds."""
        try:
            return seconds(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Megabytes(click.ParamType[int]):
    """`4096`, `512m`, `4g` → MB."""

    name = "size"
    """The type's name in messages."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return megabytes."""
        try:
            return megabytes(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
