"""Who lives below a process, and what they use."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from mleredux._core import launcher
from mleredux._core.sandboxes import launched, processes
from mleredux._core.sandboxes.processes import Member, birth, members
from mleredux.models import Limits

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


@pytest.mark.parametrize(
    ("sizes", "shares", "expected"),
    [
        pytest.param((300, 300), (200, 200), 400, id="apart"),
        pytest.param((300, 300), (150, 150), 300, id="shared"),
        pytest.param((300, 300, 300), (43, 43, 43), 300, id="shared with processes that are not listed yet"),
        pytest.param((300, 300), (0, 300), 300, id="one has ended"),
        pytest.param((600, 10), (200, 10), 512, id="shared with other programs"),
        pytest.param((600, 10), (590, 5), 595, id="above the limit"),
        pytest.param((200, 200), (0, 0), 400, id="below the limit, so that shares are not read"),
    ],
)
def test_processes_that_share_pages_use_at_least_what_the_largest_has(
    sizes: tuple[int, ...], shares: tuple[int, ...], expected: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In MB, with a limit of 512: however quickly processes start and end while their shares are read one by one."""
    listed = [Member(number, 1.0, size << 20, 0.0, 0) for number, size in enumerate(sizes)]
    monkeypatch.setattr(launched, "members", lambda _pid: listed)
    monkeypatch.setattr(launched, "birth", lambda _pid: 1.0)
    monkeypatch.setattr(launched, "proportional", lambda process: shares[process.pid] << 20)
    launch: Any = SimpleNamespace(limits=Limits(memory_mb=512), control_dir=tmp_path)
    handle = launched._ProcessHandle(launch, {"pid": 1, "birth": 1.0, "started_at": 0.0}, None)
    assert handle.usage().memory_mb == expected
