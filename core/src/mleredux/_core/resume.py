"""Resume interrupted runs, but only with the same versions; remove sandbox resources of killed programs."""

from __future__ import annotations

import platform
import shutil
import tempfile
from pathlib import Path

from mleredux._core.plugins import Catalogue
from mleredux._core.protocols import BuildRequest
from mleredux._core.sandboxes.task_images import build_in, placed
from mleredux._core.sandboxes.variables import is_foreign
from mleredux._core.store import Run, RunStore
from mleredux._core.store.states import FINAL
from mleredux._core.submissions.endpoint import socket_path
from mleredux.errors import ResumeRefused, SandboxError
from mleredux.models import CAUSES, State


def check_resumable(run: Run, catalogue: Catalogue, *, build: bool = True, base_image: str | None = None) -> None:
    """Check whether a run can be resumed.

    Args:
        run: The run.
        catalogue: The plugins.
        build: Whether to rebuild its environment if it no longer exists, so that it can be compared too.
        base_image: Base image for builds, if the user specified one.

    Raises:
        ResumeRefused: The run is still running, has finished, or was started with other versions; the message names
            them.
    """
    if run.alive:
        raise ResumeRefused(f"Run {run.id} is being executed.", hint="Wait for it, or stop its process.")
    ended_well = run.state in (State.DONE, State.TIMED_OUT)
    if ended_well or (run.cause is not None and CAUSES[run.cause].counts):
        raise ResumeRefused(f"Run {run.id} is finished ({run.state}).", hint="Start a new one.")
    spec, used, now = run.spec, run.use, versions_of(run, catalogue)
    differing = [
        f"{name} was {before}, now {now.get(name, 'not installed')}"
        for name, before in used.packages.items()
        if now.get(name) != before
    ]
    if used.task_version and (version := catalogue.task(spec.task).version) != used.task_version:
        differing.append(f"task {spec.task} had version {used.task_version}, now {version}")
    if used.agent_version and (version := catalogue.agent(spec.agent).version) != used.agent_version:
        differing.append(f"agent {spec.agent} had version {used.agent_version}, now {version}")
    if used.python and used.python != platform.python_version():
        differing.append(f"Python was {used.python}, now {platform.python_version()}")
    if build and used.image and not differing:
        with tempfile.TemporaryDirectory(prefix="mleredux-build-") as folder:
            task, sandbox = catalogue.task(spec.task), catalogue.sandbox(spec.sandbox)
            agent = placed(catalogue.agent(spec.agent, spec.options), task)
            hosts = spec.grants.build_hosts if is_foreign(agent) else None
            request = BuildRequest(agent, Path(folder) / "build.log", base_image=base_image, hosts=hosts)
            if (image := build_in(task, sandbox, request).identity) != used.image:
                differing.append(f"the agent's environment was {used.image}, now {image}")
    if differing:
        raise ResumeRefused(
            f"Run {run.id} was started with other versions: {'; '.join(differing)}.",
            hint="Start a new run, or install those versions.",
        )


def versions_of(run: Run, catalogue: Catalogue) -> dict[str, str]:
    """Return the versions of mleredux and of the plugins that a run uses."""
    from mleredux import __version__

    names = {
        ("tasks", run.spec.task.rpartition("@")[2].partition("+")[0]),
        ("techniques", run.spec.task.partition("@")[0].partition("+")[0]),
        ("agents", run.spec.agent),
        ("sandboxes", run.spec.sandbox),
    }
    plugins = [catalogue.entries(kind)[name].plugin for kind, name in names if name in catalogue.entries(kind)]
    versions = {plugin.distribution: plugin.version for plugin in plugins if plugin.distribution and plugin.version}
    return dict(sorted({"mleredux": __version__, **versions}.items()))


def sweep(store: RunStore, catalogue: Catalogue, keep: set[str]) -> None:
    """Remove the sandbox resources of killed programs, except those of runs to keep and of runs that are alive."""

    def alive(run_id: str) -> bool:
        return run_id in keep or store.is_alive(run_id)

    unswept: set[str] = set()
    unfinished = [row for row in store.rows() if row["status"] not in FINAL]
    for name in sorted({row["sandbox"] for row in unfinished} & set(catalogue.entries("sandboxes"))):
        try:
            list(catalogue.sandbox(name).sweep(store.owner, alive))
        except SandboxError:  # if an engine does not respond now, it is swept at a later start
            unswept |= {row["id"] for row in store.rows() if row["sandbox"] == name}
    for run_id in {row["id"] for row in unfinished if not alive(row["id"])} - unswept:
        shutil.rmtree(socket_path(run_id, store.path / run_id / "output").parent, ignore_errors=True)
    store.close_disks(lambda run_id: run_id in unswept or alive(run_id))
