"""The contract between mleredux and its plugins, whole. A plugin implements any of these with `@mleredux.hookimpl`.

A plugin is a distribution with an entry point in the group `mleredux` that names a module (or any object) holding
hook implementations. It states the contract it was made for as `mleredux_contract = 2` beside them; without that
line, it is taken to be made for the current one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import click

    from mleredux._core.cli.backend import Backend
    from mleredux._core.models import Agent, Artifact, Event, Grader, Outcome, Score, Task, Technique
    from mleredux._core.plugins import Ref
    from mleredux._core.protocols import Gateway, Launch, Sandbox, Session
    from mleredux._core.store import Run

CONTRACT_VERSION = 2
"""The version of the hooks; a plugin states the one it was made for as `mleredux_contract`."""
CHANGED_HOOKS = {2: ("mleredux_run_agent",)}
"""Hooks that each version changed: a plugin made for an older one is loaded where it implements none of them."""
PROJECT = "mleredux"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Marks a function of a plugin as the implementation of the hook of that name."""


# The four stages


@hookspec(firstresult=True)
def mleredux_prepare(task: Task, raw: Path, public: Path, private: Path) -> bool | None:
    """Write the task's `public` and `private` files from `raw`; return True when done, None to leave it to others."""


@hookspec(firstresult=True)
def mleredux_run_agent(launch: Launch, session: Session, sandbox: Sandbox) -> Outcome | None:
    """Run `launch.agent` in the sandbox, within its limits, and return how that ended."""


@hookspec(firstresult=True)
def mleredux_grade(task: Task, submission: Path, private: Path) -> Score | None:
    """Score a submission file against the private answers; raise `InvalidSubmission` where it can't be scored."""


@hookspec
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact] | None:
    """Write artifacts of a finished run into its directory and name them; the results of all plugins are kept.

    Whoever sees the run sees them: on a server, tell of other runs only where their `spec.project` is the run's.
    """


# Registration


@hookspec
def mleredux_register_tasks() -> Iterable[Task | Ref]:
    """Competitions, and other tasks with data of their own."""


@hookspec
def mleredux_register_techniques() -> Iterable[Technique | Ref]:
    """Questions that can be asked of other tasks: `cv` makes `cv@digits` of `digits`."""


@hookspec
def mleredux_register_agents() -> Iterable[Agent | Ref]:
    """Agents."""


@hookspec
def mleredux_register_graders() -> Iterable[Grader | Ref]:
    """Graders: a metric with its checks."""


@hookspec
def mleredux_register_sandboxes() -> Iterable[Sandbox | Ref]:
    """Places where agents run."""


@hookspec
def mleredux_register_commands() -> Iterable[click.Command | Ref]:
    """Commands; `runs curve` is `curve` of the group `runs`. Those that work with `--server` have `place = "both"`."""


# Lookup and services


@hookspec(firstresult=True)
def mleredux_find_agent(reference: str) -> Agent | None:
    """Make an agent of a reference with a scheme (`repo:https://…@REF`), pinned; None where the scheme is another's."""


@hookspec(firstresult=True)
def mleredux_open_gateway(run: Run, agent: Agent, socket: Path) -> Gateway | None:
    """Open the metered way to language models for one run with network `gateway`, listening on a Unix socket too."""


@hookspec(firstresult=True)
def mleredux_open_backend(url: str) -> Backend | None:
    """Open the server at a URL as what works the commands with `--server`; None where it is another kind of server."""


# Observation


@hookspec
def mleredux_run_event(run: Run, event: Event) -> None:
    """Called after each event of a run was written to its log; trackers subscribe here. Must not raise or block."""
