"""Calls of language models, in the place of MLAgentBench's own, which speak to clients that are no longer made.

Everything else of MLAgentBench asks for text by these functions: the agent by `complete_text`, its tools by that and by
`complete_text_fast`. They keep MLAgentBench's logs of prompts and answers.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import types
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

HUMAN, ASSISTANT = "\n\nHuman:", "\n\nAssistant:"
_STOP = "Observation:"
_FINAL_STATUS = (400, 401, 402, 403, 404)
_WITHOUT_STOP = re.compile(r"(openai/)?(o\d|gpt-5)")
_TOO_LONG = re.compile(r"context.length|too long|maximum.{0,40}tokens", re.IGNORECASE)
_CALL_SECONDS = 600
_LONGEST_WAIT = 60.0


class NoMoreCalls(BaseException):
    """A model will not answer again in this run: the budget is spent, or the request is refused."""


class Models:
    """The models of one run.

    Args:
        options: The agent's options.
        usage: A file to which each call's tokens are written, one line a call.
    """

    def __init__(self, options: dict[str, Any], usage: Path) -> None:
        self._options = options
        self._usage = usage

    def complete_text(self, prompt: str, log_file: str | None, model: str, **more: Any) -> str:
        """The model's answer, up to where it would invent an observation.

        Raises:
            NoMoreCalls: It refuses for good.
        """
        tokens = int(more.get("max_tokens_to_sample", self._options["max_tokens"]))
        temperature = more.get("temperature", self._options["temperature"])
        ask = self._anthropic if model.startswith("claude") else self._openai
        said, read, written = ask(prompt, model, tokens, temperature)
        said = said.split(_STOP)[0]
        note = {"model": model, "log": Path(log_file or "").name, "prompt_tokens": read, "completion_tokens": written}
        with self._usage.open("a", encoding="utf-8") as file:
            file.write(json.dumps(note) + "\n")
        if log_file:
            with Path(log_file).open("a", encoding="utf-8") as file:
                file.write(f"\n===================prompt=====================\n{HUMAN} {prompt} {ASSISTANT}")
                file.write(f"\n==================={model} response ({tokens})=====================\n{said}")
                file.write("\n===================tokens=====================\n")
                file.write(f"Number of prompt tokens: {read}\nNumber of sampled tokens: {written}\n\n\n")
        return said

    def complete_text_fast(self, prompt: str, log_file: str | None = None, **more: Any) -> str:
        """The answer of the model for summaries."""
        model = self._options["fast_llm_name"] or self._options["llm_name"]
        return self.complete_text(prompt, log_file, model, **{"temperature": 0.01, **more})

    def install(self) -> None:
        """Take the place of `MLAgentBench.LLM`, and of what is imported only for names."""
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

    def _openai(self, prompt: str, model: str, tokens: int, temperature: float | None) -> tuple[str, int, int]:
        base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
        body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": prompt}]}
        if _WITHOUT_STOP.match(model):
            body["max_completion_tokens"] = tokens
        else:
            body |= {"max_tokens": tokens, "stop": [_STOP]}
            body |= {} if temperature is None else {"temperature": temperature}
        key = os.environ.get("OPENAI_API_KEY", "")
        found = self._post(f"{base}/chat/completions", body, {"Authorization": f"Bearer {key}"})
        used = found.get("usage") or {}
        said = found["choices"][0]["message"].get("content") or ""
        return said, int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0)

    def _anthropic(self, prompt: str, model: str, tokens: int, temperature: float | None) -> tuple[str, int, int]:
        base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
        body: dict[str, Any] = {"model": model, "max_tokens": tokens, "stop_sequences": [_STOP]}
        body["messages"] = [{"role": "user", "content": prompt}]
        body |= {} if temperature is None else {"temperature": min(temperature, 1.0)}
        headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
        found = self._post(f"{base}/v1/messages", body, headers)
        used = found.get("usage") or {}
        said = "".join(part.get("text", "") for part in found.get("content") or ())
        return said, int(used.get("input_tokens") or 0), int(used.get("output_tokens") or 0)

    def _post(self, url: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        request = urllib.request.Request(
            url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST"
        )
        wait = 2.0
        for left in range(int(self._options["llm_retries"]), -1, -1):
            try:
                with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as answer:
                    found: dict[str, Any] = json.load(answer)
                    return found
            except urllib.error.HTTPError as error:
                said = f"{error.code}: {error.read().decode('utf-8', 'replace')[:2000]}"
                if error.code in (400, 413) and _TOO_LONG.search(said):
                    from MLAgentBench.schema import TooLongPromptError

                    raise TooLongPromptError(said) from error
                if error.code in _FINAL_STATUS:
                    raise NoMoreCalls(said) from error
            except (OSError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
            if not left:
                raise NoMoreCalls(said)
            print(f"The model does not answer ({said}); asking again.", file=sys.stderr, flush=True)
            time.sleep(wait)
            wait = min(wait * 2, _LONGEST_WAIT)
        raise AssertionError
