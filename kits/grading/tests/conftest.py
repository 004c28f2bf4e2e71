"""The toy plugin for tests of grading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux_support.toy import Toy, use_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """The toy plugin alone, and the promise that nothing of its runs outlives the test."""
    yield from use_toy(tmp_path, monkeypatch)
