"""Servers that start fast: forked from a process that has imported everything, then the program unchanged.

Run as a program, it reads on standard input what to start, and prints the process ids.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from mleredux_support.server import ServerProcess


class ForkedServer(ServerProcess):
    """As `ServerProcess`; each start is a new process, killed as any other."""

    def __init__(self, runs_dir: Path, *options: str, env: dict[str, str]) -> None:
        super().__init__(runs_dir, *options, env=env)
        self._output = runs_dir.parent / "server.log"
        self._pid = 0
        self._zygote = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=self.env
        )

    def start(self, seconds: float = 180) -> ForkedServer:
        """Start it and wait until it listens."""
        assert self._zygote.stdin is not None and self._zygote.stdout is not None
        arguments = ["serve", "--port", "0", "--runs-dir", str(self.runs_dir), *self.options]
        before = self._output.stat().st_size if self._output.exists() else 0
        asked = {"arguments": arguments, "env": self.env, "output": str(self._output)}
        self._zygote.stdin.write(json.dumps(asked) + "\n")
        self._zygote.stdin.flush()
        self._pid = int(self._zygote.stdout.readline())
        until = time.monotonic() + seconds
        while True:
            written = self._output.read_text()[before:] if self._output.exists() else ""
            if found := re.search(r"^Listening on (\S+) .*\n", written, re.MULTILINE):
                self.url = found[1]
                return self
            if not self._lives() or time.monotonic() > until:
                raise RuntimeError(f"The server did not start:\n{written}")
            time.sleep(0.02)

    def stop(self, seconds: float = 60) -> int:
        """Ask it to stop, and wait for it."""
        self._send(signal.SIGTERM)
        until = time.monotonic() + seconds
        while self._lives():
            assert time.monotonic() < until, "it does not stop"
            time.sleep(0.02)
        return 0

    def kill(self) -> None:
        """`kill -9`."""
        while self._lives():
            self._send(signal.SIGKILL)
            time.sleep(0.01)

    def close(self) -> None:
        """End the process it is forked from."""
        self.kill()
        self._zygote.kill()
        self._zygote.wait()

    def _send(self, number: signal.Signals) -> None:
        if self._lives():
            with contextlib.suppress(ProcessLookupError):  # it ended in between
                os.kill(self._pid, number)

    def _lives(self) -> bool:
        return bool(self._pid) and Path(f"/proc/{self._pid}").exists()


def serve_forked() -> None:
    """Fork a server for each line of standard input."""
    import mleredux_server.app
    import mleredux_server.cli.serve
    import mleredux_server.scheduler.dispatcher  # noqa: F401
    import mleredux_testing.toys  # noqa: F401
    from mleredux._core.cli.root import main

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for them
    while line := sys.stdin.readline():
        asked = json.loads(line)
        if (pid := os.fork()) == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            output = os.open(asked["output"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            for number, descriptor in ((0, os.open(os.devnull, os.O_RDONLY)), (1, output), (2, output)):
                os.dup2(descriptor, number)
            os.environ.clear()
            os.environ.update(asked["env"])
            sys.argv = ["mleredux", *asked["arguments"]]
            main()
        print(pid, flush=True)


if __name__ == "__main__":
    serve_forked()
