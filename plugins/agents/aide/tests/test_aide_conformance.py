"""The plugin and its agent keep to the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins.index import make_index


@pytest.mark.parametrize("check", testing.checks("aide"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_the_index_is_current() -> None:
    path, text = make_index("aide")
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(text)
