"""Fixtures of tests of confined programs."""

from __future__ import annotations

import pytest
from mleredux_programs import control_group


@pytest.fixture(params=["control group", "watch"])
def counted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Count memory with a control group, or with the watch, as on machines that allow no control group."""
    if request.param == "watch":
        monkeypatch.setattr(control_group, "_parents", lambda: iter(()))
    return str(request.param)
