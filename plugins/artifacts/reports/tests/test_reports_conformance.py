"""The plugin keeps to the contract."""

from __future__ import annotations

from mleredux import testing


def test_conforms() -> None:
    testing.check_plugin("reports")
