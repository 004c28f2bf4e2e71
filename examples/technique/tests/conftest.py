"""What the tests share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session")
def shared(tmp_path_factory):
    """A folder whose `data` all tests use: preparing a planted task takes seconds."""
    return tmp_path_factory.mktemp("shared")
