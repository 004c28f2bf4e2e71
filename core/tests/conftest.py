"""What the tests of the core share: the toy plugin, and waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux_support.toy import Toy, use_toy, wait_until


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Toy]:
    """The toy plugin alone, and the promise that nothing of its runs outlives the test."""
    yield from use_toy(tmp_path, monkeypatch)


@pytest.fixture
def until() -> Callable[..., Any]:
    """Wait for a condition."""
    return wait_until
