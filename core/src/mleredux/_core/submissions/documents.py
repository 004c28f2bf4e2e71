"""Submissions that are JSON documents: parsed strictly, within limits, with all problems in one sentence."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import BinaryIO, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json

from mleredux._core.submissions.files import open_regular
from mleredux.errors import InvalidSubmission, TaskBroken
from mleredux.models.base import FieldTwice, plain_message, read_json
from mleredux.models.formats import counted

MAX_DOCUMENT_BYTES = 1 << 20
_SHOWN = 60
_MOST_PROBLEMS = 20
_Document = TypeVar("_Document", bound=BaseModel)


def name_of(model: type[BaseModel]) -> str:
    """Return a model's name as used in submission schemas: `module:name`."""
    return f"{model.__module__}:{model.__qualname__}"


def find_model(name: str) -> type[BaseModel]:
    """Return the model with this name.

    Raises:
        TaskBroken: The name does not exist, or is not a model.
    """
    module, _, attribute = name.partition(":")
    try:
        model = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise TaskBroken(f"The submission model {name} can't be found: {error}.") from error
    if not (isinstance(model, type) and issubclass(model, BaseModel)):
        raise TaskBroken(f"{name} is not a pydantic model.")
    return model


def read_document(model: type[_Document], path: Path, name: str | None = None) -> _Document:
    """Return the document in a file written by an agent.

    Args:
        model: The type of the document.
        path: The file.
        name: The name of the file in error messages; None: its own name.

    Raises:
        InvalidSubmission: The file can't be read or is not a valid document; the message names the fields and problems.
    """
    name = name or path.name
    try:
        with open_regular(path) as file:
            return parse_document(model, file, name)
    except OSError as error:
        raise InvalidSubmission(f"{name} {error.strerror or error}.") from None


def parse_document(model: type[_Document], file: BinaryIO, name: str) -> _Document:
    """Return the document in an open file.

    Args:
        model: The type of the document.
        file: The open file.
        name: The name of the file in error messages.

    Raises:
        InvalidSubmission: As for `read_document`.
    """
    if os.fstat(file.fileno()).st_size > MAX_DOCUMENT_BYTES:
        raise InvalidSubmission(f"{name} is larger than {MAX_DOCUMENT_BYTES >> 20} MiB.")
    data = file.read(MAX_DOCUMENT_BYTES + 1)[:MAX_DOCUMENT_BYTES]
    if not data.strip():
        raise InvalidSubmission(f"{name} is empty.")
    try:
        from_json(data, allow_inf_nan=False, cache_strings="none")  # also rejects deep nesting
        value = read_json(data)
    except FieldTwice as error:
        raise InvalidSubmission(f"{name} is ambiguous: {error}.") from None
    except (ValueError, RecursionError) as error:
        raise InvalidSubmission(f"{name} is not valid JSON (NaN is invalid): {_plain(str(error))}.") from None
    if not isinstance(value, dict):
        raise InvalidSubmission(f"{name} must contain one JSON object.")
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        raise InvalidSubmission(f"{name}: {_problems(error)}") from None


def _problems(error: ValidationError) -> str:
    """Return the problems with their locations, and the number of further problems."""
    errors = error.errors(include_url=False, include_input=False, include_context=False)
    problems = [_problem(problem) for problem in errors[:_MOST_PROBLEMS]]
    more = len(errors) - len(problems)
    further = f" ({counted(more, 'more problem')})" if more else ""
    return f"{'; '.join(problems)}{further}."


def _problem(error: ErrorDetails) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{_bare(part)}" for part in error["loc"]).lstrip(".")
    message = _plain(plain_message(error))
    return f"{place}: {message}" if place else message


def _bare(text: str) -> str:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return shown if shown.isidentifier() else repr(shown)


def _plain(text: str) -> str:
    return " ".join(text.split())[:300].rstrip(".")
