"""The plugin keeps to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest


@pytest.mark.parametrize("check", testing.checks("experiments"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
