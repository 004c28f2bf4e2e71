"""The base class of all models."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from pydantic_core import from_json

ID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""The regular expression that ids match."""
MAX_MARKS = 4_000_000
"""Maximum of `count_marks` for a document that may come from another user: values take more memory than their text."""
MAX_EVENT_MARKS = MAX_MARKS // 4
"""Maximum of `count_marks` for an event log, whose events are checked one by one and take more memory than values."""


class Model(BaseModel):
    """A frozen pydantic model that rejects unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)


_SHOWN = 60
"""Maximum number of characters of a field's name in messages."""
_OTHER_VERSION = "of another version"
AnyModel = TypeVar("AnyModel", bound=BaseModel)


def _accept_text(value: Any, handler: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    try:
        return handler(value)
    except ValidationError:
        if info.context == _OTHER_VERSION and isinstance(value, str):
            return value
        raise


Open = WrapValidator(_accept_text)
"""Used next to a `Literal` in an annotation, so that `read` also accepts other strings, which later versions may
add.
"""


def read(model: type[AnyModel], document: Any) -> AnyModel:
    """Return the model of a document written by another version; unknown fields and strings are kept.

    Args:
        model: The class of the model.
        document: The parsed JSON document.

    Raises:
        pydantic.ValidationError: A known field is missing, or has the wrong type.
    """
    return model.model_validate(document, extra="allow", context=_OTHER_VERSION)


def count_marks(content: bytes) -> int:
    """Return the number of commas and opening brackets in a JSON document, which bounds its number of values."""
    return sum(content.count(mark) for mark in (b",", b"[", b"{"))


def parse(content: bytes, max_marks: int = MAX_MARKS) -> Any:
    """Return the value of a JSON document, tolerating common deviations from the standard.

    A byte order mark is ignored, NaN and infinities become null, and invalid Unicode is replaced.

    Args:
        content: The document.
        max_marks: Maximum of `count_marks`.

    Raises:
        ValueError: The document is not JSON, is nested too deeply, or has too many values.
    """
    if len(content) > max_marks and count_marks(content) > max_marks:  # counting takes time, even for few
        raise ValueError("it has too many values")
    try:
        return from_json(content, allow_inf_nan=False)
    except ValueError:
        pass
    try:
        plain = json.loads(content.decode("utf-8-sig", "replace"), parse_constant=lambda _name: None)
        return from_json(json.dumps(plain, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


class FieldTwice(ValueError):
    """A field occurs twice in one object of a JSON document."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise FieldTwice(f"the field {name[:_SHOWN]!r} occurs twice in one object")
        fields[name] = value
    return fields


def read_json(content: str | bytes) -> Any:
    """Return the value of a JSON document that a user wrote.

    Raises:
        FieldTwice: A field occurs twice in one object.
        ValueError: The document is not JSON.
    """
    return json.loads(content, object_pairs_hook=_unique)


class Problem(NamedTuple):
    """A validation problem.

    Attributes:
        place: The path of the field, joined by dots; empty for the whole document.
        message: The end of a sentence, without the period.
        value: The invalid value.
    """

    place: str
    message: str
    value: Any


def plain_message(details: Any) -> str:
    """Return pydantic's message about a field as the end of a sentence, without the period and names of classes."""
    message = str(details["msg"]).replace("valid tuple", "list").removeprefix("Value error, ")
    return message.rstrip(".").partition(" or instance of ")[0]


def first_problem(error: ValidationError) -> Problem:
    """Return the first problem in a document, for an error message."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"] if part != "[key]")
    return Problem(place, plain_message(first), first["input"])
