"""The thread that uploads active runs; a run only notifies it of events, and waits for it at its end."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError
from mleredux.models.events import StateEntered
from mleredux.models.formats import plain
from mleredux.plugin.tracker import Event, Run

from mleredux_tracker_mlflow.masks import masked_text
from mleredux_tracker_mlflow.settings import Settings, read_settings

if TYPE_CHECKING:
    from mleredux_tracker_mlflow.upload import Present, Sender

_LOG = logging.getLogger("mleredux.mlflow")
_MAX_RUNS = 1000
"""Maximum number of queued runs. Further runs are left to `mleredux runs track`."""
_AFTER_FAILURE = 60.0
_TRIES, _BETWEEN_TRIES = 3, 1.0
_SHORT_WAIT = 2.0
"""Number of seconds that the end of a run waits for an MLflow server known to be down or slow."""


@dataclass
class _Followed:
    """A tracked run; `due` is in seconds of the monotonic clock."""

    path: Path
    settings: Settings
    due: float
    final: bool = False
    warned: bool = False
    sent: threading.Event = field(default_factory=threading.Event)
    present: Present | None = None
    seen: tuple[int, ...] = ()


class Follower:
    """Uploads the runs of this process, in one thread. Everything is read from the runs' directories: the next
    upload includes whatever an earlier one missed, and no events are queued."""

    def __init__(self) -> None:
        self._runs: dict[Path, _Followed] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._senders: dict[str, Sender] = {}
        self._reported: set[str] = set()
        self._trouble = False  # the last attempt failed, or is slow

    def note(self, run: Run, event: Event) -> None:
        """Handle an event of a run. Return immediately or, at the run's end, after the upload or the timeout."""
        state = event.payload.state if isinstance(event.payload, StateEntered) else None
        final = state is not None and state.final
        with self._changed:
            followed = self._followed(run)
            if followed is None:
                return
            now = time.monotonic()
            soon = final or (state is not None and not self._trouble)
            followed.due = min(followed.due, now if soon else now + followed.settings.interval)
            followed.final = followed.final or final
            self._start()
            self._changed.notify()
            limit = min(followed.settings.wait, _SHORT_WAIT) if self._trouble else followed.settings.wait
        if final and not followed.sent.wait(limit):
            with self._changed:
                self._trouble = True
            self._warn(
                followed, f"MLflow at {masked_text(followed.settings.uri)} took longer than {plain(limit)} seconds."
            )

    def _followed(self, run: Run) -> _Followed | None:
        followed = self._runs.get(run.path)
        if followed is None or followed.final:  # a resumed run is tracked again
            try:
                settings = read_settings()
                if len(self._runs) >= _MAX_RUNS:
                    raise MlereduxError("Too many runs are queued.", hint="Run `mleredux runs track` later.")
            except MlereduxError as error:
                if str(error) not in self._reported:
                    self._reported.add(str(error))
                    _LOG.warning("Runs are not sent to MLflow: %s", error)
                return None
            followed = self._runs[run.path] = _Followed(run.path, settings, time.monotonic())
        return followed

    def _start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            # The thread is a daemon, so that a finished program does not wait for an MLflow server that hangs.
            self._thread = threading.Thread(target=self._work, name="mleredux-tracker-mlflow", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            followed = self._next()
            try:
                problem = self._upload_changes(followed)
            except Exception as error:  # errors of MLflow or its store must not affect a run
                problem = f"{type(error).__name__}: {masked_text(str(error))[:300]}"
            with self._changed:
                self._trouble = problem is not None
                if problem and not followed.final:
                    followed.due = time.monotonic() + _AFTER_FAILURE
            if problem:
                self._warn(followed, problem)

    def _next(self) -> _Followed:
        """Wait for the next run that is due; finished runs come first, since their processes wait for the upload."""
        with self._changed:
            while True:
                now = time.monotonic()
                waiting = sorted(self._runs.values(), key=lambda followed: (not followed.final, followed.due))
                ready = next((followed for followed in waiting if followed.due <= now), None)
                if ready is not None:
                    ready.due = now + ready.settings.interval  # later events may reschedule it earlier
                    return ready
                soonest = min((followed.due for followed in waiting), default=None)
                self._changed.wait(None if soonest is None else soonest - now)

    def _upload_changes(self, followed: _Followed) -> str | None:
        """Upload new data of a run; return the error, if any."""
        final = followed.final  # read before the files, so that a run that ends in the meantime is checked again
        try:
            seen = _sizes(followed.path)
            if final or seen != followed.seen:
                self._send(followed, tries=_TRIES if final and not self._trouble else 1)
                followed.seen = seen
            elif not Run(followed.path).alive:
                final = True  # its thread ended without an event
            return None
        except MlereduxError as error:
            return error.message
        finally:
            if final:
                with self._changed:
                    if self._runs.get(followed.path) is followed:
                        del self._runs[followed.path]
                followed.sent.set()

    def _send(self, followed: _Followed, tries: int) -> None:
        """Upload once, or with retries for the final upload, since other runs may lock a store in one file."""
        for left in reversed(range(tries)):
            try:
                followed.present, _ = self._sender(followed.settings).send(Run(followed.path), followed.present)
                return
            except MlereduxError as error:
                followed.present = None  # next time, MLflow is asked which data arrived
                if not left or getattr(error, "silent", False):
                    raise
                time.sleep(_BETWEEN_TRIES)

    def _sender(self, settings: Settings) -> Sender:
        from mleredux_tracker_mlflow.upload import Sender  # the first import of MLflow takes seconds, in this thread

        key = repr(settings)
        if key not in self._senders:
            self._senders[key] = Sender(settings)
        return self._senders[key]

    def _warn(self, followed: _Followed, problem: str) -> None:
        with self._changed:
            if followed.warned:
                return
            followed.warned = True
        remedy = f"`mleredux runs track {followed.path.name}` sends the missing parts."
        _LOG.warning("Run %s is incomplete in MLflow: %s %s", followed.path.name, problem, remedy)


_follower = Follower()


def follow(run: Run, event: Event) -> None:
    """Handle an event of a run while a tracking URI is set."""
    _follower.note(run, event)


def _sizes(path: Path) -> tuple[int, ...]:
    sizes: list[Any] = []
    for name in ("events.jsonl", "logs/resources.csv", "run.json"):
        try:
            sizes.append((path / name).stat().st_size)
        except OSError:
            sizes.append(0)
    return tuple(sizes)
