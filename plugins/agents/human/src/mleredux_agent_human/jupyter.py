"""Inside the sandbox: JupyterLab in the output folder, with a kernel that reports each cell to the session."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

from mleredux_agentkit import Task, write
from mleredux_agentkit.session import Request

from mleredux_agent_human.forward import join

NOTEBOOK = "work.ipynb"
_STARTUP = "from mleredux_agent_human.kernel import record as _record\n_record(get_ipython())\ndel _record\n"
_COMMANDS = """\
The data is in the folder `MLEREDUX_DATA_DIR`. `%submit FILE` checks a submission and keeps it (the last one counts),
`%clock` shows the remaining time, and `%finish` ends the run. Each cell becomes a step of the run's rollout.
Terminals on this page share the run's shell."""
_FIRST = """\
import os
from pathlib import Path

data = Path(os.environ["MLEREDUX_DATA_DIR"])
sorted(path.name for path in data.iterdir())"""


class Jupyter:
    """A JupyterLab on the sandbox's loopback interface.

    Args:
        task: The task.
        folder: Folder for configuration, history and state; the user's own files are not read.
    """

    def __init__(self, task: Task, folder: Path) -> None:
        self.token = secrets.token_urlsafe(32)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = int(free.getsockname()[1])
        startup = folder / "ipython" / "profile_default" / "startup"
        startup.mkdir(parents=True)
        write(startup / "mleredux.py", _STARTUP)
        notebook = task.output_dir / NOTEBOOK
        if not notebook.exists():
            write(notebook, json.dumps(_notebook(f"{_COMMANDS}\n\n{task.description}", _FIRST), indent=1))
        shell = [sys.executable, "-m", "mleredux_agent_human", "attach"]
        settings = {
            "--ServerApp.ip": "127.0.0.1",
            "--ServerApp.port": str(self.port),
            "--ServerApp.port_retries": "0",
            "--ServerApp.root_dir": str(task.output_dir),
            "--ServerApp.terminado_settings": json.dumps({"shell_command": shell}),
            "--LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        }
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
        command += [f"{name}={value}" for name, value in settings.items()]
        folders = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
        environment = {**os.environ, **folders, "IPYTHONDIR": str(folder / "ipython"), "JUPYTER_TOKEN": self.token}
        log = task.logs("jupyter") / "jupyter.log"
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command, env=environment, cwd=task.output_dir, stdin=subprocess.DEVNULL, stdout=file, stderr=file
            )

    def state(self) -> dict[str, Any]:
        """Return whether it listens (`ready`) or has ended (`ended`), the token, and the notebook to open."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            ready = True
        except OSError:
            ready = False
        ended = self._process.poll() is not None
        return {"ready": ready, "ended": ended, "token": self.token, "notebook": NOTEBOOK}

    def forward(self, file: BinaryIO, request: Request) -> dict[str, Any]:
        """Forward a browser's connection."""
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            join(file.read1, request["connection"], server)  # type: ignore[attr-defined]
        return {}

    def stop(self) -> None:
        """Stop Jupyter and its kernels."""
        self._process.terminate()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _notebook(text: str, code: str) -> dict[str, Any]:
    cells = [
        {"cell_type": "markdown", "id": "task", "metadata": {}, "source": text},
        {"cell_type": "code", "id": "data", "metadata": {}, "source": code, "outputs": [], "execution_count": None},
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
