"""The sandbox keeps to the contract: agents in it, how they end, and that nothing of them is left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest


@pytest.mark.parametrize("check", testing.checks("plain"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
