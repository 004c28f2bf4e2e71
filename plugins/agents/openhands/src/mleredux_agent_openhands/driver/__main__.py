"""`python -m mleredux_agent_openhands.driver`: OpenHands runs in a thread, so that the process always stops in time.

The main thread waits for the end of the work, the deadline or SIGTERM, forwards the notice before the deadline, and
then exits immediately: the log is written event by event, so it is always complete.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING

from mleredux_agentkit import Task, exit_now, work_until

if TYPE_CHECKING:
    from mleredux_agent_openhands.driver.work import Work


def main() -> int:
    """Run the agent; return exit code 0 if it ended without an error, and there is a submission."""
    task = Task()
    # Set before OpenHands is imported: disable downloads, telemetry and banners.
    quiet = {
        "HOME": str(task.scratch_dir),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENHANDS_SUPPRESS_BANNER": "1",
        "LOG_JSON": "false",
    }
    os.environ.update(quiet)
    works: list[Work] = []
    lines: list[str] = []

    def work() -> None:
        from mleredux_agent_openhands.driver.work import Work

        works.append(Work(task))
        works[0].run()

    def pass_notice_on() -> None:
        if works and not lines and (notice := task.notice):
            lines.append(notice)
            # A message waits for the current step.
            threading.Thread(target=works[0].send_message, args=(notice,), daemon=True).start()

    ended = work_until(task.deadline, work, pass_notice_on)
    if ended.error:
        print(ended.error, file=sys.stderr, flush=True)
    if ended.stopped_by:
        print(f"Stopped by {ended.stopped_by}.", flush=True)
    for part in works:
        part.save_usage()
    submitted = task.submission.is_file()
    if not submitted:
        print(f"There is no {task.submission}.", flush=True)
    return 0 if submitted and not ended.error else 1


if __name__ == "__main__":
    exit_now(main())  # do not wait for OpenHands' threads and terminals
