"""Call functions that plugins provide for agents and tasks; any exception is reported as an error of the plugin."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mleredux.errors import MlereduxError, PluginError, foreign_code

if TYPE_CHECKING:
    from mleredux.models import Agent, Task

PRESET = "preset"
"""The option that selects one of the agent's presets."""
_lock = threading.RLock()


def without_preset(agent: Agent, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the values of the selected preset, if any."""
    if PRESET not in options or PRESET in agent.options:
        return dict(options)
    rest = {name: value for name, value in options.items() if name != PRESET}
    preset = agent.presets.get(str(options[PRESET]))
    if preset is None:
        known = ", ".join(agent.presets) or "none"
        message = f"Agent {agent.id} has no preset {str(options[PRESET])[:100]!r}."
        raise MlereduxError(message, hint=f"Its presets: {known}.")
    return {**preset, **rest}


@contextlib.contextmanager
def without_output() -> Iterator[None]:
    """Send what plugins write to standard output to standard error, since standard output is for results.

    This includes what they write to the descriptor, and what their child processes write. One thread at a time executes
    such a block; blocks can be nested.
    """
    with _lock, contextlib.ExitStack() as until:
        for stream in filter(None, (sys.stdout, sys.__stdout__)):
            stream.flush()
        until.enter_context(contextlib.redirect_stdout(sys.stderr))
        with contextlib.suppress(OSError):  # a closed descriptor
            until.callback(os.close, results := os.dup(1))
            os.dup2(2, 1)
            until.callback(os.dup2, results, 1)
            until.callback(print, end="", file=sys.__stdout__, flush=True)
        yield


def configured(agent: Agent, options: Mapping[str, Any]) -> Agent:
    """Configure the agent with its options. The agent's reference stays the same."""
    options = without_preset(agent, options)
    if unknown := sorted(set(options) - set(agent.options)):
        known = ", ".join(sorted(agent.options)) or "none"
        raise MlereduxError(f"Agent {agent.id} has no option {', '.join(unknown)}.", hint=f"Its options: {known}.")
    if agent.configure is None:
        return agent
    fault = foreign_code(PluginError, f"Agent {agent.id} rejected its options", "Fix its function `configure`.")
    with without_output(), fault:
        changed = agent.configure({**agent.options, **options})
    same = ("reference", "unisolated", "remarks") if agent.reference is not None else ()
    return changed.model_copy(update={name: getattr(agent, name) for name in same})


def checked_task(name: str, make: Callable[[], Task | None], fault: str) -> Task | None:
    """Return the task that a plugin creates. It must have the requested id; otherwise two tasks would share data."""
    with without_output(), foreign_code(PluginError, f"The task {name!r} can't be created", f"Fix {fault}."):
        task = make()
    if task is not None and task.id != name:
        raise PluginError(f"The task requested as {name!r} has the id {task.id!r}.", hint=f"Fix {fault}.")
    return task
