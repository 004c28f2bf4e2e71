"""Entry point in the sandbox: `python -m mleredux_agent_aide.driver`."""

from __future__ import annotations

import sys

from mleredux_agentkit import Clock, Stopped, Task


def main() -> int:
    """Work until there is nothing left to do or time is up; return the exit code."""
    task = Task()
    clock = Clock(task.deadline)
    try:
        # Imports take seconds on a busy machine, and the deadline may pass in the meantime.
        from mleredux_agent_aide.driver.work import work

        return work(task, clock)
    except Stopped as stopped:
        print(f"stopped: {stopped}", flush=True)
        return 0 if task.submission.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
