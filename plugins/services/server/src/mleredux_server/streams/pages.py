"""Read an event log in pages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mleredux.plugin.artifact import Event
from pydantic import ValidationError

from mleredux_server.files.access import open_inside
from mleredux_server.streams.frames import DamagedLog
from mleredux_server.streams.tail import MAX_LINE

_BLOCK = 1 << 18


def events_after(run: Path, after: int, most: int, shown: Callable[[str], str] = str) -> list[Event]:
    """Return events of a run in order, with numbers greater than `after`.

    Numbers are line numbers, from 0 without gaps, so previous lines are counted, not parsed.

    Args:
        run: The run's folder.
        after: Number of the last event to omit.
        most: Maximum number of events.
        shown: Function applied to the text of each event.

    Raises:
        OSError: The log does not exist, or can't be read.
        DamagedLog: A line is not a valid event.
    """
    events: list[Event] = []
    number, offset, rest = 0, 0, b""
    with open_inside(run, b"events.jsonl") as file:
        while len(events) < most and (block := file.read(offset, _BLOCK)):
            offset += len(block)
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > MAX_LINE:
                raise DamagedLog(f"a line is longer than {MAX_LINE:,} bytes")
            skipped = min(len(lines), max(0, after + 1 - number))
            number += len(lines)
            events += [_event(line, shown) for line in lines[skipped:][: most - len(events)]]
    return events


def _event(line: bytes, shown: Callable[[str], str]) -> Event:
    try:
        return Event.model_validate_json(shown(line.decode()))
    except (ValidationError, UnicodeDecodeError) as error:
        raise DamagedLog("a line is not a valid event") from error
