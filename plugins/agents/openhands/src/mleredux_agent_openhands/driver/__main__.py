"""`python -m mleredux_agent_openhands.driver`: OpenHands works in a thread, and stops in time whatever it is doing.

The main thread waits for the end of the work, the deadline or SIGTERM, passes the notice of the coming end on, and then
ends the process at once: the log is written event by event, so it is whole at any time.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from types import FrameType

from mleredux_agent_openhands.driver.settings import Settings

_LOOK_SECONDS = 1.0


def main() -> int:
    """Run the agent; the exit code is 0 where it ended by itself or in time, and there is a submission."""
    settings = Settings.from_env()
    # Before anything of OpenHands is imported: nothing is to be fetched, sent or shown that nobody asked for.
    quiet = {
        "HOME": str(settings.scratch_dir),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENHANDS_SUPPRESS_BANNER": "1",
        "LOG_JSON": "false",
    }
    os.environ.update(quiet)
    over = threading.Event()
    told: list[str] = []
    failed: list[str] = []
    works: list[object] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        told.append(signal.Signals(number).name)
        over.set()

    def work() -> None:
        try:
            from mleredux_agent_openhands.driver.work import Work

            made = Work(settings)
            works.append(made)
            made.run()
        except BaseException:
            failed.append(traceback.format_exc())
        finally:
            over.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    threading.Thread(target=work, daemon=True).start()
    noticed = False
    while not over.wait(max(0.0, min(_LOOK_SECONDS, settings.deadline - time.time()))):
        if time.time() >= settings.deadline:
            told.append("the deadline")
            break
        if works and not noticed and settings.notice.is_file():
            noticed = True
            pass_on(settings, works[0])
    return close(settings, works, told, failed)


def pass_on(settings: Settings, work: object) -> None:
    """Tell the agent that its time is nearly over; a message waits for the step under way, so in a thread."""
    from mleredux_agent_openhands.driver.work import Work

    assert isinstance(work, Work)
    text = settings.notice.read_text(encoding="utf-8", errors="replace")
    threading.Thread(target=work.tell, args=(text,), daemon=True).start()


def close(settings: Settings, works: list[object], told: list[str], failed: list[str]) -> int:
    """Say how it ended; the exit code."""
    if failed:
        print(failed[0], file=sys.stderr, flush=True)
    if told:
        print(f"Stopped by {told[0]}.", flush=True)
    for work in works:
        from mleredux_agent_openhands.driver.work import Work

        assert isinstance(work, Work)
        work.save_usage()
    handed_in = settings.submission.is_file()
    if not handed_in:
        print(f"There is no {settings.submission}.", flush=True)
    return 0 if handed_in and not failed else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # OpenHands' threads and terminals would be waited for otherwise
