"""A Docker engine of the tests' own, to be restarted under what uses it; the machine's engine is left alone."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path


class PrivateEngine:
    """`dockerd` with a folder, a socket and a containerd of its own, without networks; used as a context manager.

    It needs root. Images are copied from the machine's engine.

    Args:
        image: What it has.
        live_restore: Whether containers go on while the engine is away.

    Attributes:
        host: For `DOCKER_HOST`.
    """

    def __init__(self, image: str, *, live_restore: bool = False) -> None:
        self._image = image
        self._folder = Path(tempfile.mkdtemp(prefix="mlr-engine-", dir="/tmp"))  # names of sockets must be short
        self.host = f"unix://{self._folder}/sock"
        self._options = ["--live-restore"] if live_restore else []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> PrivateEngine:
        try:
            self.start()
            saved = subprocess.Popen(["docker", "save", self._image], stdout=subprocess.PIPE)
            subprocess.run(["docker", "-H", self.host, "load"], stdin=saved.stdout, check=True, capture_output=True)
            if saved.wait():
                raise RuntimeError(f"The image {self._image} is not available in the local engine.")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._remove()

    def docker(self, *arguments: str) -> str:
        """What the engine's client says."""
        command = ["docker", "-H", self.host, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout

    def start(self, seconds: float = 180) -> None:
        """Start it and wait until it answers.

        Raises:
            RuntimeError: It does not; with the end of its log.
        """
        folder = self._folder
        # In a network of its own: an engine without a bridge removes `docker0`, which is another's here.
        command = [
            "unshare",
            "--net",
            "dockerd",
            "--host",
            self.host,
            "--data-root",
            f"{folder}/data",
            "--exec-root",
            f"{folder}/exec",
        ]
        command += ["--pidfile", f"{folder}/pid", "--bridge", "none", "--iptables=false"]
        variables = {name: value for name, value in os.environ.items() if name != "DOCKER_HOST"}
        with (folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._options], stdout=log, stderr=log, env=variables, start_new_session=True
            )
        deadline = time.monotonic() + seconds
        while True:
            with contextlib.suppress(subprocess.SubprocessError):
                self.docker("version")
                return
            if self._process.poll() is not None or time.monotonic() > deadline:
                log_text = (folder / "log").read_text(errors="replace")[-3000:]
                raise RuntimeError(f"The engine does not start:\n{log_text}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it: told to (its containers end with it), or killed (they go on without it)."""
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(60)

    def _remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            with contextlib.suppress(subprocess.SubprocessError):
                left = self.docker("ps", "-aq").split()
                if left:
                    self.docker("rm", "-f", *left)
            self._process.terminate()
            try:
                self._process.wait(30)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        for line in reversed(Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()):
            mounted = line.split()[4]
            if mounted.startswith(f"{self._folder}/"):
                subprocess.run(["umount", "--lazy", mounted], capture_output=True)
        shutil.rmtree(self._folder, ignore_errors=True)
