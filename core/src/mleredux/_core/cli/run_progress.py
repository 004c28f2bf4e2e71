"""Progress of runs while they are executed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from mleredux._core.cli.output import cut, safe
from mleredux._core.cli.run_table import STYLES
from mleredux.models.events import StateEntered, SubmissionKept, Validation
from mleredux.models.formats import duration, number, short_reference

if TYPE_CHECKING:
    from rich.console import Console, Group

    from mleredux._core.store import Run
    from mleredux.models import Event

_REFRESH = 4
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WIDE = 100
"""Minimum width of a terminal that shows the state of the submission in a separate column."""
_YIELDING = ("task", "agent", "state")
"""Columns that are shortened if there is no room."""
_LEAST = 6
_AROUND = 4
"""Lines of the terminal to leave free around the rows."""


@dataclass
class _Shown:
    """The displayed state of a run; times use the clock of the progress display."""

    task: str
    agent: str
    seed: int
    limit: float
    message: str = "queued"
    submission: str = ""
    since: float | None = None
    ended: float | None = None

    @property
    def rank(self) -> int:
        """Sort key: active runs come first, then waiting runs, then those that have ended."""
        return 2 if self.ended is not None else 1 if self.message == "queued" else 0


class Progress:
    """A live table of runs on a terminal, plain lines elsewhere, nothing if `quiet`.

    Args:
        follow: Whether to show agents' logs as they grow.
        quiet: Whether to print nothing (`--json`); with `follow`, logs go to stderr.
        console: The console to print to; None: stderr.
        clock: Returns the current time in seconds.

    Attributes:
        jobs: The number of runs that execute at the same time.
    """

    def __init__(
        self, *, follow: bool, quiet: bool, console: Console | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.following, self._quiet, self._clock = follow, quiet, clock
        self._runs: dict[str, _Shown] = {}
        self.jobs, self._start = 1, clock()
        self._live = None
        if not quiet:  # importing rich takes longer than a run
            from rich.console import Console
            from rich.live import Live

            self._console = console or Console(stderr=True)
            if self._console.is_terminal and not follow:
                self._live = Live(self, console=self._console, refresh_per_second=_REFRESH, transient=True)
        self.stop = threading.Event()
        self._followers: list[threading.Thread] = []

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop.set()
        for follower in self._followers:
            follower.join(timeout=5)
        if self._live:
            self._live.stop()

    def add(self, run_id: str, task: str, agent: str, *, seed: int = 0, limit: float = 0.0) -> None:
        """Add a run to the display.

        Args:
            run_id: Id of the run.
            task: Id of its task.
            agent: Id of its agent.
            seed: The seed of the run.
            limit: The agent's time limit in seconds; 0 if unknown.
        """
        shown = _Shown(safe(task), safe(short_reference(agent)), seed, limit)
        others = [(other.task, other.agent, other.seed) for other in self._runs.values()]
        if (shown.task, shown.agent, seed) in others:
            shown.agent = f"{shown.agent} ({run_id[-6:]})"  # another version, or other options
        self._runs[run_id] = shown

    def update(self, run_id: str, message: str, *, ended: bool = False) -> None:
        """Update the progress of a displayed run."""
        run, now = self._runs[run_id], self._clock()
        run.since = now if run.since is None else run.since
        if ended and run.ended is None:
            run.ended = now
        message = safe(message)
        changed, run.message = run.message != message, message
        if changed and not self._live and not self._quiet:
            from rich.text import Text

            seed = f" · seed {run.seed}" if self._several("seed") else ""
            line = f"{now - run.since:6.1f}s"
            text = f" {run.task} · {run.agent}{seed} · {message}"
            self._console.print(Text.assemble((line, "dim"), text), soft_wrap=True)

    tell = update
    """The former name of `update`, until 0.4."""

    def submitted(self, run_id: str, state: str) -> None:
        """Update the state of a displayed run's submission: `v3 valid`, later its score."""
        self._runs[run_id].submission = safe(state)

    def in_background(self, work: Callable[[], None]) -> None:
        """Start background work that continues until `stop` is set and is joined at the end."""
        follower = threading.Thread(target=work, daemon=True)
        follower.start()
        self._followers.append(follower)

    def __rich__(self) -> Group:
        """Render the live table: a summary line, and as many rows of runs as there is room for."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        runs, now = list(self._runs.values()), self._clock()
        room = max(3, self._console.height - _AROUND)
        rows = sorted(runs, key=lambda run: (run.rank, -(run.ended or 0)))
        wide, seeds = self._console.width >= _WIDE, self._several("seed")
        cells = [self._cells(run, now, wide, seeds) for run in rows[:room]]
        widths = {name: max(len(name), *(len(row[name]) for row in cells)) for name in cells[0]} if cells else {}
        while sum(widths.values()) + 2 * len(widths) + 1 > self._console.width:
            widest = max(_YIELDING, key=widths.__getitem__)
            if widths[widest] <= _LEAST:
                break
            widths[widest] -= 1
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim", show_header=len(runs) > 1)
        table.add_column("", width=1)
        for name, width in widths.items():
            table.add_column(
                name, width=width, no_wrap=True, overflow="ellipsis", style={"task": "bold", "time": "dim"}.get(name)
            )
        for run, row in zip(rows, cells, strict=False):
            state = STYLES.get(run.message, "")
            table.add_row(
                _SPINNER[int(now * 8) % 10] if not run.rank else " ",
                *(
                    Text(row[name], style=state) if name == "state" else Text(cut(row[name], width))
                    for name, width in widths.items()
                ),
            )
        lines: list[Table | Text] = [table]
        if len(runs) > 1:
            lines.insert(0, Text(self._summary(runs, now), style="dim", no_wrap=True, overflow="ellipsis"))
        if hidden := Counter(run.message if run.rank else "running" for run in rows[room:]):
            lines.append(Text("… " + ", ".join(f"{count} {state}" for state, count in hidden.items()), style="dim"))
        return Group(*lines)

    @staticmethod
    def _cells(run: _Shown, now: float, wide: bool, seeds: bool) -> dict[str, str]:
        """Return the texts of a row; on narrow terminals, the submission's state replaces the run's state."""
        until = now if run.ended is None else run.ended
        merged = run.submission and run.message in ("done", "running the agent")
        return {
            "task": run.task,
            "agent": run.agent,
            **({"seed": str(run.seed)} if seeds else {}),
            "state": run.submission if merged and not wide else run.message,
            **({"submission": run.submission} if wide else {}),
            "time": duration(until - run.since) if run.since is not None else "",
        }

    def _summary(self, runs: list[_Shown], now: float) -> str:
        """Return a line such as `3 of 12 done · 2 running · 3 min 12 s · ~9 min left`."""
        ended = [run.ended - run.since for run in runs if run.ended is not None and run.since is not None]
        working = sum(not run.rank for run in runs)
        parts = [
            f"{sum(run.rank == 2 for run in runs)} of {len(runs)} done",
            f"{working} running",
            duration(now - self._start),
        ]
        left = [run for run in runs if run.ended is None]
        usual = sum(ended) / len(ended) if ended else 0.0
        each = [max(0.0, (usual or run.limit) - (now - run.since if run.since is not None else 0.0)) for run in left]
        if left and all(usual or run.limit for run in left):
            rest = max(sum(each) / max(1, min(self.jobs, len(left))), max(each))
            parts.append(f"{'~' if usual else 'at most '}{duration(rest)} left")
        return " · ".join(parts)

    def _several(self, name: str) -> bool:
        return len({getattr(run, name) for run in self._runs.values()}) > 1


def show_submission(progress: Progress, run: Run, event: Event) -> None:
    """Show the current version of the submission, whether it is valid, and at the end its score."""
    payload = event.payload
    if isinstance(payload, SubmissionKept):
        progress.submitted(run.id, f"v{payload.number}")
    elif isinstance(payload, Validation):
        version = len(run.submissions())
        progress.submitted(run.id, f"{f'v{version} ' if version else ''}{'valid' if payload.valid else 'not valid'}")
    elif isinstance(payload, StateEntered) and payload.state.final and (report := run.report):
        medal = f" {report.medal}" if report.medal else ""
        progress.submitted(run.id, f"{number(report.score)}{medal}" if report.valid_submission else "not valid")
