"""The plugin and its agent keep to the contract."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import mleredux_testing as testing
import pytest
from mleredux._core.plugins import Catalogue
from mleredux.errors import MlereduxError


@pytest.mark.parametrize("check", testing.checks("openhands"))
def test_conforms(check: Any, tmp_path: Path) -> None:
    check(tmp_path)


def test_options_decide_what_is_installed_and_are_checked() -> None:
    plain = Catalogue().agent("openhands", {"libraries": "none"}).build
    assert plain.python == () and plain.debian == ("tmux",) and "openhands-sdk==1.58.0" in plain.python_alone
    assert all("==" in line for line in plain.python_alone)
    more = Catalogue().agent("openhands", {"libraries": "tabular; statsmodels==0.14.5"}).build
    assert "statsmodels==0.14.5" in more.python and "libgomp1" in more.debian
    with pytest.raises(MlereduxError, match="max_iterations=0"):
        Catalogue().agent("openhands", {"max_iterations": 0})


def test_inside_the_sandbox_it_never_imports_mleredux() -> None:
    code = "import sys; from mleredux_agent_openhands.driver import __main__, work; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert not [name for name in loaded if name == "mleredux" or name.startswith("mleredux.")]
