"""What people see of runs while they go on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mleredux._core.cli.output import safe
from mleredux._core.cli.summary import STYLES
from mleredux._core.models import State
from mleredux._core.store import Run

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop.set()
        for follower in self._followers:
            follower.join(timeout=5)
        if self._live:
            self._live.stop()

    def add(self, run_id: str, task: str, agent: str) -> None:
        """Show a run."""
        self._names[run_id] = safe(task), safe(agent)

    def tell(self, run_id: str, message: str, *, ended: bool = False) -> None:
        """What is going on in a run that is shown."""
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
        """Start work that goes on until `stop` is set, and is waited for at the end."""
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
                Text(f"{seconds:.0f} s", style="dim"),
            )
        return table


class RunProgress(Progress):
    """Runs of this machine, by what their pipeline says."""

    def start(self, runs: list[Run]) -> None:
        """Show these runs."""
        for run in runs:
            self.add(run.id, run.spec.task, run.spec.agent)
        if self.following:
            for run in runs:
                self.in_background(partial(self._copy_log, run, len(runs) > 1))

    def say(self, run: Run, message: str) -> None:
        """What is going on in a run."""
        self.tell(run.id, message, ended=message in set(State))

    def _copy_log(self, run: Run, several: bool) -> None:
        """Copy a log to the terminal as it grows."""
        position = 0
        while True:
            last = self.stop.is_set()
            try:
                with run.agent_log.open("rb") as file:
                    if file.seek(0, 2) < position:
                        position = 0  # a fresh start after an interrupted attempt
                    file.seek(position)
                    while block := file.read(1 << 16):
                        position += len(block)
                        write_log(block, f"{run.spec.task} | " if several else "")
            except FileNotFoundError:
                pass
            if last:
                return
            self.stop.wait(0.1)


def printable(block: bytes) -> str:
    """Log bytes as text that can't drive a terminal: control characters, and all that is no UTF-8, as escapes."""
    text = block.decode("utf-8", "backslashreplace")
    return "".join(char if char in "\n\t" or char.isprintable() else _escape(char) for char in text)


def write_log(block: bytes, prefix: str = "") -> None:
    """Write log bytes to stderr."""
    safe = printable(block)
    if prefix:
        safe = "".join(prefix + line for line in safe.splitlines(keepends=True))
    sys.stderr.write(safe)
    sys.stderr.flush()


def _escape(char: str) -> str:
    return "\n" if char == "\r" else char.encode("unicode_escape").decode()


def make_progress(*, follow: bool, quiet: bool) -> RunProgress:
    """Progress for `mleredux run`."""
    return RunProgress(follow=follow, quiet=quiet)
