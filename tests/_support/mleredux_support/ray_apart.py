"""Nodes of a Ray cluster that share no files with it or with each other: each sees the software alone, read-only."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

from mleredux_support.ray_cluster import ray_python

_ENTER = """
mount --make-rprivate /
mount -o remount,bind,ro /
for place in /tmp /var/tmp /dev/shm /run "$HOME/.cache/mleredux"; do
    [ ! -d "$place" ] || mount -t tmpfs none "$place"
done
{own}
exec {start}
"""


class ApartNode:
    """A node with its own mounts and processes.

    Args:
        name: The node.
        address: The address of the cluster.
        folders: Folders to create on it.
        cpus: CPUs of the node, whatever the machine has.

    Attributes:
        name: As above.
    """

    def __init__(self, name: str, address: str, *folders: Path, cpus: int = 2) -> None:
        self.name = name
        ray = Path(ray_python() or "").with_name("ray")
        words = [ray, "start", "--block", f"--address={address}", f"--node-name={name}", f"--num-cpus={cpus}"]
        words += ["--memory=2000000000", "--object-store-memory=100000000", "--disable-usage-stats"]
        own = "\n".join(f"mkdir -p {shlex.quote(str(folder))}" for folder in folders)
        script = _ENTER.format(own=own, start=shlex.join(map(str, words)))
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        self._log = Path("/tmp") / f"mleredux-ray-{os.getpid()}-{name}.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*apart, "sh", "-ec", script],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "RAY_raylet_start_wait_time_s": "120", "RAY_TMPDIR": "/tmp"},
                start_new_session=True,
            )

    def path(self, path: Path) -> Path:
        """Return the place of a node's file as this process sees it."""
        [inner] = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        return Path(f"/proc/{inner}/root") / path.relative_to("/")

    def kill(self) -> None:
        """End all processes of the node at once, as a power failure does."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._log.unlink(missing_ok=True)
