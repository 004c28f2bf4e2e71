"""`python -m mleredux_agent_mini_swe_agent.driver`: what the sandbox starts."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType

_VARIABLES = {
    "MSWEA_GLOBAL_CONFIG_DIR": os.environ.get("MLEREDUX_SCRATCH_DIR", "/tmp") + "/mini-swe-agent",
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",  # the gateway counts costs
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it waits for an address that can't be reached
}
"""Read when mini-swe-agent is imported."""


class Stopped(BaseException):
    """The time is over, or somebody asked to stop."""


def main() -> int:
    """Let the agent work until it hands in, or until its time is over; the exit code."""
    limit = float(os.environ.get("MLEREDUX_TIME_LIMIT", 3600))
    deadline = float(os.environ.get("MLEREDUX_DEADLINE", time.time() + limit))
    deadline -= min(max(0.02 * limit, 2), 60)
    submission = Path(os.environ.get("MLEREDUX_SUBMISSION", "/output/submission.csv"))
    for name, value in _VARIABLES.items():
        os.environ.setdefault(name, value)
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGALRM, _stop)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, deadline - time.time()))
    try:
        # Imports take seconds on a busy machine, and the end may come meanwhile.
        from mleredux_agent_mini_swe_agent.driver.work import work

        status = work(json.loads(os.environ.get("MLEREDUX_OPTIONS") or "{}"), deadline)
    except Stopped as stopped:
        status = str(stopped)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(f"ended: {status}", flush=True)
    return 0 if submission.exists() else 1


def _stop(number: int, _frame: FrameType | None) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Stopped("asked to end" if number == signal.SIGTERM else "the time is nearly over")


if __name__ == "__main__":
    sys.exit(main())
