"""Files of the run and of its agent as shown on the page; reading is safe: no links, no blocking, limited size."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote_from_bytes

from mleredux.models.formats import size
from mleredux.plugin.artifact import Artifact, Run
from mleredux.plugin.files import FoundFile, IntakeLimits, media_type, open_below, readable_path, walk_files

_ESCAPE_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])")
_DECEIVING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff\ud800-\udfff]"
)


@dataclass(frozen=True)
class Excerpt:
    """The first and last bytes of a file.

    Attributes:
        head: The first bytes; the complete file if nothing was omitted.
        tail: The last bytes, if bytes before them were omitted.
        size: Size of the complete file in bytes.
        modified: Unix time of its last modification.
    """

    head: bytes
    tail: bytes
    size: int
    modified: float

    @property
    def left_out(self) -> int:
        """Number of bytes between head and tail."""
        return self.size - len(self.head) - len(self.tail)


def excerpt(root: Path, name: str | bytes, *, head: int, tail: int = 0) -> Excerpt | None:
    """Read the first and last bytes of a regular file under a folder; return None if there is no such file.

    Args:
        root: The folder; neither it nor any folder under it on the path may be a link.
        name: The file's path relative to the folder, with `/`.
        head: Number of bytes from the start.
        tail: Number of bytes from the end. A file of at most `head + tail` bytes is read completely, as head.
    """
    try:
        with open_below(root.parent, f"{root.name}/{os.fsdecode(name)}") as file:
            handle = file.fileno()
            status = os.fstat(handle)
            size = status.st_size
            if size <= head + tail:
                return Excerpt(os.pread(handle, head + tail, 0), b"", size, status.st_mtime)
            return Excerpt(os.pread(handle, head, 0), os.pread(handle, tail, size - tail), size, status.st_mtime)
    except OSError:
        return None


def files_below(root: Path, name: str, limits: IntakeLimits | None = None) -> Iterator[FoundFile]:
    """List all entries under a folder of the run; return none if it, or a parent folder, is a link.

    Args:
        root: The run's folder.
        name: The path relative to the run's folder, with `/`.
        limits: The limits on the listing; None for the intake's defaults.
    """
    place = root
    for part in name.split("/"):
        place = place / part
        if place.is_symlink() or not place.is_dir():
            return iter(())
    return walk_files(place, limits or IntakeLimits())


def text_of(data: bytes) -> str:
    """Decode bytes as text; invalid UTF-8 becomes backslash escapes."""
    return data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")


def terminal_text(data: bytes) -> str:
    """Return a log as a terminal would show it: without color codes, and with progress bars in their last state."""
    lines = []
    for line in _ESCAPE_SEQUENCE.sub("", text_of(data)).split("\n"):
        states = [state for state in line.split("\r") if state.strip()]
        lines.append(states[-1] if states else "")
    return "\n".join(lines)


def visible(text: str) -> str:
    """Return text with control and bidirectional characters escaped, so that they can't mislead readers."""
    return _DECEIVING.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def cut(text: str, limit: int) -> tuple[str, int]:
    """Return the first characters of text, and the number of omitted ones."""
    return (text, 0) if len(text) <= limit else (text[:limit], len(text) - limit)


_MAIN_LOG_BYTES = 96 << 10
_LOG_BYTES = 24 << 10
_LOGS = 8
_ROWS_PER_FOLDER = 250
_FOLDERS = (("submissions", "mleredux"), ("output", "agent"), ("logs", "mleredux"))
_FILES = (
    ("report.json", "mleredux", "Grading report"),
    ("events.jsonl", "mleredux", "Event log"),
    ("run.json", "mleredux", "Request and versions used"),
    ("artifacts.json", "mleredux", "Manifest with hashes"),
)


@dataclass(frozen=True)
class LogView:
    """The end of a log."""

    name: str
    link: str
    size: str
    text: str
    left_out: str
    main: bool


@dataclass(frozen=True)
class ArtifactRow:
    """A file of the run; `reason` states why it is not in the manifest, if it is not."""

    name: str
    link: str
    title: str
    media_type: str
    size: str
    producer: str
    reason: str = ""


def link_to(path: str | bytes) -> str:
    """Return the relative URL of a file in the run's folder; its name may contain any bytes."""
    raw = path.encode(errors="surrogateescape") if isinstance(path, str) else path
    return "./" + quote_from_bytes(raw, safe="/")


def logs_of(run: Run) -> list[LogView]:
    """Return the agent's output, then logs of the sandbox, then the agent's own logs."""
    logs = [view for view in [_log(run, b"logs/agent.log", main=True)] if view]
    for folder in (b"logs", b"output/logs"):
        for file in files_below(run.path, folder.decode(), IntakeLimits(files=200, depth=3)):
            path = folder + b"/" + file.path
            if file.reason is None and file.size and path != b"logs/agent.log" and len(logs) < _LOGS:
                logs += [view for view in [_log(run, path)] if view]
    return logs


def _log(run: Run, path: bytes, *, main: bool = False) -> LogView | None:
    log = excerpt(run.path, path, head=0, tail=_MAIN_LOG_BYTES if main else _LOG_BYTES)
    if log is None:
        return None
    # A short file is read completely as head; a long one is cut at the start of a line.
    data = log.head or log.tail.partition(b"\n")[2] or log.tail
    omitted = size(log.size - len(data)) if log.left_out else ""
    return LogView(readable_path(path), link_to(path), size(log.size), terminal_text(data).rstrip(), omitted, main)


def artifacts_of(run: Run, produced: Iterable[Artifact] = ()) -> tuple[list[ArtifactRow], int]:
    """Return files of the run, mleredux's own first, then those `produced` by plugins, and how many are not listed."""
    rows, more = [], 0
    listed = [*_FILES, *((artifact.path, artifact.producer, artifact.title or "") for artifact in produced)]
    for name, producer, title in {file[0]: file for file in listed}.values():
        # The manifest is written after this page, since it lists the page.
        if (run.path / name).is_file() or name == "artifacts.json":
            known = size((run.path / name).stat().st_size) if (run.path / name).is_file() else ""
            rows.append(ArtifactRow(name, link_to(name), title, media_type(name), known, producer))
    for folder, producer in _FOLDERS:
        shown = 0
        for file in files_below(run.path, folder):
            path = folder.encode() + b"/" + file.path
            if shown >= _ROWS_PER_FOLDER:
                more += 1
                continue
            shown += 1
            link = link_to(path) if file.reason is None else ""
            name = readable_path(path)
            rows.append(ArtifactRow(name, link, "", media_type(name), size(file.size), producer, file.reason or ""))
    return rows, more
