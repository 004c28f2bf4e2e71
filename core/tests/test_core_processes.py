"""Who lives below a process, and what they use."""

from __future__ import annotations

import subprocess
import sys
import time

import psutil
import pytest
from mleredux._core import launcher
from mleredux._core.sandboxes import processes
from mleredux._core.sandboxes.processes import birth, members

NESTED = """
import subprocess, sys, threading
threading.Thread(target=lambda: subprocess.run([sys.executable, "-c", "input()"])).start()
sum(range(3_000_000))
print("ready", flush=True)
"""


@pytest.mark.parametrize("listed", [True, False], ids=["kernel", "psutil"])
def test_members_are_all_generations_with_what_they_use(listed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (processes, launcher):
        monkeypatch.setattr(module, "LISTED", listed and launcher.LISTED)
    with subprocess.Popen(
        [sys.executable, "-c", f"import subprocess, sys; subprocess.run([sys.executable, '-c', {NESTED!r}])"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as top:
        assert top.stdout is not None and top.stdin is not None
        assert top.stdout.readline() == b"ready\n"
        until = time.monotonic() + 30
        while len(found := members(top.pid)) < 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert {one.pid for one in found} == {child.pid for child in psutil.Process(top.pid).children(recursive=True)}
        below = launcher.children(top.pid)
        assert below | launcher.children(*below) == {one.pid for one in found}
        busy = max(found, key=lambda one: one.cpu_seconds)
        assert busy.born == birth(busy.pid) and busy.cpu_seconds > 0
        assert busy.memory == pytest.approx(psutil.Process(busy.pid).memory_info().rss, rel=0.2)
        top.stdin.close()
    assert members(top.pid) == []
