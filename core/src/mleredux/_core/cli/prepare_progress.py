"""Progress of tasks that are being prepared: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time

from rich import progress as bars
from rich.console import Console, RenderableType
from rich.text import Text

from mleredux._core.data.progress import Step
from mleredux.models.formats import size

_PLAIN_SECONDS = 10.0
"""Seconds between progress lines on plain output."""


class PreparingDisplay:
    """Shows a bar or plain lines for each task that is being prepared. Errors are shown even if `quiet`.

    Args:
        quiet: Whether to show errors only (`--json`).
    """

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, highlight=False, soft_wrap=True)
        self._quiet = quiet
        self._lock = threading.Lock()
        self._bars: dict[str, bars.TaskID] = {}
        self._stages: dict[str, str] = {}
        self._lines: dict[str, tuple[float, int]] = {}
        self._progress: bars.Progress | None = None
        if self._console.is_terminal and not quiet:
            self._progress = bars.Progress(
                bars.SpinnerColumn(),
                bars.TextColumn("[bold]{task.description}", markup=True),
                bars.TextColumn("{task.fields[stage]}", markup=False),
                _WhereCounted(bars.BarColumn(bar_width=24)),
                _WhereCounted(bars.DownloadColumn()),
                _WhereCounted(bars.TransferSpeedColumn()),
                console=self._console,
                transient=True,
            )

    def __enter__(self) -> PreparingDisplay:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Restore the terminal."""
        if self._progress:
            self._progress.stop()

    def note(self, task: str, message: str) -> None:
        """Show that a stage has started."""
        self.show(task, Step(message))

    def show(self, task: str, step: Step) -> None:
        """Show the progress of a task."""
        with self._lock:
            if step.lasting:
                self._print(task, step.stage)
                return
            if self._progress:
                self._move(self._progress, task, step)
            elif not self._quiet:
                self._line(task, step)
            self._stages[task] = step.stage

    def end(self, task: str, message: str, *, ok: bool = True) -> None:
        """Show that a task is done or has failed."""
        with self._lock:
            if self._progress and (bar := self._bars.pop(task, None)) is not None:
                self._progress.remove_task(bar)
            self._print(task, message, always=not ok)

    def _print(self, task: str, message: str, *, always: bool = False) -> None:
        if always or not self._quiet:
            self._console.print(Text(f"{task}: {message}"))

    def _move(self, progress: bars.Progress, task: str, step: Step) -> None:
        if task not in self._bars:
            self._bars[task] = progress.add_task(task, total=None, stage=step.stage, counted=False)
        bar = self._bars[task]
        if self._stages.get(task) != step.stage:
            progress.reset(bar)
        progress.update(
            bar, completed=step.done or 0, total=step.total, stage=step.stage, counted=step.done is not None
        )

    def _line(self, task: str, step: Step) -> None:
        now, done = time.monotonic(), step.done or 0
        if self._stages.get(task) != step.stage:
            self._lines[task] = now, done
            self._print(task, step.stage)
            return
        since, before = self._lines[task]
        if step.done is not None and now - since >= _PLAIN_SECONDS:
            self._lines[task] = now, done
            of = f" of {size(step.total)}" if step.total else ""
            self._print(task, f"{step.stage}: {size(done)}{of}, {size((done - before) / (now - since))}/s")


class _WhereCounted(bars.ProgressColumn):
    """A column that is empty while no bytes are counted."""

    def __init__(self, column: bars.ProgressColumn) -> None:
        super().__init__()
        self._column = column

    def render(self, task: bars.Task) -> RenderableType:
        return self._column.render(task) if task.fields["counted"] else Text()
