"""Run a real server in a separate process, for tests."""

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
    """Runs `mleredux serve` on a free port of the loopback interface; used as a context manager.

    Args:
        runs_dir: The folder of all its data; another server started with the same folder continues with it.
        options: Further options of `mleredux serve`.
        env: Further environment variables.

    Attributes:
        token: The token of the first user, an administrator.
        log: Lines of standard output and error so far.
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
        """Start the server and wait until it listens.

        Raises:
            RuntimeError: The server ended, or did not listen in time; the message contains its output.
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
        """Request the server to end; return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._read_all()
        return code

    def kill(self) -> None:
        """Kill the server process with `kill -9`, as in a crash; its workers are not killed."""
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
        """Wait for the last output; a worker that has just started may keep the pipe open after the server ends."""
        if self._reader is not None:
            self._reader.join(10)

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.log.append(line.rstrip("\n"))
            if found := re.match(r"Listening on (\S+)", line):
                self.url = found[1]
                self._ready.set()
