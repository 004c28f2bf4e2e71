"""The order of tests: files with slow tests come first, so that parallel workers end at about the same time."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

import pytest

# The synchronous client, in case the asynchronous one has changed since it was built.
runpy.run_path(str(Path(__file__).with_name("plugins") / "services/client/generate_sync.py"))["generate"]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put files with more slow tests before others; the order within a file stays."""
    slow = Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])
