"""The plugin keeps to the contract."""

from __future__ import annotations

import mleredux_testing as testing


def test_conforms() -> None:
    testing.check_plugin("reports")
