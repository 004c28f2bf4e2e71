"""An S3 server, and nodes that have only it in common with the machine that gives them runs."""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

from mleredux._core.executors import JobSpec, JobStatus
from mleredux_executor_nodes.local import LocalExecutor

from mleredux_support.ports import free_port, wait_until_free

BUCKET = "mleredux"


class S3Server:
    """moto's S3 server; what it stores outlives a stop.

    Attributes:
        environment: Variables with its address and credentials.
        requests: Method and path of each request so far.
    """

    def __init__(self) -> None:
        self._port = free_port()
        self._server: Any = None
        self.requests: list[tuple[str, str]] = []
        self.environment = self.credentials(self._port)
        self.start()
        import_module("boto3").client(
            "s3",
            endpoint_url=self.environment["AWS_ENDPOINT_URL"],
            aws_access_key_id="a",
            aws_secret_access_key="b",
            region_name="us-east-1",
        ).create_bucket(Bucket=BUCKET)

    @staticmethod
    def credentials(port: int) -> dict[str, str]:
        """Return the variables for a server on a port of the loopback."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "a-key-of-tests",
            "AWS_SECRET_ACCESS_KEY": "a-secret-of-tests",
            "AWS_REGION": "us-east-1",
        }

    def start(self) -> None:
        """Start it, again with what it had stored."""
        from moto.server import ThreadedMotoServer
        from werkzeug.serving import WSGIRequestHandler

        def note(handler: WSGIRequestHandler, *_: object) -> None:
            self.requests.append((handler.command, handler.path))

        mock.patch.object(WSGIRequestHandler, "log_request", note).start()
        self._server = ThreadedMotoServer("127.0.0.1", port=self._port, verbose=False)
        wait_until_free(self._port)  # otherwise moto waits forever
        self._server.start()

    def stop(self) -> None:
        """Stop it: connections are refused."""
        self._server.stop()
        mock.patch.stopall()

    def url(self, prefix: str) -> str:
        """The URL of a part of its bucket."""
        return f"s3://{BUCKET}/{prefix}"


class ApartExecutor(LocalExecutor):
    """Processes that see neither each other's folders nor those of the machine that gives them runs.

    Args:
        home: A folder of this machine, which is empty on each node.
        nodes: The nodes' own folders; runs go to them in turn.
        env: Variables of the nodes.

    Attributes:
        given: Number of jobs so far.
    """

    id = "apart"
    title = "Machines that share no files; for tests"

    def __init__(self, home: Path, nodes: Sequence[Path], **env: str) -> None:
        super().__init__()
        self._home, self._nodes, self._env, self.given = home, nodes, env, 0

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        """Start processes in mount namespaces of their own."""
        jobs: list[str] = []
        for spec in specs:
            place = self._nodes[self.given % len(self._nodes)]
            self.given += 1
            hidden = f"mount -t tmpfs none {shlex.quote(str(self._home))} && exec {shlex.join(spec.command)}"
            command = ("unshare", "--mount", "--propagation", "private", "sh", "-c", hidden)
            with mock.patch.dict(os.environ, {**self._env, "MLEREDUX_NODE_DIR": str(place)}):
                jobs += super().submit([replace(spec, command=command)])
        return jobs

    def poll(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Return which processes live."""
        return super().poll(jobs)


def can_hide_folders() -> bool:
    """Whether this machine allows mount namespaces."""
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0
