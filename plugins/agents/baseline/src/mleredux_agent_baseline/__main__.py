"""`python -m mleredux_agent_baseline`: works in a thread, and stops in time whatever a model is doing.

A library deep in compiled code does not hear signals. So the main thread waits for the deadline or for SIGTERM, and
then ends the process at once: submission, log and rollout are replaced whole after each step, so they are valid.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from types import FrameType

from mleredux_agent_baseline.journal import Journal
from mleredux_agent_baseline.settings import Settings


def main() -> int:
    """Run the agent; the exit code is 0 where there is a submission."""
    settings = Settings.from_env()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        os.environ[name] = str(settings.cpus)
    os.environ.setdefault("MPLCONFIGDIR", str(settings.scratch_dir))
    over = threading.Event()
    told: list[str] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        told.append(signal.Signals(number).name)
        over.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    settings.output_dir.mkdir(parents=True, exist_ok=True)
    started: list[Journal] = []
    errors: list[str] = []

    def work() -> None:
        try:
            started.append(journal := Journal(settings))
            if journal.submit_sample() is not None:
                from mleredux_agent_baseline.work import Work

                Work(journal).run()
        except BaseException:
            errors.append(traceback.format_exc())
        finally:
            over.set()

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    while not over.wait(max(0.0, min(1.0, settings.deadline - time.time()))):
        if time.time() >= settings.deadline:
            told.append("the deadline")
            break
    code = close(settings.submission.is_file(), started, told, errors)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def close(handed_in: bool, started: list[Journal], told: list[str], errors: list[str]) -> int:
    """Say how it ended; the exit code."""
    reason = f"stopped by {told[0]}" if told else "an error" if errors else "done"
    if errors:
        print(errors[0], file=sys.stderr)
    if started and reason != "done":
        journal = started[0]
        journal.log(f"{reason}; {'the last submission stays' if handed_in else 'there is no submission'}")
        journal.rollout.say(f"Stopped: {reason}.", {"stage": "submit", "is_buggy": bool(errors)})
    return 0 if handed_in and not errors else 1


if __name__ == "__main__":
    main()
