"""A Ray cluster of the tests' own: several nodes on this machine, held by a program with a Python that has Ray."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil


def ray_python() -> str | None:
    """The Python of `.ci/ray`, or None where that was not made."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "mleredux-ray" / "bin" / "python"
    return str(path) if path.exists() else None


class RayCluster:
    """A cluster in a folder of its own; used as a context manager.

    Args:
        nodes: Number of nodes `n1`, the head, `n2`, …
        cpus: CPUs of each, whatever the machine has.
        memory_mb: Memory of each.
        gpus: GPUs of each; Ray only counts them.
        durable: Whether the controller stores its state, and can be restarted.
        port: The controller's port; 0: any.

    Attributes:
        env: The variables of programs that use it.
    """

    def __init__(
        self,
        nodes: int = 3,
        *,
        cpus: int = 2,
        memory_mb: int = 4000,
        gpus: int = 2,
        durable: bool = True,
        port: int = 0,
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="mleredux-ray-"))
        self.nodes = tuple(f"n{number + 1}" for number in range(nodes))
        self.env: dict[str, str] = {}
        self._raylets: dict[str, int] = {}
        self._words = {"cpus": cpus, "memory_mb": memory_mb, "gpus": gpus, "durable": durable, "port": port}

    def __enter__(self) -> RayCluster:
        python = ray_python()
        assert python is not None, "Ray is not installed (`.ci/ray` does that)"
        program = str(Path(__file__).with_name("ray_nodes.py"))
        (self.folder / "ray").mkdir()  # for the address of the newest cluster; Ray expects the folder
        env = {**os.environ, "RAY_raylet_start_wait_time_s": "120", "RAY_USAGE_STATS_ENABLED": "0"}
        env["RAY_TMPDIR"] = str(self.folder)
        words = json.dumps({"folder": str(self.folder), **self._words})
        with (self.folder / "nodes.log").open("wb") as log:
            self._program = subprocess.Popen(
                [python, "-I", program, words],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                start_new_session=True,
            )
        for name in self.nodes:
            self.start_node(name)
        self.env["MLEREDUX_RAY_PYTHON"] = python
        return self

    def __exit__(self, *_exception: object) -> None:
        self._program.communicate(timeout=60)
        for process in self._below(self._raylets.values()):
            with contextlib.suppress(psutil.Error):
                process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start_node(self, name: str) -> None:
        """Start a node."""
        address, raylet = self._ask("add", name)
        self.env["MLEREDUX_RAY_ADDRESS"], self._raylets[name] = address, raylet

    def kill_node(self, name: str, processes: Iterable[psutil.Process] = ()) -> None:
        """Kill all processes of a node, as a power failure does: none of them sees another's end.

        Args:
            name: The node, not the head.
            processes: Those of its runs, which have left it.
        """
        killed = [*self._below([self._raylets.pop(name)]), *processes]
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in killed:
                with contextlib.suppress(psutil.Error):
                    process.send_signal(number)
        self._ask("remove", name)

    def kill_raylet(self, name: str) -> None:
        """Kill the daemon of a node alone."""
        psutil.Process(self._raylets.pop(name)).kill()
        self._ask("remove", name)

    def kill_actor(self, name: str) -> None:
        """Kill the process of an actor, as Ray does to one that it takes the node from; it starts that again."""
        number = self._ask("process_of", name)
        psutil.Process(number).kill()

    def repair(self) -> None:
        """Bring all nodes back."""
        for name in self.nodes:
            if name not in self._raylets:
                self.start_node(name)

    def stop_controller(self) -> None:
        """Kill the process that holds the state of the cluster."""
        self._ask("stop_controller")

    def start_controller(self) -> None:
        """Start it again, from what it stored."""
        self._ask("start_controller")

    def _ask(self, *words: str) -> Any:
        assert self._program.stdin is not None and self._program.stdout is not None
        self._program.stdin.write(json.dumps(words).encode() + b"\n")
        self._program.stdin.flush()
        answer = self._program.stdout.readline()
        assert answer, (self.folder / "nodes.log").read_text()[-2000:]
        return json.loads(answer)

    @staticmethod
    def _below(raylets: Iterable[int]) -> list[psutil.Process]:
        found = []
        for number in raylets:
            with contextlib.suppress(psutil.Error):
                raylet = psutil.Process(number)
                found += [raylet, *raylet.children(recursive=True)]
        return found
