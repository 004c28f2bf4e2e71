"""Cache for the most recent dataset of a thread, so that naive and strong models are fitted once for many documents."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from mleredux_techniques._kit.data.dataset import Dataset

Found = TypeVar("Found")


class _Memory(threading.local):
    dataset: Dataset | None = None
    known: dict[str, Any] = {}


_memory = _Memory()


def remembered(dataset: Dataset, key: str, find: Callable[[], Found]) -> Found:
    """Return the result of `find`, calling it once per key while the thread's dataset is the same object."""
    if _memory.dataset is not dataset:
        _memory.dataset, _memory.known = dataset, {}
    known = _memory.known  # `find` may switch to another dataset
    if key not in known:
        known[key] = find()
    found: Found = known[key]
    return found
