"""`python -m mleredux_agent_aide.driver`: what the sandbox starts."""

from __future__ import annotations

import sys

from mleredux_agent_aide.driver.clock import Clock, Stopped
from mleredux_agent_aide.driver.settings import Settings


def main() -> int:
    """Work until there is nothing left to do, or no time; the exit code."""
    settings = Settings.from_env()
    clock = Clock(settings.deadline)
    try:
        # Imports take seconds on a busy machine, and the end may come meanwhile.
        from mleredux_agent_aide.driver.work import work

        return work(settings, clock)
    except Stopped as stopped:
        print(f"stopped: {stopped}", flush=True)
        return 0 if settings.submission.exists() else 1


if __name__ == "__main__":
    sys.exit(main())
