"""Cache for the most recent dataset, so that naive and strong models are fitted once for many documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mleredux_techniques._kit.dataset import Dataset

Found = TypeVar("Found")
_held: list[Dataset] = []
_known: dict[str, Any] = {}


def remembered(dataset: Dataset, key: str, find: Callable[[], Found]) -> Found:
    """Return the result of `find`, called once per key as long as the dataset is the same object."""
    if not _held or _held[0] is not dataset:
        _held[:] = [dataset]
        _known.clear()
    if key not in _known:
        _known[key] = find()
    found: Found = _known[key]
    return found
