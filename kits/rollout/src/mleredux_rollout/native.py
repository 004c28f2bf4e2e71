"""For readers of agents' native logs, which are hostile input: no value raises an exception here."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mleredux.plugin.files import open_below

from mleredux_rollout.documents import MAX_BYTES, InvalidRollout, parse_json
from mleredux_rollout.models import (
    FinalMetrics,
    Metrics,
    Observation,
    ObservationResult,
    ToolCall,
)

MAX_LINES = 20_000
"""Maximum number of lines of a log to read."""
MAX_TEXT = 200_000
"""Maximum number of characters that a reader keeps of any text; the middle of longer text is omitted."""


def read_below(output: Path, name: str, *, max_bytes: int = MAX_BYTES, cut: bool = False) -> bytes:
    """Return all bytes of a file in an agent's output folder, without following links in any part of the path.

    Args:
        output: The output folder.
        name: The path relative to the folder, such as `logs/x/journal.json`.
        max_bytes: The size limit.
        cut: Whether a larger file is read up to the limit, which suits line-based logs, or rejected.

    Raises:
        InvalidRollout: The file is missing, a link, not a regular file, under a link, or too large.
    """
    try:
        with open_below(output, name) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise InvalidRollout(f"{name} {error.strerror or error}.") from error
    if len(data) > max_bytes and not cut:
        raise InvalidRollout(f"{name} is larger than the limit of {max_bytes:,} bytes.")
    return data[:max_bytes]


def read_native(output: Path, name: str, *, max_bytes: int = MAX_BYTES) -> Any:
    """Return the value of a JSON file in an agent's output folder; NaN and broken characters are accepted.

    Args:
        output: The output folder.
        name: The path relative to the folder.
        max_bytes: The size limit in bytes.

    Raises:
        InvalidRollout: As for `read_below`, or the file is not JSON, or is nested too deeply.
    """
    return parse_native(read_below(output, name, max_bytes=max_bytes), name)


def parse_native(data: bytes, name: str = "The log") -> Any:
    """Return the value of a JSON document written by an agent.

    Raises:
        InvalidRollout: The document is not JSON, is nested too deeply, or has too many values.
    """
    return parse_json(data, lambda content: json.loads(content.decode("utf-8-sig", "replace")), name)


def read_object(output: Path, name: str) -> dict[str, Any]:
    """Return the object of a JSON file; empty if it can't be read."""
    with contextlib.suppress(InvalidRollout):
        return as_dict(read_native(output, name))
    return {}


def read_lines(output: Path, name: str, limit: int = MAX_LINES) -> list[dict[str, Any]]:
    """Return the objects of a JSON Lines file; lines that can't be read are ignored.

    Args:
        output: The output folder.
        name: The path relative to the folder.
        limit: Maximum number of lines.
    """
    objects = []
    for line in read_log(output, name).split("\n", limit)[:limit]:
        with contextlib.suppress(InvalidRollout):
            objects.append(parse_native(line.encode(), name))
    return as_objects(objects)


def read_log(output: Path, name: str) -> str:
    """Return a text file up to the size limit; empty if it can't be read."""
    with contextlib.suppress(InvalidRollout):
        return read_below(output, name, cut=True).decode("utf-8", "replace")
    return ""


def as_text(value: Any, limit: int = MAX_TEXT) -> str:
    """Return any value as text: other types as JSON, None as the empty string.

    Args:
        value: Any JSON value.
        limit: Maximum number of characters; the middle of longer texts is omitted.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False, default=str)
        except (ValueError, RecursionError):
            value = f"({type(value).__name__})"
    if len(value) > limit:
        half = limit // 2
        value = f"{value[:half]}\n… [{len(value) - 2 * half} characters left out] …\n{value[-half:]}"
    clean: str = value.encode("utf-8", "replace").decode("utf-8")
    return clean


def as_string(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a string from an untrusted document; empty for other types.

    Args:
        value: Any JSON value.
        limit: Maximum number of characters; the middle of longer strings is omitted.
    """
    return as_text(value, limit) if isinstance(value, str) else ""


def as_arguments(value: Any) -> dict[str, Any]:
    """Return the arguments of an untrusted tool call, an object or its JSON; empty for anything else."""
    with contextlib.suppress(ValueError, RecursionError):
        arguments = json.loads(value) if isinstance(value, str) else value
        text = json.dumps(as_dict(arguments), ensure_ascii=False, default=str)
        return as_dict(json.loads(text.encode("utf-8", "replace")))
    return {}


def as_number(value: Any) -> float | None:
    """Return a finite number, or None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_count(value: Any) -> int | None:
    """Return a non-negative integer that fits into 63 bits, or None for anything else."""
    number = as_number(value)
    return int(number) if number is not None and 0 <= number < 2**63 and number == int(number) else None


def as_dict(value: Any) -> dict[str, Any]:
    """Return an object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return an array, or an empty one for anything else."""
    return value if isinstance(value, list) else []


def as_objects(value: Any) -> list[dict[str, Any]]:
    """Return the objects of an array; other elements are ignored."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def as_time(value: Any) -> str | None:
    """Return a step's timestamp from Unix time in seconds or a string in ISO 8601 format; None for anything else."""
    with contextlib.suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            return datetime.fromisoformat(value).isoformat()
        number = as_number(value)
        return None if number is None else datetime.fromtimestamp(number, UTC).isoformat(timespec="milliseconds")
    return None


def usage_of(reported: Any, cost: Any = None) -> Metrics | None:
    """Return the tokens of one call, in the field names used by providers and LiteLLM; None if there are none.

    Args:
        reported: The provider's `usage`: `prompt_tokens` or `input_tokens`, `completion_tokens` or `output_tokens`, and
            tokens read from a cache.
        cost: Cost in US dollars; zero counts as unknown.
    """
    usage = as_dict(reported)
    details = as_dict(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    metrics = Metrics(
        prompt_tokens=_first(usage, "prompt_tokens", "input_tokens"),
        completion_tokens=_first(usage, "completion_tokens", "output_tokens"),
        cached_tokens=_first({**usage, **details}, "cached_tokens", "cache_read_tokens", "cache_read_input_tokens"),
        cost_usd=as_number(cost) or None,
    )
    return metrics if metrics.model_dump(exclude_none=True) else None


def add_usage(calls: Iterable[Metrics | None]) -> Metrics | None:
    """Return the sum of known tokens and cost of several calls; None if nothing is known."""
    known = [call for call in calls if call is not None]

    def total(name: str) -> Any:
        values = [value for call in known if (value := getattr(call, name)) is not None]
        return sum(values) if values else None

    metrics = Metrics(
        prompt_tokens=as_count(total("prompt_tokens")),
        completion_tokens=as_count(total("completion_tokens")),
        cached_tokens=as_count(total("cached_tokens")),
        cost_usd=as_number(total("cost_usd")),
    )
    return metrics if metrics.model_dump(exclude_none=True) else None


def sum_usage(calls: Iterable[Metrics | None], *, cost: Any = None, steps: int | None = None) -> FinalMetrics | None:
    """Return the known totals of a rollout; None if nothing is known.

    Args:
        calls: All calls of the run, including those that created no step.
        cost: Total cost in US dollars, if the log contains it; zero counts as unknown.
        steps: Number of steps.
    """
    total = add_usage(calls) or Metrics()
    final = FinalMetrics(
        total_prompt_tokens=total.prompt_tokens,
        total_completion_tokens=total.completion_tokens,
        total_cached_tokens=total.cached_tokens,
        total_cost_usd=as_number(cost) or total.cost_usd,
        total_steps=steps,
    )
    return final if final.model_dump(exclude_none=True) else None


def _first(usage: dict[str, Any], *names: str) -> int | None:
    return next((count for name in names if (count := as_count(usage.get(name))) is not None), None)


def called(call: str, function: str, arguments: Any, result: Any) -> dict[str, Any]:
    """Return the fields of a `Step` that calls one tool: `tool_calls` and `observation`.

    Args:
        call: The id of the call, unique in the step.
        function: The tool's name.
        arguments: The arguments, an object.
        result: The result, a string.
    """
    return {
        "tool_calls": [ToolCall(tool_call_id=call, function_name=function, arguments=as_arguments(arguments))],
        "observation": Observation(results=[ObservationResult(source_call_id=call, content=as_text(result))]),
    }


def function_tool(name: str, description: str, argument: str) -> dict[str, Any]:
    """Return the definition of a tool with one string argument, for `AgentInfo.tool_definitions`.

    Args:
        name: The name of the tool.
        description: The description of the tool.
        argument: The name of its argument.
    """
    parameters = {"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}
