"""Runs as detached Ray actors, through a program that is connected to the cluster."""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mleredux.errors import ExecutorError, file_errors
from mleredux.models.formats import counted, plain
from mleredux.plugin.executor import JobSpec, JobStatus, Node, job_environment
from mleredux.plugin.sandbox import Finding

ADDRESS_VARIABLE = "MLEREDUX_RAY_ADDRESS"
OPTIONS_VARIABLE = "MLEREDUX_RAY_OPTIONS"
PYTHON_VARIABLE = "MLEREDUX_RAY_PYTHON"
TIMEOUT_VARIABLE = "MLEREDUX_RAY_TIMEOUT"
_OWN_MEMORY_MB = 512
"""Memory of a job in addition to the agent's, for the program that follows and grades the run."""
_TIMEOUT_SECONDS = 60.0
_HERE = Path(__file__).parent
_HINT = f"Start it on a node of a Ray cluster, or set the cluster's address in {ADDRESS_VARIABLE}."
_ERRORS = {
    "import": (
        "Ray can't be imported",
        f"Install the cluster's version of Ray, or set the path of a Python that has it in {PYTHON_VARIABLE}.",
    ),
    "connection": ("Ray can't be reached", _HINT),
    "request": ("Ray refused", f"Options of actors, such as resources, are taken from {OPTIONS_VARIABLE}."),
}
_QUIET = {
    "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0",  # otherwise, Ray copies the working directory to the nodes under `uv run`
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayExecutor:
    """The actors of mleredux in a Ray cluster."""

    id = "ray"
    title = "Actors of a Ray cluster"
    allocates = True

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._driver: subprocess.Popen[bytes] | None = None
        self._responded: subprocess.Popen[bytes] | None = None

    def check(self) -> list[Finding]:
        """Check whether the cluster responds and has nodes."""
        try:
            nodes = self.nodes()
        except ExecutorError as error:
            return [Finding("Ray", False, error.message, error.hint)]
        remedy = None if nodes else "Start nodes with `ray start`."
        return [Finding("Ray", bool(nodes), f"{counted(len(nodes), 'node')} can run jobs.", remedy)]

    def nodes(self) -> Sequence[Node]:
        """Return the nodes with the memory available to agents; custom resources and labels become labels."""
        return [_node(node) for node in self._call("nodes")]

    def submit(self, specs: Sequence[JobSpec]) -> Sequence[str]:
        """Create a detached actor for each run; if one is refused, none remains."""
        options, names = _options(), [f"{spec.run_id}-{secrets.token_hex(4)}" for spec in specs]
        jobs = [_job(spec, name, options) for spec, name in zip(specs, names, strict=True)]
        try:
            self._call("submit", jobs=jobs, env=job_environment())
        except BaseException:
            with contextlib.suppress(ExecutorError):  # the first failure ends this, since each may take a minute
                for name in names:
                    self.cancel(name)
            raise
        return names

    def poll(self, jobs: Iterable[str]) -> Mapping[str, JobStatus]:
        """Return the states of actors."""
        names = list(jobs)
        return {job: JobStatus(*status) for job, status in self._call("poll", names=names).items()} if names else {}

    def cancel(self, job: str) -> None:
        """Kill an actor; its supervisor then ends all processes of the run, first with SIGTERM to the main one."""
        self._call("stop", name=job)

    def fetch(self, spec: JobSpec) -> None:
        """Do nothing: the nodes share the file system."""

    def _call(self, name: str, /, **arguments: Any) -> Any:
        """Return the connected program's answer."""
        with self._lock:
            driver = self._connected()
            try:
                # A connected program has a quarter of the time, so that runs soon state what they wait for.
                seconds = _timeout() / (4 if driver is self._responded else 1)
                answer = _exchange(driver, json.dumps([name, arguments]), seconds)
            except BaseException:  # a late response would be mistaken for the next one
                self._end()
                raise
            if "result" in answer:
                self._responded = driver
                return answer["result"]
            if answer["kind"] != "request":
                self._end()
        begun, hint = _ERRORS[answer["kind"]]
        reason = " ".join(answer["error"].split()).rstrip(".")[:300]
        raise ExecutorError(f"{begun}: {reason}.", hint=hint)

    def _connected(self) -> subprocess.Popen[bytes]:
        if self._driver is None or self._driver.poll() is not None:
            address = os.environ.get(ADDRESS_VARIABLE) or os.environ.get("RAY_ADDRESS") or "auto"
            python = os.environ.get(PYTHON_VARIABLE) or sys.executable
            pipe, env = subprocess.PIPE, {**job_environment(), **_QUIET}
            words = [python, str(_HERE / "driver.py"), address]
            hint = f"{PYTHON_VARIABLE} must contain the path of a Python that has Ray."
            with file_errors(ExecutorError, f"{python} can't be started", hint):
                self._driver = subprocess.Popen(
                    words, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env, start_new_session=True
                )
        return self._driver

    def _end(self) -> None:
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.kill()
            with contextlib.suppress(BrokenPipeError), driver:  # this closes its pipes, and waits
                pass


def _node(node: dict[str, Any]) -> Node:
    has = node["Resources"] or {}
    own = [name for name in has if name not in ("CPU", "GPU", "memory", "object_store_memory") and ":" not in name]
    labels = {*own, *(f"{name}={value}" for name, value in (node["Labels"] or {}).items())}
    memory = max(0, int(has.get("memory", 0)) // 2**20 - _OWN_MEMORY_MB)
    return Node(node["NodeName"], has.get("CPU", 0.0), memory, int(has.get("GPU", 0)), tuple(sorted(labels)))


def _options() -> dict[str, Any]:
    """Return further options for actors.

    Raises:
        ExecutorError: The options are not a JSON object.
    """
    text = os.environ.get(OPTIONS_VARIABLE) or "{}"
    with contextlib.suppress(ValueError):
        if isinstance(options := json.loads(text), dict):
            return options
    hint = """For example: {"resources": {"a100": 1}}."""
    raise ExecutorError(f"{OPTIONS_VARIABLE} is not a JSON object: {text}.", hint=hint)


def _timeout() -> float:
    """Return the maximum duration of an answer, in seconds.

    Raises:
        ExecutorError: The variable is not a number of seconds.
    """
    text = os.environ.get(TIMEOUT_VARIABLE) or str(_TIMEOUT_SECONDS)
    with contextlib.suppress(ValueError):
        if 0 < (seconds := float(text)) < math.inf:
            return seconds
    raise ExecutorError(f"{TIMEOUT_VARIABLE} is not a number of seconds: {text}.", hint="For example: 60.")


def _job(spec: JobSpec, name: str, options: dict[str, Any]) -> dict[str, Any]:
    limits = spec.limits
    return {
        "options": {
            "num_cpus": limits.cpus,
            "memory": (limits.memory_mb + _OWN_MEMORY_MB) * 2**20,
            "num_gpus": limits.gpus,
            **options,
            "name": name,  # the name identifies it, regardless of the options
        },
        "cpus": f"{limits.cpus:g}",
        "memory_mb": str(limits.memory_mb),
        "command": [str(_HERE / "supervisor.py"), str(spec.seconds), *spec.command],
        "folder": str(spec.work_dir),
    }


def _exchange(driver: subprocess.Popen[bytes], request: str, seconds: float) -> dict[str, Any]:
    """Send a request; return the answer.

    Raises:
        ExecutorError: There was no answer in time.
    """
    assert driver.stdin is not None and driver.stdout is not None
    end, read = time.monotonic() + seconds, b""
    with contextlib.suppress(BrokenPipeError):  # it has ended, and may have printed the reason
        driver.stdin.write(request.encode() + b"\n")
        driver.stdin.flush()
    waiting = select.poll()
    waiting.register(driver.stdout, select.POLLIN)
    while not read.endswith(b"\n"):
        if not waiting.poll(1000 * max(0.0, end - time.monotonic())):
            raise ExecutorError(
                f"Ray did not respond within {plain(seconds)} seconds.",
                hint=f"Check the cluster with `ray status`, or raise {TIMEOUT_VARIABLE}.",
            )
        if not (part := os.read(driver.stdout.fileno(), 2**16)):
            return {"error": "the connection was interrupted", "kind": "connection"}
        read += part
    answer: dict[str, Any] = json.loads(read)
    return answer


EXECUTOR = RayExecutor()
