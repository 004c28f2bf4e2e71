"""The load benchmark in small: all runs done, none started twice, complete logs for all followers."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.slow
def test_concurrent_load_loses_nothing(pytestconfig: pytest.Config) -> None:
    program = pytestconfig.rootpath / "benchmarks" / "service.py"
    if not program.exists():
        pytest.skip("the benchmarks are not beside the tests")
    parts = [word for part in ("queue", "follow", "waiting") for word in ("--part", part)]
    command = [sys.executable, str(program), "--check", *parts]
    told = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert told.returncode == 0, told.stderr[-5000:]
    assert "| runs, all done, each started once | 20 |" in told.stdout
    assert "| followers, each with all of the log | 5 |" in told.stdout
    assert "| 100 queued runs of 5 users |" in told.stdout
