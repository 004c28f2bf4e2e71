"""Entry point in the sandbox: `python -m mleredux_agent_mini_swe_agent.driver`."""

from __future__ import annotations

import os
import sys

from mleredux_agentkit import Clock, Stopped, Task


def main() -> int:
    """Run the agent until it submits or its time is up; return the exit code."""
    task = Task()
    variables = {  # read when mini-swe-agent is imported
        "MSWEA_GLOBAL_CONFIG_DIR": str(task.scratch_dir / "mini-swe-agent"),
        "MSWEA_SILENT_STARTUP": "1",
        "MSWEA_COST_TRACKING": "ignore_errors",  # the gateway counts costs
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it waits for an unreachable address
    }
    for name, value in variables.items():
        os.environ.setdefault(name, value)
    clock = Clock(task.deadline)
    try:
        # Imports take seconds on a busy machine, and the deadline may pass in the meantime.
        from mleredux_agent_mini_swe_agent.driver.work import work

        status = work(task)
    except Stopped as stopped:
        status = str(stopped)
    clock.close()
    print(f"ended: {status}", flush=True)
    return 0 if task.submission.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
