"""`mleredux run --watch`: run an agent again when its files change, and show what differs from the previous run."""

from __future__ import annotations

import contextlib
import difflib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Protocol

import click
from mleredux.errors import MlereduxError
from mleredux.models.events import BuildEnded
from mleredux.models.formats import counted, duration, number, short_reference
from mleredux.plugin.agent import split_place
from mleredux.plugin.artifact import RunStore
from mleredux.plugin.command import (
    Backend,
    Catalogue,
    Progress,
    RunRequest,
    RunView,
    catalogue,
    echo,
    print_results,
    safe,
)
from mleredux.plugin.experiment import agent_reference
from mleredux.plugin.sandbox import Discarding
from rich.console import Console
from rich.text import Text

from mleredux_agent_repo import SCHEME

_POLL_SECONDS, _SETTLE_SECONDS = 0.2, 0.1
_LEFT_OUT = frozenset({"venv", "node_modules", "__pycache__"})
_MOST_TEXT = 256 << 10
_MOST_LINES = {"code": 40, "log": 12}

Stamps = dict[Path, tuple[int, int]]


@dataclass(frozen=True)
class Watched:
    """Files of agents on this machine.

    Attributes:
        places: Scripts and folders.
        left_out: Folders to skip because they are written while agents run.
    """

    places: tuple[Path, ...]
    left_out: frozenset[Path]

    @classmethod
    def of(cls, plugins: Catalogue, agents: Iterable[str], left_out: Iterable[Path]) -> Watched:
        """Return the files to watch for references of agents.

        Raises:
            click.UsageError: No agent is a script or folder on this machine.
        """
        named = [agent_reference(plugins, name) for name in agents]
        local = [split_place(name.removeprefix(SCHEME))[0] for name in named if name.startswith(SCHEME)]
        places = tuple(path.resolve() for path in (Path(name).expanduser() for name in local) if path.exists())
        if not places:
            raise click.UsageError(
                "--watch requires a script or folder on this machine as the agent, such as --agent ./solve.py."
            )
        return cls(places, frozenset(path.resolve() for path in left_out))

    def stamps(self) -> Stamps:
        """Return modification time and size of each file; hidden files are not watched."""
        stamps: Stamps = {}
        for path in self._files():
            with contextlib.suppress(OSError):
                status = path.stat()
                stamps[path] = status.st_mtime_ns, status.st_size
        return stamps

    def texts(self) -> dict[str, list[str]]:
        """Return the lines of each text file."""
        texts = {}
        top = Path(os.path.commonpath([path if path.is_dir() else path.parent for path in self.places]))
        for path in self._files():
            with contextlib.suppress(OSError, UnicodeDecodeError):
                if path.stat().st_size <= _MOST_TEXT:
                    texts[str(path.relative_to(top))] = path.read_text(encoding="utf-8").splitlines()
        return texts

    def wait(self, before: Stamps) -> None:
        """Wait until a file has changed and no more changes follow."""
        while (now := self.stamps()) == before:
            time.sleep(_POLL_SECONDS)
        while True:
            time.sleep(_SETTLE_SECONDS)
            if (later := self.stamps()) == now:
                return
            now = later

    def _files(self) -> Iterator[Path]:
        for place in self.places:
            if place.is_dir():
                yield from self._below(place)
                continue
            yield place  # also files that are copied with a script
            with contextlib.suppress(OSError):
                for path in sorted(place.parent.iterdir()):
                    if path != place and (path.suffix == ".py" or path.name == "requirements.txt"):
                        yield path
                    elif (path / "__init__.py").is_file():
                        yield from self._below(path)

    def _below(self, folder: Path) -> Iterator[Path]:
        for parent, folders, names in os.walk(folder):
            folders[:] = [
                name
                for name in sorted(folders)
                if name[0] != "." and name not in _LEFT_OUT and Path(parent, name).resolve() not in self.left_out
            ]
            yield from (Path(parent, name) for name in sorted(names) if name[0] != "." and name[-1] != "~")


class Machine(Backend, Protocol):
    """The backend of this machine, which provides more than a server's backend."""

    store: RunStore
    place: str
    folders: Sequence[Path]

    def worked(self, run_id: str) -> float:
        """Return the number of seconds that the agent of a run worked."""
        ...


@click.command("watch")
@click.pass_context
def command(
    ctx: click.Context,
    there: Machine,
    request: RunRequest,
    exit_code: Callable[[dict[str, Any]], int],
    follow: bool,
) -> NoReturn:
    """Run a request again each time its agents' files change, until Ctrl-C; all runs are kept.

    Args:
        exit_code: Returns the exit code of the command for a run's record; the last runs decide.
        follow: Whether to show the agents' logs.
    """
    console, plugins = Console(), catalogue(ctx)
    watched = Watched.of(plugins, [arm.agent for arm in request.runs.arms.values()], there.folders)
    code, before, previous = 0, dict[str, list[str]](), list[RunView]()
    shown = ", ".join(os.path.relpath(path) for path in watched.places)
    try:
        while True:
            stamps, texts = watched.stamps(), watched.texts()
            ended = _run(there, request, follow=follow)
            if ended:
                code = max(exit_code(view.record) for view in ended)
                if any(view.record["cause"] == "cancelled" for view in ended):
                    break
                print_results(ended)
                _show(console, there, ended, previous, before, texts)
                _discard(there, plugins, previous, ended)
                before, previous = texts, ended
            console.print(Text(f"Watching {safe(shown)}; Ctrl-C stops it.", style="dim"))
            watched.wait(stamps)
            plugins.forget_references()
            console.rule(Text(safe(_changed(before or texts, watched.texts())), style="dim"))
    except KeyboardInterrupt:
        pass
    console.print(f"Stopped watching; all runs are {there.place}.")
    ctx.exit(code)


def _run(there: Machine, request: RunRequest, *, follow: bool) -> list[RunView]:
    """Run a request; return its runs, or print the reason and return none if the agent currently can't be run."""
    try:
        batch = there.create(request)
        with Progress(follow=follow, quiet=False) as progress:
            return there.finish(batch, progress) or []
    except MlereduxError as error:
        echo(f"Error: {error}", err=True)
        return []


def _discard(there: Machine, plugins: Catalogue, previous: Sequence[RunView], ended: Sequence[RunView]) -> None:
    """Remove images that were built only for the previous runs."""
    needed = {there.store.get(view.record["id"]).use.image for view in ended}
    for view in previous:
        run, sandbox = there.store.get(view.record["id"]), plugins.sandbox(view.record["sandbox"])
        built = next((event.payload for event in run.events() if isinstance(event.payload, BuildEnded)), None)
        if built is None or built.cached or built.image is None or built.image in needed:
            continue
        if isinstance(sandbox, Discarding):
            sandbox.discard(built.image)


def _changed(before: dict[str, list[str]], now: dict[str, list[str]]) -> str:
    names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if not names:
        return "touched"
    return f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if len(names) > 3 else ''} changed"


def _show(
    console: Console,
    there: Machine,
    ended: Sequence[RunView],
    previous: Sequence[RunView],
    before: dict[str, list[str]],
    texts: dict[str, list[str]],
) -> None:
    """Print differences from the previous runs."""
    if not previous:
        return
    several = len(ended) > 1
    for old, new in zip(previous, ended, strict=True):
        name = f"{new.task} · {short_reference(new.agent)} · seed {new.record['seed']}: " if several else ""
        console.print(Text(safe(f"{name}score {_scores(old, new)} · time {_times(there, old, new)}"), style="bold"))
    _lines(console, "code", _differences(before, texts))
    for old, new in zip(previous, ended, strict=True):
        logs = [_log(there, view) for view in (old, new)]
        _lines(console, "log", _difference(*logs), of=f" of {new.task}" if several else "")


def _scores(old: RunView, new: RunView) -> str:
    was, now = (view.report.score if view.report else None for view in (old, new))
    change = f"{number(was)} → {number(now)}"
    if was is None or now is None or new.report is None:
        return change
    if was == now:
        return f"{change} (same)"
    better = (now < was) == new.report.is_lower_better
    return f"{change} ({'+' if now > was else '−'}{number(abs(now - was))}, {'better' if better else 'worse'})"


def _times(there: Machine, old: RunView, new: RunView) -> str:
    return " → ".join(duration(there.worked(view.record["id"])) for view in (old, new))


def _log(there: Machine, view: RunView) -> list[str]:
    with contextlib.suppress(MlereduxError, OSError):
        return b"".join(there.log(view.record["id"], build=False, follow=False)).decode(errors="replace").splitlines()
    return []


def _differences(before: dict[str, list[str]], now: dict[str, list[str]]) -> list[str]:
    lines = []
    for name in sorted({*before, *now}):
        if change := _difference(before.get(name, []), now.get(name, [])):
            lines += [name, *change]
    return lines


def _difference(before: list[str], now: list[str]) -> list[str]:
    lines = difflib.unified_diff(before[-5000:], now[-5000:], lineterm="", n=0)
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def _lines(console: Console, kind: str, lines: list[str], *, of: str = "") -> None:
    if not lines:
        return
    console.print(Text(f"{kind}{safe(of)}", style="bold"))
    for line in lines[: _MOST_LINES[kind]]:
        style = {"+": "green", "-": "red"}.get(line[:1], "dim")
        console.print(Text(f"  {safe(line)}", style=style), overflow="ellipsis", no_wrap=True)
    if (omitted := len(lines) - _MOST_LINES[kind]) > 0:
        console.print(Text(f"  … {counted(omitted, 'more line')}", style="dim"))
