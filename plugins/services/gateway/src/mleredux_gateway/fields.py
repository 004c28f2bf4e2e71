"""The fields that agents may send to providers, by protocol: whatever is not listed here is refused unless granted.

Deliberately excluded are fields that reach the network, another run or another model, that run code on the provider's
side, or that are billed beyond the maximum set by the gateway (predictions, audio, PDFs, faster tiers).

The fields are listed in `fields.toml`. Sources: the request types of the clients openai 2.54 and anthropic 2.12, and
the requests of the agents in this repository.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mleredux_llm_protocols import Kind


@dataclass(frozen=True)
class Kept:
    """A kind of value without parts."""

    what: str


SCALAR = Kept("a string, a number or a boolean")
COUNT = Kept("a positive integer")
FREE = Kept("any JSON")
SCHEMA = Kept("a JSON schema without references to other documents")
IMAGE = Kept("an image as a data URL (`data:image/…;base64,…`)")
PICTURE = Kept("an image in base64")
OWN = Kept("the id of a response that this run received")
KINDS = {
    "scalar": SCALAR,
    "count": COUNT,
    "free": FREE,
    "schema": SCHEMA,
    "image": IMAGE,
    "picture": PICTURE,
    "own": OWN,
}
"""Kinds of values by their names in `fields.toml`."""


@dataclass(frozen=True)
class Typed:
    """An object whose fields depend on its `type`.

    Attributes:
        default: The type of objects that do not state one.
        types: Fields by type, given as names or patterns.
    """

    default: str | None
    types: dict[str, dict[str, Any]]


def _shape(described: Any) -> Any:
    """Return a shape that `fields.toml` describes.

    A shape is one of the above; a dict: an object with these fields; a list: a list of this shape; a tuple: any of
    these; a frozenset: a string that must be one of these values.
    """
    if isinstance(described, str):
        return KINDS[described] if described in KINDS else _shape(_TABLES["shapes"][described])
    if isinstance(described, list):
        return [_shape(item) for item in described]
    if "any" in described:
        return tuple(_shape(alternative) for alternative in described["any"])
    if "one_of" in described:
        return frozenset(described["one_of"])
    if "by_type" in described:
        return Typed(described.get("default"), _shape(described["by_type"]))
    fields: dict[str, Any] = dict.fromkeys(described.get("scalars", ()), SCALAR)
    for name in described.get("with", ()):
        fields |= _shape(name)
    return fields | {name: _shape(field) for name, field in described.items() if name not in ("scalars", "with")}


_TABLES = tomllib.loads(Path(__file__).with_name("fields.toml").read_text(encoding="utf-8"))
FIELDS: dict[Kind, dict[str, Any]] = _shape(_TABLES["protocols"])
BETAS = tuple(_TABLES["betas"])
"""Accepted values of `anthropic-beta` and `openai-beta`; others are dropped, and noted."""
