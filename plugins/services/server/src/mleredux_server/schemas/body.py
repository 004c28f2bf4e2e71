"""Request bodies; values that a database can't store are refused."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from mleredux.errors import MlereduxError
from mleredux.models import first_problem
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

DEEPEST = 32
_Model = TypeVar("_Model", bound=BaseModel)


class Body(BaseModel):
    """Base class of request bodies. Unknown fields, text that can't be stored, and excessive nesting are errors."""

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check(cls, value: Any) -> Any:
        check_storable(value)
        return value


def checked(model: type[_Model], hint: str, **fields: Any) -> _Model:
    """Return a model whose fields come from a form or the command line, by the rules of the HTTP API.

    Raises:
        MlereduxError: A field is not valid.
    """
    try:
        return model(**fields)
    except ValidationError as error:
        field, message, _ = first_problem(error)
        raise MlereduxError(f"{field}: {message}.", hint=hint) from error


def check_storable(value: Any) -> None:
    """Check that a JSON document of any depth can be stored.

    Raises:
        ValueError: The document contains a NUL or an unpaired surrogate in text, an invalid number, or too much
            nesting.
    """
    level = [value]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for part in level:
            if isinstance(part, str):
                _check_text(part)
            elif isinstance(part, float) and not math.isfinite(part):
                raise ValueError("NaN and infinity are not valid JSON numbers")
            elif isinstance(part, dict):
                below += part.keys()
                below += part.values()
            elif isinstance(part, (list, tuple)):
                below += part
        if not below:
            return
        level = below
    raise ValueError(f"the JSON is nested more than {DEEPEST} levels deep")


def _check_text(text: str) -> None:
    if "\0" in text:
        raise ValueError("text must not contain NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text must not contain unpaired surrogates") from None
