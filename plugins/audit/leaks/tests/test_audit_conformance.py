"""The plugin meets the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest


@pytest.mark.parametrize("check", testing.checks("leaks"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
