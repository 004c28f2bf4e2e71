"""What forks of a process execute for sessions; see `mleredux_agents.hosted`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from mleredux._core.launcher import PR_SET_CHILD_SUBREAPER, PR_SET_PDEATHSIG, end_all, prctl, restrict
from mleredux_agentkit import hosted
from mleredux_agentkit.wire import readable

MAX_MESSAGE = 200_000
"""Bytes of a request to `execute`."""


def work(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Execute the Python file of a request with limits, in a fork; see `mleredux_agentkit.hosted.work`."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    restrict(request["limits"])
    hosted.work(request, files)


def execute(request: Mapping[str, Any], files: Sequence[int]) -> None:
    """Start programs with limits, one after another, until the connection is closed, in a fork, as `work` does.

    A message is a JSON object with `program`, `folder` and `env`, and comes with three open files. The reply is the
    exit code and the CPU time in seconds, once the program and all processes that it started have ended. A message
    without files ends the program.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    restrict(request["limits"])
    with socket.socket(fileno=files[0]) as control:
        while (received := socket.recv_fds(control, MAX_MESSAGE, 3))[0]:
            if opened := received[1]:
                control.send(json.dumps(_execute(json.loads(received[0]), opened, control)).encode())
                for file in opened:
                    os.close(file)


def _execute(request: Mapping[str, Any], files: Sequence[int], control: Any) -> tuple[int, float]:
    words, began = request["program"], sum(os.times()[2:4])
    try:
        process = subprocess.Popen(
            words,
            stdin=files[0],
            stdout=files[1],
            stderr=files[2],
            cwd=request["folder"],
            env={**os.environ, **request["env"]},
            start_new_session=True,
        )
    except (OSError, ValueError, IndexError) as error:
        os.write(files[2], f"{words[0] if words else ''}: {error}\n".encode(errors="replace"))
        return (127 if isinstance(error, FileNotFoundError) else 126), 0.0
    ended = os.pidfd_open(process.pid)
    readable((ended, control.fileno()))
    os.close(ended)
    for send in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            send(process.pid, signal.SIGKILL)
    code = process.wait()
    end_all()
    return code, sum(os.times()[2:4]) - began
