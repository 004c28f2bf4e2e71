"""A real server as a process of its own, for tests."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

TOKEN = "mlr_" + "test-token-of-the-first-admin-0123456789"


class ServerProcess:
    """`mleredux serve` on a free port of the loopback; used as a context manager.

    Args:
        runs_dir: Where it keeps everything; starting another one with the same goes on with it.
        options: Further options of `mleredux serve`.
        env: Further variables.

    Attributes:
        token: Of the first user, an admin.
        log: What it printed so far, lines of standard output and error together.
    """

    def __init__(self, runs_dir: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.runs_dir, self.options, self.token = runs_dir, options, TOKEN
        self.env = {**os.environ, "MLEREDUX_SERVE_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1", **(env or {})}
        self.log: list[str] = []
        self.url = ""
        self._ready = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None

    @property
    def process(self) -> subprocess.Popen[str]:
        """The running process."""
        assert self._process is not None, "not started"
        return self._process

    def start(self, seconds: float = 180) -> ServerProcess:
        """Start it and wait until it listens.

        Raises:
            RuntimeError: It ended, or did not listen in time; with what it printed.
        """
        self._ready.clear()
        command = [sys.executable, "-m", "mleredux", "serve", "--port", "0", "--runs-dir", str(self.runs_dir)]
        self._process = subprocess.Popen(
            [*command, *self.options], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._reader = threading.Thread(target=self._read, args=(self._process,), daemon=True)
        self._reader.start()
        deadline = time.monotonic() + seconds
        while not self._ready.wait(0.05):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError("The server did not start:\n" + "\n".join(self.log))
        return self

    def stop(self, seconds: float = 60) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._read_all()
        return code

    def kill(self) -> None:
        """As a crash does: `kill -9` of the server's own process; its workers are not touched."""
        self.process.kill()
        self.process.wait()
        self._read_all()

    def __enter__(self) -> ServerProcess:
        return self.start()

    def __exit__(self, *_exception: object) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.stop()
        self.kill()

    def _read_all(self) -> None:
        """What it printed last is in `log` a moment after its end; a worker just started may keep the pipe open."""
        if self._reader is not None:
            self._reader.join(10)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.log.append(line.rstrip("\n"))
            if found := re.match(r"Listening on (\S+)", line):
                self.url = found[1]
                self._ready.set()
