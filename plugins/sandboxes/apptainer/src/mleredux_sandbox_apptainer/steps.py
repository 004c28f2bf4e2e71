"""Execute programs of a build within its limits, with their output in its log."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mleredux.errors import AgentBroken, SandboxError
from mleredux.plugin.files import disk_usage, plain_path
from mleredux_containers import BuildLimits, BuildLog, Container, Watch, agent_user

from mleredux_sandbox_apptainer.engine import CONTAINED, filtered, variables

# In a namespace whose root is the unprivileged user; the limits of that user apply to each process.
_AS_ROOT = ("unshare", "--map-root-user")
_LIMITED = (
    'ulimit -d "$1"; ulimit -u "$2" 2>/dev/null || ulimit -p "$2"; [ -s /etc/hosts ] || '
    "echo 127.0.0.1 localhost >/etc/hosts; "
    'mkdir -p "$3" && cd "$3" || exit; shift 3; exec "$@"'
)
"""Executes a step in its working directory, with limits for each of its processes."""


class Steps:
    """Executes the steps of one build.

    Args:
        log: The log of the build.
        limits: The limits of each step.
        folder: The folder of all files that the build writes.
        sidecar: The container whose mounts give steps the socket of a proxy; None if they have no network.
    """

    def __init__(self, log: BuildLog, limits: BuildLimits, folder: Path, sidecar: Container | None = None) -> None:
        self._log, self._limits, self._folder, self._sidecar = log, limits, folder, sidecar

    def prepare(self, root: Path) -> None:
        """Create the mount points of an image before any step runs, because steps may create links there.

        Raises:
            AgentBroken: The image has a link where a mount point should be.
        """
        top = root / "mleredux"
        if top.is_symlink():
            raise AgentBroken("The base image has a link at /mleredux.", hint="Use another base image.")
        for name in ("inside", "socket", "from"):
            if not (top / name).is_symlink():
                (top / name).mkdir(parents=True, exist_ok=True)

    def step(
        self, root: Path, command: Sequence[str], env: Mapping[str, str], place: str = "/", shown: Path | None = None
    ) -> int:
        """Execute a command in a container with a folder as its root file system; return its exit code.

        Args:
            root: The folder.
            command: The command, executed as root of a user namespace.
            env: Its environment variables.
            place: Its working directory, created if missing.
            shown: A folder to mount at `/mleredux/from`.
        """
        binds, entry = [], []
        if self._sidecar is not None:
            binds += [bind.line() for bind in self._sidecar.binds if not bind.writable]
            entry = list(self._sidecar.entrypoint)
        if shown is not None:
            binds.append(f"type=bind,source={plain_path(shown)},destination=/mleredux/from,ro")
        limited = ("/bin/sh", "-c", _LIMITED, "sh", str(self._limits.memory >> 10), str(self._limits.processes), place)
        options = [*CONTAINED, *filtered(self._folder), "--writable", *(f"--mount={bind}" for bind in binds)]
        return self.run([*("apptainer", "--silent", "exec"), *options, str(root), *limited, *entry, *command], env)[0]

    def run(self, command: Sequence[str], env: Mapping[str, str]) -> tuple[int, str]:
        """Run a program until it ends; return its exit code and the end of its output.

        Raises:
            BuildFailed: The time limit or the disk limit was exceeded.
        """
        user, group = agent_user()
        own: dict[str, Any] = {"user": user, "group": group, "extra_groups": ()} if os.getuid() == 0 else {}
        try:
            process = subprocess.Popen(
                [*_AS_ROOT, *command],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env=variables(self._folder, env),
                start_new_session=True,
                **own,
            )
        except OSError as error:
            raise SandboxError(
                f"{error.filename} is not installed.", hint="`mleredux doctor` checks Apptainer."
            ) from error
        assert process.stdout is not None
        watch = Watch(self._log, self._limits.disk)
        watch.size = lambda: disk_usage(self._folder)[0]
        watch.stop = lambda: _kill(process)
        watch.start()
        output = ""
        try:
            for line in process.stdout:
                self._log.write(line)
                output = (output + line)[-4000:]
            code = process.wait()
        finally:
            watch.ended.set()
            _kill(process)
            process.wait()
            process.stdout.close()
        watch.check()
        return code, output


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill a program and its children, unless it has ended."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
