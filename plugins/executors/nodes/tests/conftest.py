"""The toy plugin beside this one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux_support.toy import Toy, use_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """The toy plugin, and the promise that nothing of its runs outlives the test."""
    yield from use_toy(tmp_path, monkeypatch, "nodes")
