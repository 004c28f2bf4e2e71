"""The plugin keeps to the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins.index import make_index


def test_the_index_is_current() -> None:
    path, text = make_index("mlebench-import")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)


@pytest.mark.parametrize("check", testing.checks("mlebench-import"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
