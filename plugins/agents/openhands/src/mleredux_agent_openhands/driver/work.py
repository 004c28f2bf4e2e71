"""An autonomous conversation of OpenHands: it gets the task, runs tools in the same sandbox, and logs every event."""

from __future__ import annotations

import json
import os
import threading
from importlib.metadata import version
from typing import Any

from mleredux_agentkit import Task, speaks_anthropic, write

_INTRODUCTION = """\
Solve a machine-learning task autonomously. Train models on the data provided, evaluate them on a part of the data \
that you hold out, and submit predictions. Write a first valid submission early, then improve it. Keep the code that \
creates the submission in the folder `code`. Run long programs with a timeout that fits into the time left. Stop when \
you can't improve the submission any further."""
_REMINDER = """\
There is no file {} yet, so nothing would be graded. No one else will act: continue, and finish when the file \
exists and is valid."""


class Work:
    """The conversation and its log.

    Args:
        task: The task in the sandbox.
    """

    def __init__(self, task: Task) -> None:
        self._task, self._logs = task, task.logs("openhands")
        self._lock = threading.Lock()
        self._events = (self._logs / "events.jsonl").open("a", encoding="utf-8", errors="replace")
        self.conversation = self._converse()

    def run(self) -> None:
        """Work until the agent finishes or its iterations are used up.

        Raises:
            Exception: OpenHands gave up, usually because the language model is unreachable.
        """
        conversation, task = self.conversation, self._task
        conversation.send_message(task.prompt(_INTRODUCTION))
        conversation.run()
        for _ in range(int(task.options["reminders"])):
            if task.submission.is_file() or self._status() != "finished":
                break
            conversation.send_message(_REMINDER.format(task.submission))
            conversation.run()
        print(f"OpenHands is {self._status()}.", flush=True)

    def send_message(self, text: str) -> None:
        """Send a message to the agent while it works; it is read after the current step."""
        self.conversation.send_message(text)

    def save_usage(self) -> None:
        """Write tokens and cost so far, per call and in total."""
        stats = self.conversation.conversation_stats.model_dump(mode="json")
        text = json.dumps({"openhands_version": version("openhands-sdk"), **stats}, indent=1)
        with self._lock:
            write(self._logs / "usage.json", text + "\n")

    def _status(self) -> str:
        return str(self.conversation.state.execution_status.value)

    def _note(self, event: Any) -> None:
        with self._lock:
            self._events.write(event.model_dump_json() + "\n")
            self._events.flush()
        if event.source == "agent":
            self.save_usage()

    def _converse(self) -> Any:
        from openhands.sdk import Conversation
        from openhands.tools.preset.default import get_default_agent

        return Conversation(
            agent=get_default_agent(llm=language_model(self._task.options), cli_mode=True),
            workspace=str(self._task.output_dir),
            callbacks=[self._note],
            max_iteration_per_run=int(self._task.options["max_iterations"]),
        )


def language_model(options: dict[str, Any]) -> Any:
    """Return the model from the options, at the URL from the environment.

    Models of providers that LiteLLM does not know are called with OpenAI's protocol.
    """
    from litellm import get_llm_provider
    from litellm.exceptions import BadRequestError
    from openhands.sdk import LLM
    from pydantic import SecretStr

    model = str(options["model"])
    try:
        get_llm_provider(model)
    except BadRequestError:
        model = f"openai/{model}"
    kind = "ANTHROPIC" if speaks_anthropic(model) else "OPENAI"
    key = os.environ.get(f"{kind}_API_KEY")
    chosen = {name: options[name] for name in ("temperature", "reasoning_effort", "max_output_tokens")}
    return LLM(
        usage_id="agent",
        model=model,
        api_key=SecretStr(key) if key else None,
        base_url=os.environ.get(f"{kind}_BASE_URL"),
        timeout=int(options["llm_timeout"]),
        num_retries=int(options["llm_retries"]),
        **chosen,
    )
