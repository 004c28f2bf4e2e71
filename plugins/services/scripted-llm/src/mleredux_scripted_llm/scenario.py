"""Scenario files: rules that map requests to replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from mleredux.errors import MlereduxError
from mleredux.models import first_problem
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

Protocol = Literal["openai-chat", "openai-responses", "anthropic", "google"]
Malformed = Literal["html", "empty", "truncated", "other-json"]

_FLAGS = re.MULTILINE | re.DOTALL
_PLACE = re.compile(r"<<(?:file:([^<>\n]+)|([A-Za-z_]\w*))>>")


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _is_regex(value: list[str]) -> list[str]:
    for pattern in value:
        try:
            re.compile(pattern, _FLAGS)
        except re.error as error:
            raise ValueError(f"{pattern!r} is not a valid regular expression: {error}") from None
    return value


Patterns = Annotated[list[str], BeforeValidator(_listed), AfterValidator(_is_regex)]
Names = Annotated[list[str], BeforeValidator(_listed)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class When(_Part):
    """Conditions for a rule to apply; all given ones must hold. Patterns are searched for; `.` matches newlines, `^`
    and `$` match at every line."""

    last: Patterns = []
    """Pattern in messages since the model's last reply (including tool results), else in the system prompt."""
    any: Patterns = []
    """Pattern in any message, including the system prompt and tool calls."""
    system: Patterns = []
    """Pattern in the system prompt."""
    model: Patterns = []
    """Pattern in the model's name."""
    tools: Names = []
    """Tools that must all be offered."""
    has_tools: bool | None = None
    """Whether any tool is offered."""
    protocol: Protocol | None = None
    stream: bool | None = None
    calls: int | None = None
    """Number of earlier calls in the conversation."""
    after: Names = []
    """Rules that must all have been used in this conversation."""
    before: Names = []
    """Rules that must not have been used in this conversation."""


class Call(_Part):
    """A tool call of a reply."""

    name: str
    arguments: dict[str, Any] = {}
    raw_arguments: str | None = None
    """Text sent instead of `arguments`; may be invalid JSON."""


class Usage(_Part):
    """Tokens that a reply reports; missing values default to a quarter of the characters."""

    prompt: int | None = None
    """Input tokens, including cached ones."""
    completion: int | None = None
    cached: int = 0
    reasoning: int = 0


class Error(_Part):
    """An HTTP error instead of a reply."""

    status: int = Field(ge=400, le=599)
    message: str = "The scenario defines this error."
    type: str | None = None
    retry_after: float | None = None
    """Delay to suggest to the client, in seconds."""


class Reply(_Part):
    """A reply."""

    text: str | None = None
    """`<<file:NAME>>` inserts a file from the scenario's folder, `<<name>>` the text of a named group in a pattern."""
    tools: list[Call] = []
    """Tool calls; placeholders in their arguments are filled in as in `text`."""
    finish: Literal["stop", "length", "content_filter"] | None = None
    """The finish reason; by default `stop`, or tool calls."""
    usage: Usage = Usage()
    latency: float = 0
    """Seconds before the first byte."""
    chunk: int = Field(default=24, ge=1)
    """Characters in one piece of a stream."""
    chunk_seconds: float = 0
    """Seconds between the pieces of a stream."""
    error: Error | None = None
    malformed: Malformed | None = None
    """A malformed response: an HTML page, no body, a truncated body (or stream), or JSON with another structure."""

    @model_validator(mode="after")
    def _check_content(self) -> Reply:
        if self.text is None and not self.tools and self.error is None and self.malformed is None:
            raise ValueError("a reply needs `text`, `tools`, `error` or `malformed`")
        return self


class Rule(_Part):
    """A rule that maps requests to replies."""

    name: str = ""
    when: When = When()
    unless: When | None = None
    """The rule does not apply to requests that match this."""
    reply: Reply | None = None
    """The reply, for each use."""
    replies: list[Reply] = []
    """Replies instead of `reply`, one per use, in order."""
    repeat: bool = False
    """Whether the last of `replies` is repeated when all have been used; otherwise the rule is used up."""
    times: int | None = None
    """Maximum number of uses in a conversation."""

    @model_validator(mode="after")
    def _has_replies(self) -> Rule:
        if (self.reply is None) == (not self.replies):
            raise ValueError("a rule needs either `reply` or `replies`")
        return self

    def reply_at(self, use: int) -> Reply | None:
        """Return the reply for a use (from 0); None if the rule is used up."""
        if self.times is not None and use >= self.times:
            return None
        if self.reply is not None:
            return self.reply
        if use < len(self.replies) or self.repeat:
            return self.replies[min(use, len(self.replies) - 1)]
        return None


class Scenario(_Part):
    """A file of rules; the first matching rule replies to a request."""

    models: list[str] = ["scripted"]
    """Models in the model list; requests may name any model."""
    rules: list[Rule]
    files: dict[str, str] = {}
    """Texts inserted by `<<file:NAME>>`; missing ones are read from the scenario's folder."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Scenario:
        names = [rule.name for rule in self.rules if rule.name]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"several rules are named {', '.join(twice)}")
        for rule in self.rules:
            for when in (rule.when, rule.unless or When()):
                if unknown := sorted({*when.after, *when.before} - set(names)):
                    raise ValueError(f"no rule is named {', '.join(unknown)}")
        return self


def load_scenario(source: Path | str | Mapping[str, Any], folder: Path | None = None) -> Scenario:
    """Read a scenario, and every file that it inserts.

    Args:
        source: A YAML file, or its content as a mapping.
        folder: Folder of inserted files; by default that of the scenario's file.

    Raises:
        MlereduxError: The scenario can't be read or is invalid.
    """
    name = "the scenario" if isinstance(source, Mapping) else str(source)
    try:
        if isinstance(source, Mapping):
            content: Any = dict(source)
        else:
            content = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
            folder = folder or Path(source).parent
        scenario = Scenario.model_validate(content)
        wanted = {match[1] for match in _PLACE.finditer(_all_text(scenario)) if match[1]} - set(scenario.files)
        read = {file: ((folder or Path()) / file).read_text(encoding="utf-8").rstrip("\n") for file in sorted(wanted)}
    except ValidationError as error:
        place, message, _ = first_problem(error)
        where = place or "its whole"
        raise MlereduxError(f"In {name}, {where}: {message}.", hint="See the README of the package.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise MlereduxError(f"{name} can't be read: {' '.join(str(error).split())}.") from error
    return scenario.model_copy(update={"files": {**read, **scenario.files}})


def fill(value: Any, groups: Mapping[str, str], files: Mapping[str, str]) -> Any:
    """Replace placeholders with files and matched groups in a string, or in all strings of a value.

    A string that consists of a single group's placeholder becomes a number if the group is numeric.
    """
    if isinstance(value, dict):
        return {name: fill(part, groups, files) for name, part in value.items()}
    if isinstance(value, list):
        return [fill(part, groups, files) for part in value]
    if not isinstance(value, str):
        return value
    whole = _PLACE.fullmatch(value)
    if whole and whole[2] in groups:
        return _as_number(groups[whole[2]])
    return _PLACE.sub(lambda place: files[place[1]] if place[1] else groups.get(place[2], place[0]), value)


def _as_number(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError:
        return text
    return value if isinstance(value, int | float) else text


def _all_text(scenario: Scenario) -> str:
    replies = [reply for rule in scenario.rules for reply in (*rule.replies, *([rule.reply] if rule.reply else []))]
    return "\n".join(
        part
        for reply in replies
        for part in (reply.text or "", *(json.dumps(call.arguments, ensure_ascii=False) for call in reply.tools))
    )
