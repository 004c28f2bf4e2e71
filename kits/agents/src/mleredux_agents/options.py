"""For agent plugins: validate options, and define sets of libraries for solutions."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, TypeVar

from mleredux.errors import MlereduxError
from mleredux.models import first_problem
from pydantic import BaseModel, ValidationError

_Options = TypeVar("_Options", bound=BaseModel)


def read_options(agent: str, model: type[_Options], values: dict[str, Any]) -> _Options:
    """Validate the options of an agent with its model.

    Args:
        agent: The agent's id, for the message.
        model: The pydantic model of the options.
        values: All options of a run.

    Raises:
        MlereduxError: An option is invalid; the message states which.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        name, message, value = first_problem(error)
        raise MlereduxError(
            f"Agent {agent} does not accept {name or 'options'}={value!r}: {message[:1].lower() + message[1:]}.",
            hint=f"`mleredux agent show {agent}` shows its options and their defaults.",
        ) from None


class Libraries(NamedTuple):
    """Libraries installed for solutions."""

    python: tuple[str, ...] = ()
    """Requirements."""
    debian: tuple[str, ...] = ()
    """Debian packages required by these libraries."""


_TABLES = ("pandas==3.1.1", "scikit-learn==1.9.1")
LIBRARIES = {
    "none": Libraries(),
    "minimal": Libraries(_TABLES),
    "tabular": Libraries((*_TABLES, "lightgbm==4.7.0"), ("libgomp1",)),
    "torch": Libraries((*_TABLES, "torch>=2.5,<3", "torchvision>=0.20,<1", "timm>=1,<2")),
    "text": Libraries((*_TABLES, "torch>=2.5,<3", "transformers>=4.50,<6")),
}
"""Sets of libraries by name."""
_REQUIREMENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[A-Za-z0-9,._-]+\])?\s*[=<>~!]=?\s*[A-Za-z0-9.*+!<>=, _-]+")


def libraries(requested: str) -> Libraries:
    """Parse an option `libraries`.

    Args:
        requested: Names of sets, or requirements with versions, separated by semicolons:
            `tabular; statsmodels==0.14.5`.

    Raises:
        ValueError: A part is neither a set nor a requirement.
    """
    python: dict[str, None] = {}
    debian: dict[str, None] = {}
    for part in filter(None, (piece.strip() for piece in requested.split(";"))):
        if part in LIBRARIES:
            python.update(dict.fromkeys(LIBRARIES[part].python))
            debian.update(dict.fromkeys(LIBRARIES[part].debian))
        elif _REQUIREMENT.fullmatch(part):
            python[part] = None
        else:
            raise ValueError(
                f"{part!r} is neither a set of libraries ({', '.join(LIBRARIES)}) nor a requirement with a version"
            )
    return Libraries(tuple(python), tuple(debian))
