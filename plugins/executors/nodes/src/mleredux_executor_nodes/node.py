"""The program that an executor starts on a node: it executes one run to its end, and publishes it continuously.

It may be restarted at any time. After a restart, writes of earlier starts are rejected; a start with a replaced ticket
does nothing.

The run is in a directory shared by both machines, or in an object store: the node then works in its own folder, which
it publishes.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any, TypeVar

from mleredux.errors import MlereduxError, ResumeRefused, StoreError
from mleredux.plugin.artifact import Run, RunStore
from mleredux.plugin.executor import ObjectStore
from mleredux.plugin.files import cache_dir
from mleredux.plugin.host import provide_secrets, read_ticket

from mleredux_executor_nodes.lease import Lease, new_fence, revoke_lease
from mleredux_executor_nodes.replica import Replica

_EVERY = 2.0
_SHARE = 10
"""Publishing takes at most 1 / `_SHARE` of the time."""
_LONGEST = 20.0
_PATIENCE = 3600.0
_SHORT_PATIENCE = 20.0
_Result = TypeVar("_Result")


class Publication:
    """Publishes a run whenever its directory changes, and once more at the end.

    Args:
        replica: The claimed run.
        folder: The run's directory.
    """

    def __init__(self, replica: Replica, folder: Path) -> None:
        self._replica, self._folder = replica, folder
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="publication", daemon=True)

    def __enter__(self) -> Publication:
        self._thread.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _at: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        with contextlib.suppress(ResumeRefused):
            patience = _SHORT_PATIENCE if isinstance(error, SystemExit) else _PATIENCE
            _until_answered(lambda: self._replica.push(all_again=True), patience)

    def _work(self) -> None:
        pause = _EVERY
        while not self._end.wait(pause):
            began = time.monotonic()
            try:
                self._replica.push()
            except ResumeRefused as error:
                print(error, file=sys.stderr)
                new_fence(self._folder)  # the lease is lost: nothing more is written
                return
            except (StoreError, OSError) as error:  # the run continues; it is published when the store responds
                print(error, file=sys.stderr)
            pause = min(max(_EVERY, _SHARE * (time.monotonic() - began)), _LONGEST)
            with contextlib.suppress(OSError):
                sys.stderr.flush()


def _until_answered(request: Callable[[], _Result], patience: float = _PATIENCE) -> _Result:
    """Repeat a request to the object store for some seconds, until it responds."""
    end = time.monotonic() + patience
    while True:
        try:
            return request()
        except StoreError as problem:
            print(problem, file=sys.stderr)
            if time.monotonic() > end:
                raise
            time.sleep(_EVERY)


LOG_FILE = "worker.log"
NODE_VARIABLE = "MLEREDUX_NODE_DIR"


def node_dir() -> Path:
    """Return the folder for runs and data from an object store: `MLEREDUX_NODE_DIR`, or one in the user's cache."""
    return Path(os.environ.get(NODE_VARIABLE) or cache_dir() / "node").absolute()


def main(
    folder: Path,
    nonce: str,
    borrow: Callable[[Path, str], tuple[Mapping[str, str], Iterable[str]]] = lambda _folder, _nonce: ({}, ()),
) -> None:
    """Execute the run in a folder, if its ticket has this nonce.

    Args:
        folder: The run's directory.
        nonce: The ticket's nonce.
        borrow: Returns secrets by name, and other values to mask, for the folder and the nonce; may block.
    """
    ticket = read_ticket(folder)
    if ticket.get("nonce") != nonce:
        return
    _prepare(folder)
    loan = borrow(folder, nonce)
    if read_ticket(folder).get("nonce") == nonce:
        _execute(folder, ticket, loan=loan)


def main_from(url: str, run_id: str, nonce: str) -> None:
    """Execute a run of an object store.

    Raises:
        StoreError: The object store can't be opened, or does not respond.
    """
    from mleredux.plugin.command import Catalogue
    from mleredux.plugin.files import remove_tree

    from mleredux_executor_nodes.objects import open_store

    home = node_dir()
    folder = home / "runs" / run_id
    objects = open_store(Catalogue(), url)
    for name in objects.variables:
        os.environ.pop(name, None)
    replica = Replica(objects, run_id, folder)
    if not _until_answered(lambda: replica.claim(nonce)):
        return
    if folder.exists():
        revoke_lease(folder)
    if not replica.current:
        _sweep(folder)
        remove_tree(folder)
    _until_answered(replica.update)
    _prepare(folder)
    _execute(folder, replica.ticket, Source(objects, replica, home / "data"))
    if RunStore(folder.parent).get(run_id).state.final:
        remove_tree(folder)


@dataclass(frozen=True)
class Source:
    """The source of a run and its data: an object store, the run there, and the local folder of staged data."""

    objects: ObjectStore
    replica: Replica
    home: Path

    def stage(self, run: Run, name: str | None) -> Path:
        """Return the directory of a run's data; without published data, a directory to prepare it in."""
        from mleredux_executor_nodes.shelf import stage

        if name is None:
            return self.home / "own"
        return _until_answered(lambda: stage(self.objects, name, run.spec.task, self.home)[0])


def _sweep(folder: Path) -> None:
    """Clean up sandboxes on this node after an older attempt at a run that has since moved elsewhere."""
    from mleredux.plugin.command import Catalogue

    with contextlib.suppress(MlereduxError):
        store, run = RunStore(folder.parent), Run(folder)
        for _ in Catalogue().sandbox(run.spec.sandbox).sweep(store.owner, lambda run_id: run_id != run.id):
            continue


def _prepare(folder: Path) -> None:
    """Redirect this process's output to the run's directory, and handle signals."""
    log = os.open(folder / "logs" / LOG_FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    signal.signal(signal.SIGTERM, _leave)
    signal.signal(signal.SIGUSR1, lambda _number, _frame: _notice(folder))


def _execute(
    folder: Path,
    ticket: dict[str, Any],
    source: Source | None = None,
    loan: tuple[Mapping[str, str], Iterable[str]] = ({}, ()),
) -> None:
    from mleredux.plugin.command import Catalogue, DataStore
    from mleredux.plugin.host import Pipeline, Slots, set_current

    catalogue = Catalogue(block=ticket["block"], load=ticket["load"])
    set_current(catalogue)
    store = RunStore(folder.parent)
    run = store.get(folder.name)
    with contextlib.ExitStack() as stack:
        stack.enter_context(provide_secrets(*loan))
        lease = stack.enter_context(Lease(folder, revoke_lease(folder)))
        run.guard(lease.check)
        data = Path(run.spec.data_dir)
        if source is not None:
            stack.enter_context(Publication(source.replica, folder))
            data = source.stage(run, ticket["data"])
        slots = None
        if ticket["allocates"]:
            private = stack.enter_context(tempfile.TemporaryDirectory(prefix="mleredux-slots-"))
            slots = Slots(Path(private))  # only what the engine assigned to this job
        pipeline = Pipeline(
            store,
            catalogue,
            DataStore(data),
            base_image=ticket["base_image"],
            smoke=ticket["smoke"],
            cancelled=lease.lost,
        )
        pipeline.warm_up()
        pipeline.execute_run(run, slots)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """Handle SIGTERM: stop the agent and leave the run as it is, to continue at the next start."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(143)


def _notice(folder: Path) -> None:
    """Handle SIGUSR1: notify the agent that the node will soon be taken away."""
    with contextlib.suppress(OSError):
        (folder / "task" / "notice.txt").write_text(
            "Time on this machine is nearly up. After that, the files in the output folder count.\n"
        )


if __name__ == "__main__":
    if len(sys.argv) == 4:
        main_from(*sys.argv[1:])
    else:
        main(Path(sys.argv[1]), sys.argv[2])
