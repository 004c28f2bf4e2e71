"""The plugin and its sandbox keep to the contract, with real containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest

pytestmark = [pytest.mark.docker, pytest.mark.slow]


@pytest.mark.usefixtures("docker_engine")
@pytest.mark.parametrize("check", testing.checks("docker"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)
