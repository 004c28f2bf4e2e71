"""`mleredux agent check`."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from mleredux.models.formats import plain
from mleredux.plugin.command import grant_options

if TYPE_CHECKING:
    from mleredux.plugin.agent import Agent
    from mleredux.plugin.command import Catalogue


@click.command("check")
@click.argument("place", metavar="PATH|REFERENCE")
@click.option("--static", is_flag=True, help="Static checks only; do not build or run.")
@click.option("--sandbox", metavar="ID", help="Sandbox to run in.  [default: the best that meets the agent's needs]")
@click.option("--network", type=click.Choice(["none", "gateway", "open"]), help="Network access of the agent.")
@grant_options
@click.option("--base-image", metavar="IMAGE", help="Base image for the agent. [env: MLEREDUX_BASE_IMAGE]")
@click.option("--logs", type=click.Path(file_okay=False, path_type=Path), help="Keep the build and run logs here.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    place: str,
    static: bool,
    sandbox: str | None,
    network: str | None,
    base_image: str | None,
    logs: Path | None,
    as_json: bool,
    **grants: tuple[str, ...],
) -> None:
    """Verify a developer's agent: its source, its manifest, its build, and a smoke run.

    The check stores no run. If the manifest declares a smoke run, the next runs need none.

    \b
    Exit codes: 0 passed · 1 error · 2 usage · 3 the agent failed · 4 the environment or the smoke task failed
    """
    from mleredux.plugin.command import consent, current, echo, granted, statement
    from mleredux.plugin.host import protected_variables

    from mleredux_agent_repo.agents import agent_of
    from mleredux_agent_repo.references import SCHEME

    steps: list[dict[str, Any]] = []

    def show(step: str, message: str, ok: bool = True) -> None:
        steps.append({"step": step, "ok": ok, "message": message})
        if not as_json:
            mark = click.style("ok  " if ok else "FAIL", fg="green" if ok else "red")
            click.echo(f"{mark} {step.ljust(9)} ", nl=False)
            echo(message)

    agent = agent_of(place if place.startswith(SCHEME) else SCHEME + place)
    for line in (str(agent.reference), *agent.remarks):
        show("source", line)
    show("manifest", f"agent {agent.id}, version {agent.version}, network {agent.network}")
    catalogue = current()
    for line in statement(agent, protected_variables(catalogue))[1:]:
        show("requests", " ".join(line.split()))
    code = 0
    if not static:
        allowed, network = consent(catalogue, agent, granted(**grants), network, shown=not as_json)
        code = _build_and_run(
            catalogue, agent, {"grants": allowed, "network": network, "sandbox": sandbox}, base_image, logs, show
        )
    if as_json:
        click.echo(
            json.dumps({"reference": agent.reference, "agent": agent.id, "ok": not code, "steps": steps}, indent=1)
        )
    ctx.exit(code)


def _build_and_run(
    catalogue: Catalogue, agent: Agent, options: dict[str, Any], base_image: str | None, logs: Path | None, show: Any
) -> int:
    """Build and smoke-run the agent in a separate store; return the exit code."""
    from mleredux.models import CAUSES, Smoke
    from mleredux.plugin.artifact import RunStore, State
    from mleredux.plugin.command import EXIT_ENVIRONMENT_BROKE, DataStore
    from mleredux.plugin.experiment import Request, plan
    from mleredux.plugin.host import Pipeline

    from mleredux_agent_repo.smoke import last_lines, note_passed

    smoke = agent.smoke or Smoke(task="wine", time_limit=300)
    assert agent.reference is not None
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder:
        store, data = RunStore(Path(folder) / "runs"), DataStore()
        request = Request.single(
            smoke.task,
            agent.reference,
            limits={"time_limit": smoke.time_limit},
            options=smoke.options,
            **options,
        )
        [planned] = plan(request, catalogue, own_machine=True)
        run = store.create(planned, data.path)
        Pipeline(store, catalogue, data, base_image=base_image, smoke=False).execute([run])
        if logs is not None:
            shutil.copytree(run.logs_dir, logs, dirs_exist_ok=True)
        failed = 3 if run.cause is None or CAUSES[run.cause].counts else EXIT_ENVIRONMENT_BROKE
        if State.BUILDING not in run.log.state.finished:
            show("build", run.message or "the image could not be built", ok=False)
            return failed
        show("build", f"sandbox {run.spec.sandbox}, environment {run.use.image}")
        report = run.report
        if report is None or not report.valid_submission:
            why = run.message or (report.message if report else None) or "it produced nothing that can be scored"
            lines = "".join(f"\n     | {line}" for line in last_lines(run))
            show("smoke run", f"{smoke.task}: {why}{lines}", ok=False)
            return failed
        seconds, counts = time.monotonic() - started, ""
        if agent.smoke is not None:
            note_passed(agent, str(run.use.image))
            counts = "; the next runs of this version in this environment need no smoke run"
        score = f"{report.metric} {plain(report.score or 0.0, 6)}"
        show("smoke run", f"{smoke.task}: {score}, {seconds:.0f} s including the build{counts}")
        return 0
