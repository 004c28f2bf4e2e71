"""The complete contract between mleredux and its plugins. A plugin implements any of these hooks with
`@mleredux.hookimpl`.

A plugin is a distribution with an entry point in the group `mleredux` that names a module (or any object) with hook
implementations. Next to them it declares the contract version that it was written for, `mleredux_contract = 2`; the
default is the current version. `mleredux_withheld = ("MY_PASSWORD",)` names environment variables that only its own
program may know: jobs of executors do not get them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    import click

    from mleredux._core.data import Prepared
    from mleredux._core.executors import Executor, Nodes
    from mleredux._core.pages import Action, Page, Panel
    from mleredux._core.plugins import Catalogue, Ref
    from mleredux._core.plugins.discovery import Scheme
    from mleredux._core.protocols import Built, Gateway, Launch, Sandbox, Session
    from mleredux._core.stages.context import StageContext
    from mleredux._core.store import Run
    from mleredux.models import (
        Agent,
        Artifact,
        Event,
        Evidence,
        Grader,
        Outcome,
        Report,
        Score,
        Task,
        Technique,
        Verification,
    )
    from mleredux.models.agent import Tool
    from mleredux.models.export import Format

CONTRACT_VERSION = 2
"""The current version of the hooks; a plugin declares the version it was written for as `mleredux_contract`."""
CHANGED_HOOKS = {2: ("mleredux_run_agent", "mleredux_verify")}
"""Hooks changed in each version. A plugin written for an older version is loaded if it implements none of them."""
PROJECT = "mleredux"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
"""Mark a function of a plugin as the implementation of the hook with that name."""


# The stages of a run


@hookspec(firstresult=True)
def mleredux_prepare(task: Task, raw: Path, public: Path, private: Path) -> bool | None:
    """Write the task's `public` and `private` files from `raw`; return True if done, None to defer to other plugins."""


@hookspec(firstresult=True)
def mleredux_run_agent(launch: Launch, session: Session, sandbox: Sandbox) -> Outcome | None:
    """Run `launch.agent` in the sandbox, within its limits, and return the outcome."""


@hookspec(firstresult=True)
def mleredux_grade(task: Task, submission: Path, private: Path) -> Score | None:
    """Score a submission file against the private answers; raise `InvalidSubmission` if it can't be scored."""


@hookspec
def mleredux_find_evidence(run: Run, task: Task, report: Report, private: Path) -> Iterable[Evidence] | None:
    """Return reasons to doubt a result that was just graded; evidence of level `seen` taints it. The answers must not
    be quoted.
    """


@hookspec(firstresult=True)
def mleredux_verify(
    context: StageContext, built: Built, prepared: Prepared, report: Report, folder: Path
) -> Verification | None:
    """Execute the final code of a run again, on renamed and permuted test data, and compare the scores.

    `folder` is for files that are needed until the verification ends; sandboxes can mount them.
    """


@hookspec
def mleredux_produce_artifacts(run: Run, artifacts: tuple[Artifact, ...]) -> Iterable[Artifact] | None:
    """Write artifacts of a finished run to its directory and return them; the results of all plugins are stored.

    Implementations with the parameter `artifacts` are called after the others, whose results it contains.
    Anyone who can read the run can read them: on a server, use data from other runs only if their `spec.project` is the
    same.
    """


# Registration


@hookspec
def mleredux_register_tasks() -> Iterable[Task | Ref]:
    """Return competitions, and other tasks with their own data."""


@hookspec
def mleredux_register_techniques() -> Iterable[Technique | Ref]:
    """Return techniques, which derive tasks from other tasks: `cv` derives `cv@digits` from `digits`."""


@hookspec
def mleredux_register_agents() -> Iterable[Agent | Ref]:
    """Return agents."""


@hookspec
def mleredux_register_schemes() -> Iterable[Scheme | Ref]:
    """Return schemes of references: agents (`repo:https://…@REF`), tasks (`harbor:PATH`), object stores, servers."""


@hookspec
def mleredux_register_graders() -> Iterable[Grader | Ref]:
    """Return graders: a metric with its checks."""


@hookspec
def mleredux_register_sandboxes() -> Iterable[Sandbox | Ref]:
    """Return sandboxes, in which agents run."""


@hookspec
def mleredux_register_formats() -> Iterable[Format | Ref]:
    """Return formats of other systems in which `mleredux export` writes runs."""


@hookspec
def mleredux_register_executors() -> Iterable[Executor | Ref]:
    """Return executors, which place runs on machines."""


@hookspec
def mleredux_register_tools() -> Iterable[Tool | Ref]:
    """Return tools for agents, MCP servers and skills, which users select with `mleredux run … --tool NAME`."""


@hookspec
def mleredux_register_commands() -> Iterable[click.Command | Ref]:
    """Return commands; `runs plot` means `plot` in the group `runs`, and a command `doctor NAME` returns findings.

    A `Ref` may set `place` (`both`: also works with `--server`; `machine`: runs locally even if `MLEREDUX_SERVER` is
    set) and `section` (of the help: `Results`, `Compare`, …). A command `doctor NAME` with `network` (`gateway`) is
    also called with the plan of each run with this network, before its data is prepared; a failed finding ends the run.
    """


@hookspec
def mleredux_register_pages() -> Iterable[Page | Panel | Action]:
    """Return web pages, panels of runs and tasks, and actions for `mleredux view`; see `mleredux.plugin.page`."""


# Lookup and services


@hookspec(firstresult=True)
def mleredux_find_task(name: str, base: Task | None) -> Task | None:
    """Return a task of a kind with too many members to register each (`wine+planted-7`); None for other names.

    `base` is the registered task before the `+`.
    """


@hookspec(firstresult=True)
def mleredux_open_gateway(run: Run, agent: Agent, socket: Path) -> Gateway | None:
    """Open the LLM gateway of one run with network `gateway`; it also listens on a Unix socket."""


@hookspec
def mleredux_protected_variables() -> Iterable[str] | None:
    """Return names of environment variables that no agent may get, such as keys of LLM providers."""


@hookspec(firstresult=True)
def mleredux_open_nodes(catalogue: Catalogue) -> Nodes | None:
    """Return an object that submits runs to executors, follows them until they end, and edits their data in object
    stores."""


# Observation


@hookspec
def mleredux_run_event(run: Run, event: Event) -> None:
    """Handle an event of a run after it was written to the log (for trackers). Must not raise or block."""
