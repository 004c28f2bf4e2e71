"""Run mini-swe-agent with its own configuration and the task, using the run's gateway for model calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import litellm
from minisweagent.agents.default import DefaultAgent
from minisweagent.config import get_config_from_spec
from minisweagent.environments.local import LocalEnvironment
from minisweagent.models.litellm_model import LitellmModel
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel
from mleredux_agentkit import Task, is_final, speaks_anthropic, write

LOG = "mini-swe-agent.traj.json"
_SHORTEST = 5


class Environment(LocalEnvironment):  # type: ignore[misc]
    """Runs commands in this container until the deadline.

    Attributes:
        task: The task, which knows the remaining time.
    """

    task: Task

    def execute(self, action: dict[str, Any], cwd: str = "", *, timeout: int | None = None) -> dict[str, Any]:
        """Run a command."""
        left = max(_SHORTEST, int(self.task.left))
        result: dict[str, Any] = super().execute(action, cwd, timeout=min(timeout or self.config.timeout, left))
        return result


class Refused(Exception):
    """The gateway refuses a call permanently: the budget is spent, or a replay differs."""


class Refusing:
    """A model whose refused calls are not retried.

    LiteLLM turns status 403 of OpenAI's protocol into an ordinary error, after which mini-swe-agent retries ten times.
    """

    abort_exceptions = (*LitellmModel.abort_exceptions, litellm.exceptions.BadRequestError, ImportError, Refused)

    def _query(self, messages: list[dict[str, str]], **kwargs: Any) -> Any:
        try:
            return super()._query(messages, **kwargs)  # type: ignore[misc]
        except litellm.exceptions.APIError as error:
            if is_final(error.status_code, str(error)):
                raise Refused(str(error)) from error
            raise


class ToolModel(Refusing, LitellmModel):  # type: ignore[misc]
    """A model that acts by calling a tool."""


class TextModel(Refusing, LitellmTextbasedModel):  # type: ignore[misc]
    """A model that acts through code blocks in its text."""


class Agent(DefaultAgent):  # type: ignore[misc]
    """The agent, whose trajectory is written atomically."""

    def add_messages(self, *messages: dict[str, Any]) -> list[dict[str, Any]]:
        """Add messages, and show them in the run's log."""
        for message in messages:
            text = message.get("content") or ""
            commands = [action.get("command") for action in message.get("extra", {}).get("actions", [])]
            shown = "\n".join([str(text), *(f"$ {command}" for command in commands)])
            print(f"[{message.get('role')}] {shown[:4000]}", flush=True)
        added: list[dict[str, Any]] = super().add_messages(*messages)
        return added

    def save(self, path: Path | None, *extra_dicts: dict[str, Any]) -> dict[str, Any]:
        """Write the trajectory."""
        data: dict[str, Any] = self.serialize(*extra_dicts)
        if path:
            write(path, json.dumps(data, indent=1))
        return data


def work(task: Task) -> str:
    """Run the agent.

    Returns:
        Its exit status, as reported by mini-swe-agent.
    """
    options = task.options
    text = options["actions"] == "text"
    config = get_config_from_spec("mini_textbased.yaml" if text else "mini.yaml")
    arguments: dict[str, Any] = {**config["model"].get("model_kwargs", {})}
    for name in ("temperature", "max_tokens"):
        if options[name] is not None:
            arguments[name] = options[name]
    settings = {**config["model"], "model_name": model_name(options["model"]), "model_kwargs": arguments}
    if model_name(options["model"]).startswith("anthropic/"):
        settings["set_cache_control"] = "default_end"
    litellm.suppress_debug_info = True
    environment = Environment(
        **{**config["environment"], "cwd": str(task.output_dir), "timeout": options["command_timeout"]},
    )
    environment.task = task
    own = {name: config["agent"][name] for name in ("system_template", "instance_template")}
    agent = Agent(
        (TextModel if text else ToolModel)(**settings),
        environment,
        **own,
        step_limit=options["steps"],
        cost_limit=0,
        wall_time_limit_seconds=max(1, int(task.left)),
        output_path=task.output_dir / "logs" / LOG,
    )
    try:
        return str(agent.run(task.prompt("solve a machine learning task.")).get("exit_status", "ended"))
    except Exception as error:  # the traceback is in its trajectory
        return f"{type(error).__name__}: {error}"


def model_name(name: str) -> str:
    """Return the model's name for LiteLLM: Anthropic's models use Anthropic's protocol, all others OpenAI's."""
    if speaks_anthropic(name):
        return f"anthropic/{name.removeprefix('anthropic/')}"
    return f"openai/{name.removeprefix('openai/')}"
