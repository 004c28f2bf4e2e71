"""The plugin keeps to the contract, and its index is current."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mleredux import testing
from mleredux.plugins.indexing import make_index


@pytest.mark.parametrize("check", testing.checks("audit"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_the_index_is_current() -> None:
    path, content = make_index("audit")
    assert path.read_text(encoding="utf-8") == content
