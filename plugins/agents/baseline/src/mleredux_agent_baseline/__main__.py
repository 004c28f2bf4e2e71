"""`python -m mleredux_agent_baseline`: works in a thread, and stops in time whatever a model is doing.

A library deep in compiled code does not hear signals. So the main thread waits for the deadline or for SIGTERM, and
then ends the process at once: submission, log and rollout are replaced whole after each step, so they are valid.
"""

from __future__ import annotations

import os
import sys

from mleredux_agentkit import Task, exit_now, work_until

from mleredux_agent_baseline.journal import Journal
from mleredux_agent_baseline.settings import OPTIONS


def main() -> int:
    """Run the agent; the exit code is 0 where there is a submission."""
    task = Task(options=OPTIONS)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        os.environ[name] = str(task.cpus)
    os.environ.setdefault("MPLCONFIGDIR", str(task.scratch_dir))
    task.output_dir.mkdir(parents=True, exist_ok=True)
    started: list[Journal] = []

    def work() -> None:
        started.append(journal := Journal(task))
        if journal.submit_sample() is not None:
            from mleredux_agent_baseline.work import Work

            Work(journal).run()

    ended = work_until(task.deadline, work)
    submitted = task.submission.is_file()
    if ended.error:
        print(ended.error, file=sys.stderr)
    if started and (ended.error or ended.stopped_by):
        reason = f"stopped by {ended.stopped_by}" if ended.stopped_by else "an error"
        started[0].log(f"{reason}; {'the last submission stays' if submitted else 'there is no submission'}")
        started[0].rollout.say(f"Stopped: {reason}.", stage="submit", is_buggy=bool(ended.error))
    return 0 if submitted and not ended.error else 1


if __name__ == "__main__":
    exit_now(main())
