"""The folder `task` of a run, which the agent reads, and the agent's environment variables."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

from mleredux._core.plugins.capabilities import Capabilities
from mleredux._core.protocols import Launch, Layout
from mleredux._core.sandboxes.tools import tool_lines
from mleredux._core.sandboxes.variables import gpu_environment
from mleredux._core.store import Run
from mleredux.models import Agent, Task
from mleredux.models.agent import Tool
from mleredux.models.formats import counted, plain

_NETWORK = {
    "none": "no access",
    "gateway": "only the gateway to language models is reachable",
    "open": "public hosts are reachable over HTTP and HTTPS, through the configured proxy, which records all requests",
}
_NETWORK_NOT_ISOLATED = {
    "none": "do not use it (it is not technically blocked)",
    "gateway": "use only the gateway to language models (the rest is not technically blocked)",
    "open": "open",
}


def _text(name: str) -> str:
    return (Path(__file__).parent / "texts" / name).read_text(encoding="utf-8")


def _write_script(folder: Path, name: str, purpose: str) -> None:
    """Write the script that posts a file to one of the addresses of the run."""
    text = _text("post.sh").replace("@PURPOSE@", purpose).replace("@NAME@", name.upper()).replace("@PLACE@", name)
    path = folder / f"{name}.sh"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def _network(run: Run, isolated: bool) -> str:
    hosts = run.spec.grants.hosts
    if not isolated or not hosts or run.spec.network == "open":
        return (_NETWORK if isolated else _NETWORK_NOT_ISOLATED)[run.spec.network]
    others = "and the gateway to language models " if run.spec.network == "gateway" else ""
    return f"only {', '.join(hosts)} {others}are reachable, through the proxy set in the usual environment variables"


def write_briefing(
    run: Run, task: Task, layout: Layout, folder: Path, sandbox: Capabilities, tools: Sequence[Tool] = ()
) -> None:
    """Write the folder that the agent reads as its task: texts, `task.json`, `validate.sh`, and an empty `data`.

    Args:
        run: The run.
        task: The task of the run.
        layout: The paths inside the sandbox.
        folder: The folder to write.
        sandbox: The capabilities of the sandbox, which the instructions depend on.
        tools: The agent's tools, whose files `write_tools` writes.
    """
    spec, isolated = run.spec, sandbox.isolated
    folder.mkdir(exist_ok=True)
    description = task.describe(obfuscated=spec.obfuscated)
    if spec.context:
        description += f"\n\n# Findings so far\n\n{spec.context}\n"
    instructions = (
        _text("instructions.md").format(
            layout=layout,
            file=task.submission.file,
            hours=_duration(spec.limits.time_limit),
            cpus=plain(spec.limits.cpus),
            memory_mb=spec.limits.memory_mb,
            disk_mb=spec.limits.disk_mb,
            gpus=f"{counted(spec.limits.gpus, 'GPU')}, listed in `CUDA_VISIBLE_DEVICES`"
            if spec.limits.gpus
            else "no GPU",
            processes=spec.limits.processes,
            declared="" if "cpus" in sandbox.enforces else ". The CPU limit is not enforced; please respect it",
            grace=plain(spec.limits.grace),
            network=_network(run, isolated),
            fixed="read only" if isolated else "do not change it",
            data="all public files; the test set's answers are not included" if isolated else "all public files",
            isolation="" if isolated else _text("not_isolated.md"),
        )
        + tool_lines(tools, layout.task)
        + (task.submission.execution.instructions(task) if task.submission.execution else "")
    )
    if task.inner and spec.limits.dev_scores:
        sample, number = task.inner.submission.sample, spec.limits.dev_scores
        instructions += _text("dev_scores.md").format(layout=layout, sample=sample, number=number)
        _write_script(folder, "score", "Print the score of predictions for the rows in data/dev. Usage: score.sh FILE")
    texts = {"description": description, "instructions": instructions, "prompt": f"{instructions}\n{description}\n"}
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    submission = task.submission
    facts = {
        "task": public_name(run),
        "file": submission.file,
        "sample": None if submission.sample is None or submission.sample.startswith("..") else submission.sample,
        "id_columns": submission.id_columns,
        "target_columns": submission.target_columns,
        "metric": task.metric.id,
        "direction": task.direction,
        "execution": None if submission.execution is None else submission.execution.model_dump(mode="json"),
    }
    (folder / "task.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    checks = "Check the format of a submission, by default the one in the output folder; no score is printed."
    _write_script(folder, "validate", f"{checks} Usage: validate.sh [FILE]")
    if not (folder / "data").is_symlink():
        (folder / "data").mkdir(exist_ok=True)


def public_name(run: Run) -> str:
    """Return the task's name, or a neutral one if the run is obfuscated."""
    return "task" if run.spec.obfuscated else run.spec.task


def environment(
    run: Run, task: Task, agent: Agent, launch: Launch, layout: Layout, passed: dict[str, str]
) -> dict[str, str]:
    """Return the agent's environment: mleredux's variables, those the agent declares, and nothing else.

    Args:
        run: The run.
        task: Its task.
        agent: The agent.
        launch: The launch of the agent.
        layout: The paths inside the sandbox.
        passed: The caller's variables that the agent gets.
    """
    limits = launch.limits
    options = {**agent.options, **run.spec.options}
    return {
        **agent.env,
        **passed,
        **gpu_environment(launch.gpu_ids),
        "MLEREDUX_RUN_ID": launch.run_id,
        "MLEREDUX_TASK": public_name(run),
        "MLEREDUX_AGENT": agent.id,
        "MLEREDUX_SEED": str(run.spec.seed),
        "MLEREDUX_TIME_LIMIT": plain(limits.time_limit),
        "MLEREDUX_DEADLINE": f"{time.time() + limits.time_limit:.0f}",
        "MLEREDUX_TASK_DIR": layout.task,
        "MLEREDUX_PROMPT_FILE": f"{layout.task}/prompt.md",
        "MLEREDUX_MODEL": str(options.get("model") or ""),
        "MLEREDUX_DATA_DIR": layout.data,
        "MLEREDUX_OUTPUT_DIR": layout.output,
        "MLEREDUX_SUBMISSION": f"{layout.output}/{task.submission.file}",
        "MLEREDUX_SCRATCH_DIR": layout.scratch,
        "MLEREDUX_VALIDATE_URL": layout.validate_url,
        "MLEREDUX_SCORE_URL": layout.validate_url.removesuffix("validate") + "score",
        "MLEREDUX_CPUS": plain(limits.cpus),
        "MLEREDUX_MEMORY_MB": str(limits.memory_mb),
        "MLEREDUX_OPTIONS": json.dumps(options),
    }


def _duration(seconds: float) -> str:
    if seconds >= 3600:
        return f"{plain(seconds / 3600, 3)} hours"
    return f"{plain(seconds / 60, 3)} minutes" if seconds >= 120 else f"{plain(seconds, 3)} seconds"
