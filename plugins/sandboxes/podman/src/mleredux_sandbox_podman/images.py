"""Podman's images: found, fetched, built within a time limit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

from mleredux.errors import SandboxError
from mleredux.plugin.container import BuildLog, Image, Recipe

from mleredux_sandbox_podman.engine import command, failure, find_image, reason

NETWORK_VARIABLE = "MLEREDUX_PODMAN_BUILD_NETWORK"


class PodmanImages:
    """Implements `mleredux.plugin.container.ImageEngine`."""

    id = "podman"

    def find_image(self, name: str) -> Image | None:
        """An image that is there."""
        return find_image(name)

    def pull(self, name: str, log: BuildLog) -> None:
        """Fetch an image; names without a registry are Docker Hub's."""
        first, _, rest = name.partition("/")
        if not rest or not ("." in first or ":" in first or first == "localhost"):
            name = f"docker.io/{name}" if rest else f"docker.io/library/{name}"
        code, said = _follow(["pull", name], log, {})
        if code is None:
            raise log.timed_out()
        if code:
            raise SandboxError(reason(said))

    def build_image(self, plan: Recipe, tag: str, arguments: dict[str, str], log: BuildLog, *, secret: bool) -> None:
        """Build an image; podman itself passes on proxies, and keeps them out of the image."""
        named = {name: value for name, value in arguments.items() if not name.lower().endswith("_proxy")}
        with tempfile.TemporaryDirectory(prefix="mleredux-build-") as folder:
            plan.write_folder(Path(folder))
            options = [
                "build",
                "--format=docker",
                "--force-rm",
                f"--layers={str(not secret).lower()}",  # a layer's history may hold an index's password
                f"--tag={tag}",
                f"--label=mleredux.image={tag}",
                f"--file={Path(folder, plan.dockerfile)}",
                *(f"--build-arg={name}" for name in named),  # the values come from the environment
            ]
            network = os.environ.get(NETWORK_VARIABLE)
            code, said = _follow([*options, *([f"--network={network}"] if network else []), folder], log, named)
        if code is None:
            raise log.timed_out()
        if code:
            if "rlimit" in said or "OCI runtime" in said:
                raise failure("The image can't be built", reason(said))
            raise log.failed()


def _follow(arguments: list[str], log: BuildLog, variables: dict[str, str]) -> tuple[int | None, str]:
    """Run podman to its end with its output in the log: its exit code, None at the time limit, and the last of it."""
    try:
        process = subprocess.Popen(
            command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, **variables},
            start_new_session=True,
        )
    except OSError as error:
        raise SandboxError("The program podman is not installed.", hint="Install it: `apt install podman`.") from error
    assert process.stdout is not None
    timed_out = threading.Event()

    def stop() -> None:
        timed_out.set()
        _end_steps(process.pid)  # podman then removes what it was building, and ends
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(log.seconds_left, stop)
    timer.daemon = True
    timer.start()
    said = ""
    try:
        for line in process.stdout:
            log.write(re.sub(r"^(\[\d+/\d+\] )?STEP", "Step", line))
            said = (said + line)[-4000:]
        code = process.wait()
    except BaseException:
        stop()
        raise
    finally:
        timer.cancel()
        process.stdout.close()
    return None if timed_out.is_set() else code, said


def _end_steps(podman: int) -> None:
    """End what runs below a build in sessions of its own: its containers."""
    import psutil

    try:
        below = psutil.Process(podman).children(recursive=True)
    except psutil.Error:
        return
    for process in below:
        with suppress(psutil.Error, OSError):
            if os.getsid(process.pid) != podman:
                process.kill()
    if not below:
        os.killpg(podman, signal.SIGTERM)
