"""Checks that every agent must pass."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from mleredux._core.data import DataStore
from mleredux._core.pipeline import Pipeline
from mleredux._core.plugins import Catalogue, Entry, Plugin, Ref, current
from mleredux._core.plugins.capabilities import needs_of
from mleredux._core.sandboxes.slots import machine
from mleredux._core.store import Run, RunStore
from mleredux.models import Agent
from mleredux_rollout import check_rollout

from mleredux_testing.findings import Findings
from mleredux_testing.toys import TOY_PLUGIN

_LOG_TAIL = 800


def check_agent(
    agent: Agent | str,
    tmp: Path | None = None,
    *,
    task: str = "toy",
    sandbox: str = "process",
    time_limit: float = 90,
    options: dict[str, Any] | None = None,
    isolated: bool = True,
    catalogue: Catalogue | None = None,
) -> Findings:
    """Check an agent: its declaration, and that a run on a toy task ends with a valid submission.

    Args:
        agent: The agent, or its id.
        tmp: A folder for the run; None: a temporary folder.
        task: The task to run it on; by default, the built-in toy task, a small table.
        sandbox: The sandbox to run it in.
        time_limit: Time limit in seconds.
        options: Options of the agent for this run.
        isolated: Whether to respect the agent's requirement of isolation; False is for agents whose language model is
            scripted.
        catalogue: The plugins; None: those of this process.

    Raises:
        NotConforming: With all problems.
    """
    installed = catalogue or current()
    catalogue = Catalogue(block=installed.block, load=dict.fromkeys((*installed.load, TOY_PLUGIN)))
    findings = Findings(f"Agent {agent if isinstance(agent, str) else agent.id}")
    with tempfile.TemporaryDirectory(prefix="mleredux-check-") as folder, findings.looking_at("agent"):
        # Found in another catalogue, which caches it; this catalogue gets the agent as it will be run.
        checked = installed.agent(agent) if isinstance(agent, str) else agent
        known = catalogue.entries("agents")
        if checked.id not in known or not isolated:
            checked = checked if isolated else _without_isolation(checked)
            own = Plugin(checked.id, "given", source="given")
            known[checked.id] = Entry(checked.id, "agents", own, Ref(checked.id), checked)
        _check_declaration(findings, checked)
        configured = catalogue.agent(checked.id, options) if options else checked
        if lacking := needs_of(configured).lacking(catalogue.sandbox(sandbox).capabilities):
            findings.good("run", f"not checked: the sandbox {sandbox} lacks {', '.join(lacking)}")
        else:
            _check_run(findings, checked, catalogue, tmp or Path(folder), (task, sandbox, time_limit, options or {}))
    return findings.close()


def _without_isolation(agent: Agent) -> Agent:
    """Return the agent, also when configured by its options, for sandboxes that are not isolated."""
    configure = agent.configure

    def configured(options: dict[str, Any]) -> Agent:
        assert configure is not None
        return configure(options).model_copy(update={"isolated": False})

    return agent.model_copy(update={"isolated": False, "configure": configured if configure else None})


def _check_declaration(findings: Findings, agent: Agent) -> None:
    findings.expect("title", agent.title.strip(), "it has no title.")
    findings.expect("command", agent.command and all(agent.command), "its command is empty.")
    with findings.looking_at("options"):
        json.dumps(agent.options)
        findings.good("options")
    revealed = sorted(set(agent.secrets) & set(agent.env))
    findings.expect(
        "secrets",
        not revealed,
        f"the values of the secrets {', '.join(revealed)} are in its declaration.",
        "List them only in `secrets`; they are passed on from the caller's environment.",
    )
    ours = sorted(name for name in agent.env if name.startswith("MLEREDUX_"))
    findings.expect("variables", not ours, f"it sets {', '.join(ours)}, which only mleredux sets.")
    pinned = [requirement for requirement in agent.build.python if not any(sign in requirement for sign in "=<>~@")]
    findings.expect(
        "requirements",
        not pinned,
        f"its image does not limit the version of {', '.join(pinned)}.",
        "Pin the versions, or specify ranges.",
    )


def _check_run(
    findings: Findings, agent: Agent, catalogue: Catalogue, tmp: Path, settings: tuple[str, str, float, dict[str, Any]]
) -> None:
    from mleredux._core.planning.plans import plan
    from mleredux.models.request import Request

    task, sandbox, time_limit, options = settings
    limits = {"time_limit": time_limit, "memory_mb": min(agent.limits.memory_mb, machine().memory_mb), "gpus": 0}
    request = Request.single(task, agent.id, sandbox=sandbox, limits=limits, options=options)
    [planned] = plan(request, catalogue, own_machine=bool(agent.needs))
    store, data = RunStore(tmp / "runs"), DataStore(tmp / "data")
    run = store.create(planned, data.path)
    Pipeline(store, catalogue, data).execute([run])
    ended = run.message or f"it ended as {run.state}."
    if not findings.expect("run", str(run.state) == "done", f"{ended} Its log ends: {_log_tail(run)}"):
        return
    report = run.report
    findings.expect(
        "submission",
        report is not None and report.valid_submission,
        (report.message if report else None) or "it left none.",
    )
    findings.expect("submission versions", run.submissions(), "no version of its submission was kept.")
    trajectory = run.output_dir / "rollout" / "trajectory.json"
    if trajectory.exists():
        for problem in check_rollout(trajectory):
            findings.bad(
                "rollout", str(problem), "Compare with docs/reference/examples/ and `python -m mleredux_rollout`."
            )
    else:
        findings.good("rollout", "it writes no rollout")


def _log_tail(run: Run) -> str:
    try:
        return run.agent_log.read_bytes()[-_LOG_TAIL:].decode("utf-8", "backslashreplace").strip()
    except OSError:
        return "(there is no log)"
