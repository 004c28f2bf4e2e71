"""The plugin keeps to the contract, and its index is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins.index import make_index


@pytest.mark.parametrize("check", testing.checks("leaks"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_the_index_is_current() -> None:
    path, content = make_index("leaks")
    assert path.read_text(encoding="utf-8") == content
