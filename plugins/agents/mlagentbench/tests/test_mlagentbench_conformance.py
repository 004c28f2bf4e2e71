"""The plugin and its agent keep to the contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError


@pytest.mark.parametrize("check", testing.checks("mlagentbench"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_mlagentbench_itself_comes_from_where_the_user_says() -> None:
    archive = "https://example.org/MLAgentBench/archive/0123abc.tar.gz"
    build = current().agent("mlagentbench", {"source": archive}).build
    assert archive in build.python_alone
    assert not [line for line in current().agent("mlagentbench", {}).build.python_alone if "https:" in line]
    with pytest.raises(MlereduxError, match="source"):
        current().agent("mlagentbench", {"source": "http://example.org/x.tar.gz"})
