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


def is_final(status: int | None, message: str) -> bool:
    """Return whether an error of a model's API would occur again if the call were repeated.

    Args:
        status: The HTTP status; None if there was no response.
        message: The text of the error message.
    """
    return status in (401, 402, 403) or (status == 429 and any(word in message.lower() for word in _FINAL_WORDS))


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
    if anthropic := speaks_anthropic(model):
        system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
        messages = [message for message in messages if message["role"] != "system"]
        body: dict[str, Any] = {"model": model.removeprefix("anthropic/"), "max_tokens": max_tokens or 4096}
        warmth = None if temperature is None else min(temperature, 1.0)
        more: dict[str, Any] = {"system": system, "temperature": warmth, "stop_sequences": list(stop)}
        url = f"{os.environ.get('ANTHROPIC_BASE_URL', 'https://api.anthropic.com')}/v1/messages"
        headers = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01"}
    else:
        body = {"model": model}
        if _REASONING.match(model):
            more = {"max_completion_tokens": max_tokens}
        else:
            more = {"max_tokens": max_tokens, "temperature": temperature, "stop": list(stop)}
        url = f"{os.environ.get('OPENAI_BASE_URL', 'https://api.openai.com/v1')}/chat/completions"
        headers = {"Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}"}
    settings = {name: value for name, value in more.items() if value not in (None, "", [])}
    response = _post(url, {**body, "messages": list(messages), **settings}, headers, retries)
    usage, kind = response.get("usage") or {}, ("input", "output") if anthropic else ("prompt", "completion")
    if anthropic:
        text = "".join(part.get("text", "") for part in response.get("content") or ())
    else:
        text = response["choices"][0]["message"].get("content") or ""
    return Answer(text, *(int(usage.get(f"{name}_tokens") or 0) for name in kind))


def _post(url: str, body: dict[str, Any], headers: dict[str, str], retries: int) -> dict[str, Any]:
    import urllib.error
    import urllib.request

    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers}, method="POST"
    )
    refusal = {"redirect_request": lambda *_: None}  # another host would get the key
    opener = urllib.request.build_opener(type("NoRedirects", (urllib.request.HTTPRedirectHandler,), refusal))
    wait = 2.0
    for remaining in range(retries, -1, -1):
        try:
            with opener.open(request, timeout=_CALL_SECONDS) as answer:
                response: dict[str, Any] = json.load(answer)
                return response
        except urllib.error.HTTPError as error:
            message = f"{error.code}: {error.read().decode('utf-8', 'replace')[:2000]}"
            if error.code in (400, 413) and _TOO_LONG.search(message):
                raise PromptTooLong(message) from error
            if error.code in (400, 404) or is_final(error.code, message):
                raise NoMoreCalls(message) from error
        except (OSError, ValueError) as error:
            message = f"{type(error).__name__}: {error}"
        if not remaining:
            raise NoMoreCalls(message)
        print(f"The model does not respond ({message}); retrying in {wait:.1f} s.", file=sys.stderr, flush=True)
        time.sleep(wait)
        wait = min(wait * 2, _LONGEST_WAIT)
    raise AssertionError
