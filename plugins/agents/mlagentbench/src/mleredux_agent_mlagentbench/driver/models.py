"""Calls to language models, which replace those of MLAgentBench because its clients are no longer maintained.

All other code of MLAgentBench requests text through these functions: the agent through `complete_text`, its tools also
through `complete_text_fast`. They write MLAgentBench's logs of prompts and answers.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

from mleredux_agentkit import PromptTooLong, complete

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
_STOP = "Observation:"


class Models:
    """The models of one run.

    Args:
        options: The agent's options.
        usage: A file that receives each call's tokens, one line per call.
    """

    def __init__(self, options: dict[str, Any], usage: Path) -> None:
        self._options = options
        self._usage = usage

    def complete_text(self, prompt: str, log_file: str | None, model: str, **more: Any) -> str:
        """Return the model's answer, truncated before an invented observation.

        Raises:
            NoMoreCalls: The model refuses permanently.
        """
        tokens = int(more.get("max_tokens_to_sample", self._options["max_tokens"]))
        try:
            answer = complete(
                model,
                [{"role": "user", "content": prompt}],
                max_tokens=tokens,
                temperature=more.get("temperature", self._options["temperature"]),
                stop=[_STOP],
                retries=int(self._options["llm_retries"]),
            )
        except PromptTooLong as error:
            from MLAgentBench.schema import TooLongPromptError

            raise TooLongPromptError(str(error)) from error
        text, read, written = answer
        text = text.split(_STOP)[0]
        note = {"model": model, "log": Path(log_file or "").name, "prompt_tokens": read, "completion_tokens": written}
        with self._usage.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        if log_file:
            with Path(log_file).open("a", encoding="utf-8") as file:
                file.write(f"\n===================prompt=====================\n{HUMAN} {prompt} {ASSISTANT}")
                file.write(f"\n==================={model} response ({tokens})=====================\n{text}")
                file.write("\n===================tokens=====================\n")
                file.write(f"Number of prompt tokens: {read}\nNumber of sampled tokens: {written}\n\n\n")
        return text

    def complete_text_fast(self, prompt: str, log_file: str | None = None, **more: Any) -> str:
        """Return the response of the model for summaries."""
        model = self._options["fast_llm_name"] or self._options["llm_name"]
        return self.complete_text(prompt, log_file, model, **{"temperature": 0.01, **more})

    def install(self) -> None:
        """Replace `MLAgentBench.LLM`, and modules of which only names are imported."""
        module = types.ModuleType("MLAgentBench.LLM")
        for name, value in {
            "complete_text": self.complete_text,
            "complete_text_fast": self.complete_text_fast,
            "complete_text_claude": self.complete_text,
        }.items():
            setattr(module, name, value)
        sys.modules[module.__name__] = module
        signs = types.ModuleType("anthropic")
        signs.HUMAN_PROMPT, signs.AI_PROMPT = HUMAN, ASSISTANT  # type: ignore[attr-defined]
        sys.modules["anthropic"] = signs
