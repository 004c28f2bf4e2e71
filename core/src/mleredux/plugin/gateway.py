"""TODO gateway"""

from __future__ import annotations

from mleredux._core.protocols import Gateway

__all__ = [
    "Gateway",
]
