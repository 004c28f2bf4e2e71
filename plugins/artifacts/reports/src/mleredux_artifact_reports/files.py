"""Files of the run as shown on the page: the ends of logs, and the list of artifacts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote_from_bytes

from mleredux.models.formats import size
from mleredux.plugin.artifact import Artifact, Run
from mleredux.plugin.files import IntakeLimits, media_type, readable_path

from mleredux_artifact_reports.agent_files import excerpt, files_below, terminal_text

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
    found = [view for view in [_log(run, b"logs/agent.log", main=True)] if view]
    for folder in (b"logs", b"output/logs"):
        for file in files_below(run.path, folder.decode(), IntakeLimits(files=200, depth=3)):
            path = folder + b"/" + file.path
            if file.reason is None and file.size and path != b"logs/agent.log" and len(found) < _LOGS:
                found += [view for view in [_log(run, path)] if view]
    return found


def _log(run: Run, path: bytes, *, main: bool = False) -> LogView | None:
    log = excerpt(run.path, path, head=0, tail=_MAIN_LOG_BYTES if main else _LOG_BYTES)
    if log is None:
        return None
    # A short file is read completely as head; a long one is cut at the start of a line.
    data = log.head or log.tail.partition(b"\n")[2] or log.tail
    left = size(log.size - len(data)) if log.left_out else ""
    return LogView(readable_path(path), link_to(path), size(log.size), terminal_text(data).rstrip(), left, main)


def artifacts_of(run: Run, made: Iterable[Artifact] = ()) -> tuple[list[ArtifactRow], int]:
    """Return files of the run, mleredux's own first, then those `made` by plugins, and how many are not listed."""
    rows, more = [], 0
    listed = [*_FILES, *((one.path, one.producer, one.title or "") for one in made)]
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
