"""Create agents from the entries of a folder."""

from __future__ import annotations

import re
import shlex
from functools import partial
from typing import Any

from mleredux.plugin.agent import Agent, Build, Limits

from mleredux_agent_mlebench_import.environment import WORKDIR_NOTE
from mleredux_agent_mlebench_import.layout import Entry, read_folder
from mleredux_agent_mlebench_import.registry import generated_name, home

_DAY = 24 * 3600.0
_TIME_VARIABLE = "TIME_LIMIT_SECS"
# MLE-bench's agents use this variable for their time limit; a run may be shorter than they assume.
_TIME = f"""\
if [ "${{{_TIME_VARIABLE}:-0}}" -gt "${{MLEREDUX_TIME_LIMIT%.*}}" ]; then
    export {_TIME_VARIABLE}="${{MLEREDUX_TIME_LIMIT%.*}}"
fi
"""


def load_agents(copy: str) -> dict[str, Agent]:
    """Return the agents of a copy, by their ids in its `config.yaml`."""
    folder = home() / copy / "agent"
    return {name: _agent(entry, copy) for name, entry in read_folder(folder).items()}


def _agent(entry: Entry, copy: str) -> Agent:
    plain = re.sub(r"[^A-Za-z0-9._-]", "-", entry.name)
    agent = Agent(
        id=f"mlebench-{plain}",
        title=f"{entry.name}, imported from MLE-bench's layout",
        command=_command(entry, entry.kwargs),
        build=Build(context=home() / copy / "agent", dockerfile=generated_name(entry.dockerfile), writable_root=True),
        env=entry.env,
        secrets=entry.secrets,
        limits=Limits(time_limit=_time_limit(entry), cpus=2, memory_mb=8192),
        network="gateway" if entry.secrets else "none",
        options=entry.kwargs,
        isolated=True,
        tags=("mlebench",),
        reference=f"mlebench:{entry.name}@{copy}",
    )
    return agent.model_copy(update={"configure": partial(_configured, agent, entry)})


def _configured(agent: Agent, entry: Entry, options: dict[str, Any]) -> Agent:
    return agent.model_copy(update={"command": _command(entry, options)})


def _command(entry: Entry, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the command as in MLE-bench: the script in the image's working directory, with its arguments."""
    timed = _TIME if entry.env.get(_TIME_VARIABLE, "").isdigit() else ""
    script = (
        "\n".join([*entry.exports(), ""])
        + timed
        + f'cd "$(cat {WORKDIR_NOTE})" && exec bash "$AGENT_DIR"/{shlex.quote(entry.start)} "$@"\n'
    )
    return ("bash", "-c", script, entry.start, *entry.arguments(options))


def _time_limit(entry: Entry) -> float:
    text = entry.env.get(_TIME_VARIABLE, "")
    return float(text) if text.isdigit() and int(text) > 0 else _DAY
