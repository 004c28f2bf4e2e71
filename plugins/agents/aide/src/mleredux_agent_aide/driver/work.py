"""AIDE's main loop, within the sandbox's limits."""

from __future__ import annotations

import multiprocessing
import random
import traceback
from importlib import metadata
from pathlib import Path
from typing import Any

from aide.interpreter import Interpreter
from aide.journal import Journal
from aide.utils.config import _load_cfg, prep_agent_workspace, prep_cfg
from mleredux_agentkit import Clock, NoMoreCalls, Stopped, Task

from mleredux_agent_aide.driver.models import NO_TEMPERATURE, use_gateway
from mleredux_agent_aide.driver.results import Keeper
from mleredux_agent_aide.driver.search import SHORTEST_RUN, Executor, Search

FAILURES = 3
"""Number of consecutive steps without a node after which the work ends."""


def work(task: Task, clock: Clock) -> int:
    """Search for solutions until steps, time or calls are used up.

    Returns:
        The exit code: 0 if there is a solution.
    """
    multiprocessing.set_start_method("fork", force=True)  # AIDE's interpreter requires it
    random.seed(task.seed)
    options = task.options
    use_gateway(options)
    config = configure(task)
    text = task_text(task)
    journal = Journal()
    agent = Search(task_desc=text, cfg=config, journal=journal)
    interpreter = Interpreter(config.workspace_dir, timeout=options["exec_timeout"])
    executor = Executor(interpreter, clock, config, options["exec_timeout"])
    facts = {
        "aide": metadata.version("aideml"),
        "code_model": options["code_model"],
        "feedback_model": options["feedback_model"],
        "task": text,
    }
    keeper = Keeper(task, config, facts)
    try:
        search(agent, executor, keeper, clock, options["steps"])
    except (Stopped, NoMoreCalls) as end:
        print(f"stopped: {end}", flush=True)
    finally:
        clock.close()
        interpreter.cleanup_session()
        keeper.at_end()
    print(f"{len(journal)} solutions, {len(journal.good_nodes)} of them good", flush=True)
    return 0 if len(journal) or task.submission.exists() else 1


def search(agent: Search, executor: Executor, keeper: Keeper, clock: Clock, steps: int) -> None:
    """Add nodes to the journal."""
    journal, failures = agent.journal, 0
    while len(journal) < steps and failures < FAILURES and clock.left > SHORTEST_RUN:
        keeper.before()
        executor.fit()
        try:
            agent.step(exec_callback=executor.run)
        except Exception as error:
            failures += 1
            print(f"step failed: {type(error).__name__}: {error}", flush=True)
            traceback.print_exc()
            continue
        failures = 0
        try:
            keeper.after(journal)
        except (OSError, ValueError) as error:  # for example a full disk: the search may still find a better solution
            print(f"node {len(journal) - 1} could not be kept: {error}", flush=True)
        node = journal[-1]
        state = "buggy" if node.is_buggy else f"validation metric {node.metric}"
        print(f"node {node.step} ({node.stage_name}): {state}", flush=True)


def configure(task: Task) -> Any:
    """Return AIDE's configuration; create its workspace with links to the data."""
    options, root = task.options, task.scratch_dir / "aide"
    raw = _load_cfg(use_cli_args=False)
    raw.data_dir, raw.goal = str(task.data_dir), task.name
    raw.log_dir, raw.workspace_dir = str(root / "logs"), str(root / "workspaces")
    raw.exp_name, raw.copy_data, raw.generate_report = "run", False, False
    raw.exec.timeout = options["exec_timeout"]
    agent = raw.agent
    agent.steps, agent.k_fold_validation = options["steps"], options["folds"]
    agent.data_preview = options["data_preview"]
    for stage in ("code", "feedback"):
        temperature = options[f"{stage}_temperature"]
        agent[stage].model = options[f"{stage}_model"]
        agent[stage].temp = NO_TEMPERATURE if temperature is None else temperature
    agent.search.num_drafts, agent.search.debug_prob = options["drafts"], options["debug_prob"]
    agent.search.max_debug_depth = options["max_debug_depth"]
    config = prep_cfg(raw)
    prep_agent_workspace(config)
    Path(config.log_dir).mkdir(parents=True, exist_ok=True)
    return config


def task_text(task: Task) -> str:
    """Return the task description for AIDE, with the folders of the run."""
    facts, name = task.facts, task.submission.name
    lines = [task.description.strip(), "", "# Files here", "", "- The data is in `./input` (read only)."]
    if facts.get("sample"):
        lines.append(f"- A submission has the format of `./input/{facts['sample']}`.")
    lines.append(f"- Write the predictions for the test data to `./working/{name}`.")
    return "\n".join(lines) + "\n"
