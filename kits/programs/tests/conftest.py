"""Fixtures of tests of confined programs."""

from __future__ import annotations

import pytest
from mleredux_programs import control_group


@pytest.fixture(params=["control group", "watch"])
def counted_by(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Count memory by a control group, or by the watch where none can be made."""
    if request.param == "watch":
        monkeypatch.setattr(control_group, "_parents", lambda: iter(()))
    return str(request.param)
