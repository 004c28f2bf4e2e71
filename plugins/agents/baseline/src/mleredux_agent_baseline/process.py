"""Run an agent in a thread, so that the process stops in time regardless of what a model is doing.

Compiled code of libraries does not handle signals. So the main thread waits for the deadline or SIGTERM, and then exits
immediately. Submission, log and rollout are always valid, because they are replaced atomically after each step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

from mleredux_agentkit import Task, work_until

from mleredux_agent_baseline.journal import Journal

__all__ = ["Journal", "run_agent"]


def run_agent(name: str, options: Mapping[str, Any], work: Callable[[Journal], None]) -> int:
    """Submit the sample, then work; return exit code 0 if there is a submission and no error.

    Args:
        name: The agent's id, for its log and rollout.
        options: Defaults of its options.
        work: Called once the sample is submitted; import heavy libraries there.
    """
    task = Task(options=options)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        os.environ[variable] = str(task.cpus)
    os.environ.setdefault("MPLCONFIGDIR", str(task.scratch_dir))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    started: list[Journal] = []

    def begin() -> None:
        started.append(journal := Journal(task, name))
        if journal.submit_sample() is not None:
            work(journal)

    ended = work_until(task.deadline, begin)
    submitted = task.submission.is_file()
    if ended.error:
        print(ended.error, file=sys.stderr)
    if started and (ended.error or ended.stopped_by):
        reason = f"stopped by {ended.stopped_by}" if ended.stopped_by else "an error"
        started[0].log(f"{reason}; {'the last submission is kept' if submitted else 'there is no submission'}")
        started[0].rollout.say(f"Stopped: {reason}.", stage="submit", is_buggy=bool(ended.error))
    return 0 if submitted and not ended.error else 1
