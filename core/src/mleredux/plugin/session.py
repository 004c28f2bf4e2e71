"""Moved to `mleredux_agents`; this module forwards to it until 0.3."""

from __future__ import annotations

from typing import Any

from mleredux._core.moved import moved


def __getattr__(name: str) -> Any:
    return moved(__name__, name, "mleredux_agents")
