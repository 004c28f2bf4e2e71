"""Redirect AIDE's model calls to the run's gateway."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from aide import agent as aide_agent
from aide import backend
from aide.backend import backend_anthropic, backend_openai
from mleredux_agentkit import NoMoreCalls, is_final

NO_TEMPERATURE = -1.0
"""Represents None in AIDE's configuration, whose temperatures are numbers."""
LONGEST_WAIT = 60.0


def use_gateway(options: dict[str, Any]) -> None:
    """Make AIDE call the gateway at `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL`, regardless of the model's name.

    By default AIDE calls OpenAI's public API for all models with OpenAI names, uses hard-coded URLs for Gemini and
    OpenRouter, and retries calls forever, even if a budget is spent.
    """
    if base := os.environ.get("OPENAI_BASE_URL"):
        backend_openai.OPENAI_BASE_URL = base
        backend.provider_to_query_func["gemini"] = backend_openai.query
        backend.provider_to_query_func["openrouter"] = backend_openai.query
    backend_openai.backoff_create = call
    backend_anthropic.backoff_create = call
    original = backend.query

    def query(**arguments: Any) -> Any:
        if arguments.get("temperature") == NO_TEMPERATURE:
            arguments["temperature"] = None
        return original(**{"max_tokens": options.get("max_tokens"), **arguments})

    aide_agent.query = query


def call(create: Callable[..., Any], retried: tuple[type[Exception], ...], *args: Any, **arguments: Any) -> Any:
    """Call a model; retry after transient errors.

    Raises:
        NoMoreCalls: The error is permanent.
    """
    wait = 1.5
    while True:
        try:
            return create(*args, **arguments)
        except Exception as error:
            if is_final(getattr(error, "status_code", None), str(error)):
                raise NoMoreCalls(str(error)) from error
            if not isinstance(error, retried):
                raise
            print(f"the model does not respond ({error}); retrying in {wait:.1f} s", flush=True)
            time.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT)
