"""The package keeps to mleredux's contract."""

from __future__ import annotations

import mleredux_testing as testing
import pytest


@pytest.mark.parametrize("check", testing.checks("constant-columns"))
def test_conforms(check, shared):
    check(shared)
