"""The address of a session's Jupyter, for a person's browser."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

from mleredux import MlereduxError, Run
from mleredux_agentkit.wire import NoSession, request

_START_SECONDS = 120
_POLL = 0.2


def open_jupyter(run: Run) -> str | None:
    """Return the address of the session's Jupyter on this machine, with its token; None without Jupyter.

    A separate process forwards connections for the lifetime of the session.

    Raises:
        MlereduxError: Jupyter ended or does not respond.
    """
    state, until = _state(run), time.monotonic() + _START_SECONDS
    if not state:
        return None
    while not state.get("ready"):
        if not state or state["ended"] or time.monotonic() > until:
            raise MlereduxError("Jupyter did not start.", hint=f"See {run.output_dir / 'logs/jupyter/jupyter.log'}.")
        time.sleep(_POLL)
        state = _state(run)
    known = run.path / ".jupyter.json"
    try:
        passing = json.loads(known.read_text())
    except (OSError, ValueError):
        passing = {}
    if passing.get("token") != state["token"]:
        passing = {"token": state["token"], "port": _pass_on(run)}
        known.touch(0o600)
        known.write_text(json.dumps(passing))
    return f"http://127.0.0.1:{passing['port']}/lab/tree/{state['notebook']}?token={state['token']}"


def _state(run: Run) -> dict[str, Any]:
    try:
        return request(run.output_dir, "jupyter")
    except NoSession:
        return {}


def _pass_on(run: Run) -> int:
    process = subprocess.Popen(
        [sys.executable, "-m", "mleredux_agent_human.forward", str(run.output_dir)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    return int(process.stdout.readline())
