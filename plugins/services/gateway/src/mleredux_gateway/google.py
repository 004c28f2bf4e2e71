"""Google's generateContent: what of a call is in its URL, and where its numbers are.

The model and whether to stream are no fields of this protocol's requests. Here and in the record they are `model` and
`stream` of the body, as in the other protocols; they are removed again before a request is forwarded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from mleredux_gateway.screening import count

METHODS = {"generateContent": False, "streamGenerateContent": True, "countTokens": False}
"""Supported methods, and whether they stream."""
_PATH = re.compile(r"(?:/v1(?:beta)?)?/models/([^/:]{1,200}):(\w+)")


def asked_of(path: str) -> tuple[str, str] | None:
    """Return the model and the method of a URL's path; None if it is not one of the supported methods."""
    found = _PATH.fullmatch(path)
    return (found[1], found[2]) if found and found[2] in METHODS else None


def path_of(model: str, method: str) -> str:
    """Return the path of a call beneath `/v1beta`."""
    return f"/models/{quote(model, safe='')}:{method}" + ("?alt=sse" if METHODS[method] else "")


def flat(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a request that bound its answers, by their names in the other protocols."""
    config = body.get("generationConfig")
    config = config if isinstance(config, dict) else {}
    # Its maximum includes reasoning.
    return {"max_output_tokens": config.get("maxOutputTokens"), "n": config.get("candidateCount")}


def limited(body: Mapping[str, Any], granted: int) -> dict[str, Any]:
    """Return the fields that state a maximum of tokens."""
    config = dict(body.get("generationConfig") or {})
    thinking = config.get("thinkingConfig") or {}
    if (count(thinking.get("thinkingBudget")) or 0) > granted:
        config["thinkingConfig"] = {**thinking, "thinkingBudget": granted // 2}
    return {"generationConfig": {**config, "maxOutputTokens": granted}}
