"""All commands read the same state of a run, whatever its event log contains."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from mleredux._core.store.events import EventLog
from mleredux.errors import MlereduxError
from mleredux_experiments.results.sources import runs_below

STATE = {
    "seq": 2,
    "time": "2026-11-22T12:00:11Z",
    "type": "state",
    "data": {"state": "failed", "cause": "agent_crashed"},
}
EVENT = json.dumps(STATE, separators=(",", ":")).encode() + b"\n"
Change = Callable[[Path, bytes], object]


def _sparse(size: int) -> Change:
    return lambda log, content: (log.write_bytes(content), os.truncate(log, size))


LOGS: dict[str, Change] = {
    "missing": lambda log, content: None,
    "empty": lambda log, content: log.touch(),
    "a pipe": lambda log, content: os.mkfifo(log),
    "a folder": lambda log, content: log.mkdir(),
    "a device": lambda log, content: os.mknod(log, 0o020600, os.makedev(1, 3)),
    "a link to a device": lambda log, content: log.symlink_to("/dev/zero"),
    "a link": lambda log, content: log.symlink_to(log.with_name("report.json")),
    "sparse": _sparse(1 << 20),
    "sparse and large": _sparse(1 << 30),
    "without its last byte": lambda log, content: log.write_bytes(content[:-1]),
    "with half an event": lambda log, content: log.write_bytes(content + EVENT[:40]),
    "with a blank line": lambda log, content: log.write_bytes(content + b"\n"),
    "with garbage": lambda log, content: log.write_bytes(b"x\n" + content),
    "with an unknown field": lambda log, content: log.write_bytes(content + EVENT.replace(b'"seq"', b'"a":1,"seq"')),
    "with blanks": lambda log, content: log.write_bytes(content + json.dumps(STATE).encode() + b"\n"),
    "with fields in another order": lambda log, content: log.write_bytes(
        content + json.dumps(dict(reversed(STATE.items()))).encode() + b"\n"
    ),
    "with an unknown state": lambda log, content: log.write_bytes(content + EVENT.replace(b"failed", b"newer")),
    "with an unknown cause": lambda log, content: log.write_bytes(content + EVENT.replace(b"agent_crashed", b"x")),
    "with a quoted event": lambda log, content: log.write_bytes(
        content + json.dumps({**STATE, "type": "warning", "data": {"message": EVENT.decode()}}).encode() + b"\n"
    ),
    "with too many events": lambda log, content: log.write_bytes(content + EVENT * 250_000),
}


@pytest.mark.parametrize("kind", LOGS)
def test_a_result_has_the_state_that_the_run_has(add_run: Callable[..., Path], tmp_path: Path, kind: str) -> None:
    folder = add_run("digits", "x", 0, score=0.5)
    log = folder / "events.jsonl"
    content = log.read_bytes()
    log.unlink()
    LOGS[kind](log, content)
    try:
        known = EventLog(log).state
        state = (str(known.state), known.cause and str(known.cause))
    except MlereduxError:
        state = None
    results = runs_below(tmp_path / "runs")
    read = [(row.status, row.cause) for row in results.rows]
    assert read == ([] if state is None else [state]), results.left
    assert len(results.left) == (state is None)
