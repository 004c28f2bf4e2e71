"""Graders that misbehave, each by its name; the sample submission they score well."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from typing import Any


def score(given: Any) -> Any:
    """As the option `how` says."""
    how = given.options["how"]
    if how in ("nan", "infinite", "thirds", "numpyish"):
        return {"nan": float("nan"), "infinite": float("inf"), "thirds": 2 / 3, "numpyish": 0.5}[how]
    if how == "connects":
        return connects(os.environ["TOY_PORT"])
    if given.submission.name == "sample_submission.csv":
        return 0.5
    if how == "crashes":
        os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exits":
        sys.exit(3)
    if how == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if how == "eats-memory":
        return len(bytearray(64 << 30))
    if how == "orphans":
        subprocess.Popen(["sleep", "600"], env={**os.environ, "TOY_ORPHAN": str(given.submission)})
        os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError(how)


def connects(port: str) -> float:
    """1.0 where the network can be reached."""
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=3).close()
    except OSError:
        return 0.0
    return 1.0
