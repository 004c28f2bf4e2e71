"""`python -m mleredux_agent_baseline`."""

from __future__ import annotations

from mleredux_agentkit import exit_now

from mleredux_agent_baseline.process import Journal, run_agent
from mleredux_agent_baseline.settings import OPTIONS


def main() -> int:
    """Run the agent; return exit code 0 if there is a submission."""

    def work(journal: Journal) -> None:
        from mleredux_agent_baseline.work import Work

        Work(journal).run()

    return run_agent("baseline", OPTIONS, work)


if __name__ == "__main__":
    exit_now(main())
