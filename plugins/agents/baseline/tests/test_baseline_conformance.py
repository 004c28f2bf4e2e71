"""The plugin and its agent keep to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mleredux import testing


@pytest.mark.parametrize("check", testing.checks("baseline"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
