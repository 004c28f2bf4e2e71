"""Call language models through the run's gateway, without a library."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

_FINAL_WORDS = ("budget", "insufficient_quota")
_TOO_LONG = re.compile(r"context.length|too long|maximum.{0,40}tokens", re.IGNORECASE)
_REASONING = re.compile(r"(openai/)?(o\d|gpt-5)")
_CALL_SECONDS = 600
_LONGEST_WAIT = 60.0


class NoMoreCalls(BaseException):
    """A model will not answer again in this run: the budget is used up, or the request is rejected."""


class PromptTooLong(Exception):
    """The messages are longer than the model accepts."""


class Answer(NamedTuple):
    """A model's answer, with the tokens that the provider counted."""

    text: str
    """The text of the answer."""
    prompt_tokens: int
    """Tokens of the prompt."""
    completion_tokens: int
    """Tokens of the answer."""


def speaks_anthropic(model: str) -> bool:
    """Return whether a model uses Anthropic's protocol; all others use OpenAI's chat completions."""
    return model.startswith(("claude", "anthropic/"))


def is_final(status: int | None, said: str) -> bool:
    """Return whether an error of a model's API would occur again if the call were repeated.

    Args:
        status: The HTTP status; None if there was no response.
        said: The text of the error message.
    """
    return status in (401, 402, 403) or (status == 429 and any(word in said.lower() for word in _FINAL_WORDS))


def complete(
    model: str,
    messages: Sequence[dict[str, str]],
    *,
    max_tokens: int | None = None,
    temperature: float | None = None,
    stop: Sequence[str] = (),
    retries: int = 5,
) -> Answer:
    """Call a model, retrying after temporary errors.

    Args:
        model: The name of a model that the gateway offers.
        messages: `{"role": "system" | "user" | "assistant", "content": …}`, in order.
        max_tokens: Maximum number of tokens in the answer; None: the provider's maximum, or 4096 with Anthropic's
            protocol.
        temperature: The temperature; None: the provider's default.
        stop: Strings at which the answer ends; not sent to reasoning models, which do not support them.
        retries: Maximum number of retries, after waits of 2 to 60 seconds.

    Raises:
        NoMoreCalls: The budget is used up, the request is rejected, or no attempt got an answer.
        PromptTooLong: The messages are longer than the model accepts.
    """
    if speaks_anthropic(model):
        return _anthropic(model, messages, max_tokens, temperature, stop, retries)
    body: dict[str, Any] = {"model": model, "messages": list(messages)}
    if _REASONING.match(model):
        body |= {} if max_tokens is None else {"max_completion_tokens": max_tokens}
    else:
        body |= {} if max_tokens is None else {"max_tokens": max_tokens}
        body |= {} if temperature is None else {"temperature": temperature}
        body |= {"stop": list(stop)} if stop else {}
    base = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1")
    key = os.environ.get("OPENAI_API_KEY", "")
    found = _post(f"{base}/chat/completions", body, {"Authorization": f"Bearer {key}"}, retries)
    used = found.get("usage") or {}
    said = found["choices"][0]["message"].get("content") or ""
    return Answer(said, int(used.get("prompt_tokens") or 0), int(used.get("completion_tokens") or 0))


def _anthropic(
    model: str,
    messages: Sequence[dict[str, str]],
    max_tokens: int | None,
    temperature: float | None,
    stop: Sequence[str],
    retries: int,
) -> Answer:
    body: dict[str, Any] = {
        "model": model.removeprefix("anthropic/"),
        "max_tokens": max_tokens or 4096,
        "messages": [message for message in messages if message["role"] != "system"],
    }
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    body |= {"system": system} if system else {}
    body |= {} if temperature is None else {"temperature": min(temperature, 1.0)}
    body |= {"stop_sequences": list(stop)} if stop else {}
    base = os.environ.get("ANTHROPIC_BASE_URL", "https://api.anthropic.com")
    headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
    found = _post(f"{base}/v1/messages", body, headers, retries)
    used = found.get("usage") or {}
    said = "".join(part.get("text", "") for part in found.get("content") or ())
    return Answer(said, int(used.get("input_tokens") or 0), int(used.get("output_tokens") or 0))


def _post(url: str, body: dict[str, Any], headers: dict[str, str], retries: int) -> dict[str, Any]:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST"
    )
    wait = 2.0
    for left in range(retries, -1, -1):
        try:
            with urllib.request.urlopen(request, timeout=_CALL_SECONDS) as answer:
                found: dict[str, Any] = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            said = f"{error.code}: {error.read().decode('utf-8', 'replace')[:2000]}"
            if error.code in (400, 413) and _TOO_LONG.search(said):
                raise PromptTooLong(said) from error
            if error.code in (400, 404) or is_final(error.code, said):
                raise NoMoreCalls(said) from error
        except (OSError, ValueError) as error:
            said = f"{type(error).__name__}: {error}"
        if not left:
            raise NoMoreCalls(said)
        print(f"The model does not respond ({said}); retrying in {wait:.1f} s.", file=sys.stderr, flush=True)
        time.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT)
    raise AssertionError
