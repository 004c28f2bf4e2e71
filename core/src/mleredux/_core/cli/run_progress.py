"""Progress of runs while they are executed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mleredux._core.cli.output import safe
from mleredux._core.cli.run_table import STYLES
from mleredux._core.formats import duration, short_agent

_REFRESH = 4


class Progress:
    """A live table of runs on a terminal, plain lines elsewhere, nothing where `quiet`.

    Args:
        follow: Show agents' logs as they grow.
        quiet: Print nothing (`--json`); with `follow`, logs go to stderr.
    """

    def __init__(self, *, follow: bool, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self.following, self._quiet = follow, quiet
        self._names: dict[str, tuple[str, str]] = {}
        self._messages: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        live = self._console.is_terminal and not quiet and not follow
        self._live = Live(self, console=self._console, refresh_per_second=_REFRESH, transient=True) if live else None
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

    def add(self, run_id: str, task: str, agent: str) -> None:
        """Show a run."""
        self._names[run_id] = safe(task), safe(short_agent(agent))

    def tell(self, run_id: str, message: str, *, ended: bool = False) -> None:
        """The current progress of a displayed run."""
        now = time.monotonic()
        self._since.setdefault(run_id, now)
        if ended:
            self._ended.setdefault(run_id, now)
        message = safe(message)
        changed = self._messages.get(run_id) != message
        self._messages[run_id] = message
        if changed and not self._live and not self._quiet:
            task, agent = self._names[run_id]
            line = f"{now - self._since[run_id]:6.1f}s"
            self._console.print(Text.assemble((line, "dim"), f" {task} · {agent} · {message}"), soft_wrap=True)

    def in_background(self, work: Callable[[], None]) -> None:
        """Start work that continues until `stop` is set and is joined at the end."""
        follower = threading.Thread(target=work, daemon=True)
        follower.start()
        self._followers.append(follower)

    def __rich__(self) -> Table:
        """The live table."""
        table = Table.grid(padding=(0, 2))
        for run_id, (task, agent) in list(self._names.items()):
            message = self._messages.get(run_id, "queued")
            until = self._ended.get(run_id, time.monotonic())
            seconds = until - self._since.get(run_id, until)
            spinner = " " if run_id in self._ended else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(time.monotonic() * 8) % 10]
            table.add_row(
                spinner,
                Text(task, style="bold"),
                Text(agent),
                Text(message, style=STYLES.get(message, "")),
                Text(duration(seconds), style="dim"),
            )
        return table
