"""Moved to `mleredux_rollout`; this module forwards to it until 0.4."""

from __future__ import annotations

from mleredux._core.moved import moved

__getattr__ = moved(__name__, "mleredux_rollout")
