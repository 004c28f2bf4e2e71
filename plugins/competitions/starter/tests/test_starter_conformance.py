"""The starter competitions pass the kit that every plugin is held to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mleredux import testing


@pytest.mark.parametrize("check", testing.checks("starter"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
