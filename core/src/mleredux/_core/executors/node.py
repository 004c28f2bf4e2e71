"""The program that an executor starts on a node: it executes one run to its end.

It may be started again at any time. What an earlier start of it still writes is refused from then on, and a start for
a ticket that was replaced meanwhile does nothing.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FrameType

from mleredux._core.executors.tickets import read_ticket
from mleredux._core.loans import lend
from mleredux._core.store.lease import Lease, take_away

LOG_FILE = "worker.log"


def main(
    folder: Path,
    nonce: str,
    borrow: Callable[[Path, str], tuple[Mapping[str, str], Iterable[str]]] = lambda _folder, _nonce: ({}, ()),
) -> None:
    """Execute the run in a folder, if its ticket is the one with this nonce.

    Args:
        folder: The run's directory.
        nonce: That of the ticket.
        borrow: Returns secrets by name, and other values to mask, from both of these; may wait.
    """
    ticket = read_ticket(folder)
    if ticket.get("nonce") != nonce:
        return
    log = os.open(folder / "logs" / LOG_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: _notice(folder))
    loan = borrow(folder, nonce)
    if read_ticket(folder).get("nonce") != nonce:
        return

    from mleredux._core.data import DataStore
    from mleredux._core.pipeline import Pipeline
    from mleredux._core.plugins import Catalogue
    from mleredux._core.plugins.catalogue import set_current
    from mleredux._core.sandboxes.slots import Slots
    from mleredux._core.store import RunStore

    catalogue = Catalogue(block=ticket["block"], load=ticket["load"])
    set_current(catalogue)
    store = RunStore(folder.parent)
    run = store.get(folder.name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(lend(*loan))
        lease = stack.enter_context(Lease(folder, take_away(folder)))
        run.guard(lease.check)
        slots = None
        if ticket["allocates"]:
            private = stack.enter_context(tempfile.TemporaryDirectory(prefix="mleredux-slots-"))
            slots = Slots(Path(private))  # of what the engine gave this job
        pipeline = Pipeline(
            store,
            catalogue,
            DataStore(run.spec.data_dir),
            base_image=ticket["base_image"],
            smoke=ticket["smoke"],
            cancelled=lease.lost,
        )
        pipeline.warm_up()
        pipeline.go_on(run, slots)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM: stop the agent and leave the run as it is; it goes on when this program is started again."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def _notice(folder: Path) -> None:
    """SIGUSR1: tell the agent that the node is taken away soon."""
    with contextlib.suppress(OSError):
        (folder / "task" / "notice.txt").write_text(
            "The time on this machine is nearly over. What lies in the output folder then counts.\n"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
