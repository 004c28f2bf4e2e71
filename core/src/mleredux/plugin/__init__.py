"""TODO"""

from __future__ import annotations

from mleredux._core.plugins.discovery import Ref
from mleredux.hookspecs import CONTRACT_VERSION, hookimpl

__all__ = ["CONTRACT_VERSION", "Ref", "hookimpl"]
