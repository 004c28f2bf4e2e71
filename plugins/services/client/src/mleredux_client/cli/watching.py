"""Wait for runs on a server, with the same display as for local ones."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
from mleredux.errors import MlereduxError

from mleredux_client.answers import log_text_of
from mleredux_client.cli.records import words_of
from mleredux_client.cli.service import Service
from mleredux_client.errors import MlereduxApiError, NotFound, TooManyRequests, Unavailable
from mleredux_client.models.run import FINAL

if TYPE_CHECKING:
    from mleredux.plugin.command import Progress

PATIENCE = 600.0
"""Seconds that a server may be unavailable before watching stops; its runs continue."""
_SOON, _LATER, _GRACE = 0.5, 2.0, 15.0
MOST_LOGS = 16


class Watch:
    """Waits for runs until all have ended.

    Args:
        there: The server.
        runs: The runs, from the response to their creation.
        experiment: Id of their experiment, if any; in that case, one request returns all of them.
        progress: Displays the runs; already started.
    """

    def __init__(self, remote: Service, runs: list[dict[str, Any]], experiment: str | None, progress: Progress) -> None:
        self._there, self._experiment, self._progress = remote, experiment, progress
        self.runs = {run["id"]: run for run in runs}
        self._cancel = threading.Event()
        for run in runs:
            progress.add(run["id"], run["task"], run["agent"], seed=run["seed"])
            progress.update(run["id"], words_of(run))
        if progress.following:
            for run_id in list(self.runs)[:MOST_LOGS]:
                progress.in_background(partial(self._follow, run_id))

    def request_cancel(self) -> None:
        """Make `wait` cancel the runs before it continues. Doing more would not be safe in a signal handler."""
        self._cancel.set()

    def wait(self) -> list[dict[str, Any]]:
        """Wait for the runs to end, and return them with their reports.

        Raises:
            MlereduxError: The server is unavailable for too long.
        """
        began = seen = time.monotonic()
        cancelling = False
        while True:
            try:
                if self._cancel.is_set() and not cancelling:
                    click.echo("Asking the server to cancel; press Ctrl-C again to stop watching.", err=True)
                    self._there.cancel(self.runs.values(), self._experiment)
                    cancelling = True
                self._update()
                if all(run["status"] in FINAL for run in self.runs.values()):
                    # Lists of runs omit their reports.
                    return [run if "report" in run else self._get(run_id) for run_id, run in self.runs.items()]
                seen = time.monotonic()
            except (Unavailable, TooManyRequests) as error:
                if time.monotonic() - seen > PATIENCE:
                    raise MlereduxError(
                        f"{error.detail} Stopped watching after {PATIENCE / 60:.0f} minutes.",
                        hint="The runs continue on the server; see `mleredux runs`.",
                    ) from error
                for run_id, run in self.runs.items():
                    if run["status"] not in FINAL:
                        self._progress.update(run_id, "the server does not respond; trying again")
            pause = _SOON if time.monotonic() - began < _GRACE else _LATER
            if cancelling:
                time.sleep(pause)
            else:
                self._cancel.wait(pause)

    def _update(self) -> None:
        if self._experiment is not None:
            records = self._there.get(f"/v1/experiments/{self._experiment}")["runs"]
            for run_id in self.runs.keys() - {run["id"] for run in records}:
                self._get(run_id)  # raises if it was deleted
        else:
            records = [self._get(run_id) for run_id in self.runs]
        for run in records:
            if run["id"] in self.runs:
                self.runs[run["id"]] = run
                self._progress.update(run["id"], words_of(run), ended=run["status"] in FINAL)

    def _get(self, run_id: str) -> dict[str, Any]:
        run: dict[str, Any] = self._there.get(f"/v1/runs/{run_id}")
        return run

    def _follow(self, run_id: str) -> None:
        """Copy a log to stderr as it grows."""
        from mleredux.plugin.command import write_log

        several = len(self.runs) > 1
        prefix = f"{self.runs[run_id]['task']} | " if several else ""
        try:
            for text in log_texts(self._there, run_id, "agent.log", self._progress.stop):
                write_log(text.encode(), prefix)
        except MlereduxApiError as error:
            write_log(f"The log of {run_id} can no longer be followed. {error}\n".encode(), prefix)


def log_texts(remote: Service, run_id: str, name: str, stop: threading.Event | None = None) -> Iterator[str]:
    """Yield the text of a log as it grows, until the run has ended.

    Raises:
        NotFound: The run has ended without such a log.
    """
    path = f"/v1/runs/{run_id}/logs/{name}"
    while stop is None or not stop.is_set():
        ended = remote.get(f"/v1/runs/{run_id}")["status"] in FINAL
        try:
            yield from map(log_text_of, remote.events(path))
            return
        except NotFound:  # the log begins when the agent starts
            if ended:
                raise
        if stop is None:
            time.sleep(_LATER)
        else:
            stop.wait(_LATER)


@contextmanager
def interruptible(first: Callable[[], None] | None) -> Iterator[None]:
    """Make SIGTERM the same as Ctrl-C: both raise `KeyboardInterrupt`.

    Args:
        first: Called instead for the first signal; as it runs in the signal handler, it must do next to nothing.
    """
    interrupted = False

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted or first is None:
            raise KeyboardInterrupt
        interrupted = True
        first()

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler or signal.SIG_DFL)
