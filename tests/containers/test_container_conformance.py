"""The plugin and its sandbox keep to the contract, with real containers."""

from __future__ import annotations

from pathlib import Path

import mleredux_testing as testing
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.engines("docker", "podman", "apptainer")]


def test_conforms(engine: str, tmp_path: Path) -> None:
    testing.check_plugin(engine)
    testing.check_sandbox(engine, tmp_path)
