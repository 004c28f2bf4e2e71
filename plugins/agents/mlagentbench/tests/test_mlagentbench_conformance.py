"""The plugin and its agent keep to the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mleredux import testing
from mleredux.plugins.indexing import make_index


def test_the_index_is_current() -> None:
    path, text = make_index("mlagentbench")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)


@pytest.mark.parametrize("check", testing.checks("mlagentbench"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
