"""What people see of runs while they go on, and the table at the end."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from mleredux.models import Report, State
from mleredux.store import Run

_STYLES = {"done": "green", "failed": "red", "timed_out": "yellow", "cancelled": "yellow"}
_REFRESH = 4


class RunProgress:
    """A live table of runs on a terminal, plain lines elsewhere, nothing where `quiet`.

    Args:
        follow: Show agents' logs as they grow.
        quiet: Print nothing (`--json`); with `follow`, logs go to stderr.
    """

    def __init__(self, *, follow: bool, quiet: bool) -> None:
        self._console = Console(stderr=True)
        self._follow, self._quiet = follow, quiet
        self._runs: list[Run] = []
        self._messages: dict[str, str] = {}
        self._since: dict[str, float] = {}
        self._ended: dict[str, float] = {}
        live = self._console.is_terminal and not quiet and not follow
        self._live = Live(self, console=self._console, refresh_per_second=_REFRESH, transient=True) if live else None
        self._stop = threading.Event()
        self._followers: list[threading.Thread] = []

    def __enter__(self) -> RunProgress:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for follower in self._followers:
            follower.join(timeout=5)
        if self._live:
            self._live.stop()

    def start(self, runs: list[Run]) -> None:
        """Show these runs."""
        self._runs = runs
        if self._follow:
            for run in runs:
                thread = threading.Thread(target=self._copy_log, args=(run, len(runs) > 1), daemon=True)
                thread.start()
                self._followers.append(thread)

    def say(self, run: Run, message: str) -> None:
        """What is going on in a run."""
        now = time.monotonic()
        self._since.setdefault(run.id, now)
        if message in set(State):
            self._ended[run.id] = now
        changed = self._messages.get(run.id) != message
        self._messages[run.id] = message
        if changed and not self._live and not self._quiet:
            seconds = now - self._since[run.id]
            self._console.print(
                f"[dim]{seconds:6.1f}s[/dim] {run.spec.task} · {run.spec.agent} · {message}", highlight=False
            )

    def __rich__(self) -> Table:
        """The live table."""
        table = Table.grid(padding=(0, 2))
        for run in self._runs:
            message = self._messages.get(run.id, "queued")
            until = self._ended.get(run.id, time.monotonic())
            seconds = until - self._since.get(run.id, until)
            spinner = " " if run.id in self._ended else "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"[int(time.monotonic() * 8) % 10]
            table.add_row(
                spinner,
                Text(run.spec.task, style="bold"),
                Text(run.spec.agent),
                Text(message, style=_STYLES.get(message, "")),
                Text(f"{seconds:.0f} s", style="dim"),
            )
        return table

    def _copy_log(self, run: Run, several: bool) -> None:
        """Copy a log to the terminal as it grows."""
        position = 0
        while True:
            last = self._stop.is_set()
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
            self._stop.wait(0.1)


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


def closing_table(runs: list[Run]) -> None:
    """The table at the end: score, medal, above median, time, where the artifacts are."""
    console = Console()
    if len(runs) == 1:
        table = Table(show_header=False, title=f"{runs[0].spec.agent} on {runs[0].spec.task}", title_style="bold")
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in _facts(runs[0]).items():
            table.add_row(name, value)
    else:
        table = Table(header_style="bold")
        rows = [{"task": run.spec.task, "agent": run.spec.agent, **_facts(run)} for run in runs]
        for name in rows[0]:
            table.add_column(name, overflow="fold", no_wrap=name not in ("artifacts", "report"))
        for row in rows:
            table.add_row(*row.values())
    console.print(table)
    for run in runs:
        report = run.report
        for sentence in filter(None, (run.message, report.message if report else None)):
            console.print(Text(f"{run.spec.task}: {sentence}", style="yellow"))


def _facts(run: Run) -> dict[str, Any]:
    report, state = run.report, str(run.state)
    facts: dict[str, Any] = {"status": Text(state, style=_STYLES.get(state, "")), "score": _score(report)}
    if report is None or report.gold_threshold is not None:  # else nobody was compared with
        facts["medal"] = _medal(report)
        median = "-" if report is None or report.score is None else "yes" if report.above_median else "no"
        facts["above median"] = median
    if report is None or report.percentile is not None:
        facts["percentile"] = "-" if report is None else f"{report.percentile:.0f} %"
    facts |= {"time": _duration(run), "artifacts": Text(_short(run.path))}
    page = run.path / "report.html"
    return {**facts, "report": Text(_short(page))} if page.exists() else facts


def _score(report: Report | None) -> str:
    if report is None or report.score is None:
        return "-"
    return f"{report.score:.5f} ({report.metric})"


def _medal(report: Report | None) -> Any:
    if report is None or report.gold_threshold is None:
        return "-"
    styles = {"gold": "bold yellow", "silver": "bold white", "bronze": "bold dark_orange3"}
    return Text(report.medal, style=styles[report.medal]) if report.medal else "none"


def _duration(run: Run) -> str:
    events = run.events()
    seconds = (events[-1].time - events[0].time).total_seconds()
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _short(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path.resolve())
