"""The plugin and its agent keep to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest

QUICK = {"options": {"trials": 2, "folds": 2}, "time_limit": 240}
"""Little to do, and much time for it: a busy machine is no failure."""


@pytest.mark.slow
@pytest.mark.parametrize("check", testing.checks("automl", agents=QUICK))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
