"""Check requests against the fields that agents may send: fields that are neither listed nor granted are refused."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from mleredux.models.formats import is_visible
from mleredux_llm_protocols import Kind

from mleredux_gateway.fields import COUNT, FIELDS, IMAGE, OWN, PICTURE, SCALAR, SCHEMA, Kept, Typed

_PLAIN = re.compile(r"[\w$:-]{1,64}")
_DATA = re.compile(r"data:image/(png|jpe?g|gif|webp|bmp|heic|heif|avif|tiff);base64,")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$id")
_DIALECT = re.compile(r"https?://json-schema\.org/(schema|draft[-/][\w-]+/schema)#?")
_NAMES = {"type", "id", "status"}
_COMPLETE = {"message": ("role", "content"), "reasoning": ("encrypted_content",)}
"""Fields that an item with an id must also contain, so that the provider does not look it up; for other types, any
field.
"""
_LARGEST = 1 << 31
_SHOWN = 8


@dataclass(frozen=True)
class Refusal:
    """Something that a request may not contain.

    Attributes:
        field: Its location without indices, such as `tools.web_search`, which is also the name by which it is granted.
        why: A sentence that states the reason.
    """

    field: str
    why: str


@dataclass
class Screened:
    """The content of a request that matters for forwarding it.

    Attributes:
        refusals: Refusals; empty if it may be forwarded.
        images: Number of images.
        image_characters: Number of characters of images in the request's body.
        references: Ids of earlier responses, or parts of them, that the provider adds to the prompt.
        nulls: Whether fields or items that are null were removed from the body.
    """

    refusals: list[Refusal] = field(default_factory=list)
    images: int = 0
    image_characters: int = 0
    references: list[str] = field(default_factory=list)
    nulls: bool = False


def screen(kind: Kind, body: dict[str, Any], known: Callable[[str], bool], granted: Iterable[str] = ()) -> Screened:
    """Check a request, and remove null values from it: providers treat them as absent, and so does the check.

    Args:
        kind: The protocol.
        body: The request.
        known: Returns whether this run received a response, or a part of one, with this id.
        granted: Names or patterns of fields that the upstream's configuration grants.
    """
    check = _Check(known, tuple(granted))
    if not isinstance(body.get("model"), str) or not body["model"]:
        check.result.refusals.append(Refusal("model", "Specify a model."))
    check.value(FIELDS[kind], body, "")
    return check.result


class _Check:
    def __init__(self, known: Callable[[str], bool], granted: tuple[str, ...]) -> None:
        self.result = Screened()
        self._known, self._granted = known, granted

    def refuse(self, place: str, why: str) -> None:
        if len(self.result.refusals) < _SHOWN and not is_granted(place, self._granted):
            self.result.refusals.append(Refusal(place, why))

    def value(self, shape: Any, value: Any, place: str) -> None:
        """Check a value against its shape; null means that a field is not set."""
        if value is None or is_granted(place, self._granted):
            return
        if isinstance(shape, tuple):
            shape = next((alternative for alternative in shape if _matches(alternative, value)), shape[-1])
        if not isinstance(shape, Kept):
            self.result.nulls |= _drop_nulls(value)
        if isinstance(shape, Kept):
            self._kept(shape, value, place)
        elif isinstance(shape, frozenset):
            # For an empty set, no value is allowed except false, which means that a field is not set.
            if not (value is False and not shape) and not (isinstance(value, str) and value in shape):
                self._not_granted(place)
        elif isinstance(shape, list):
            self._list(shape, value, place)
        elif not isinstance(value, dict):
            self.refuse(place, f"`{place}` must be an object.")
        elif isinstance(shape, Typed):
            self._typed(shape, value, place)
        else:
            self._object(shape, value, place)

    def _object(self, shape: dict[str, Any], value: dict[str, Any], place: str) -> None:
        for name, part in value.items():
            below = f"{place}.{plain(name)}" if place else plain(name)
            if name in shape:
                self.value(shape[name], part, below)
            else:
                self._not_granted(below)

    def _list(self, shape: list[Any], value: Any, place: str) -> None:
        if not isinstance(value, list):
            self.refuse(place, f"`{place}` must be a list.")
        elif not shape:
            if value:
                self._not_granted(place)
        else:
            for item in value:
                self.value(shape[0], item, place)

    def _typed(self, shape: Typed, value: dict[str, Any], place: str) -> None:
        named = value.get("type", shape.default)
        fields = next((shape_of for name, shape_of in shape.types.items() if fnmatchcase(str(named), name)), None)
        if fields is None:
            below = f"{place}.{plain(str(named if named is not None else next(iter(value), 'untyped')))}"
            return self._not_granted(below)
        if named == "shell" and value.get("environment") is None:  # otherwise the provider runs it
            self.refuse(f"{place}.environment", f"`{place}.environment` must be local.")
        if named == "base64" and isinstance(value.get("data"), str):
            self._image(value["data"])
        self._object({"type": SCALAR, **fields}, value, place)
        if fields.get("id") is SCALAR and _is_reference(str(named), value):
            self.value(OWN, value.get("id"), f"{place}.id")

    def _kept(self, shape: Kept, value: Any, place: str) -> None:
        if isinstance(value, str) and (shape is PICTURE or (shape is IMAGE and _DATA.match(value))):
            self._image(value)
        elif shape is OWN and isinstance(value, str) and self._known(value):
            self.result.references.append(value)
        elif shape is COUNT and count(value) is None:
            self.refuse(place, f"`{place}` must be a positive integer.")
        elif shape is IMAGE and isinstance(value, str):
            self.refuse(place, f"`{place}` must be {shape.what}: the gateway does not grant remote files.")
        elif shape is OWN:
            self.refuse(place, f"`{place}`: this run received no response with that id.")
        elif shape is SCHEMA and (isinstance(value, str) or _refers(value)):
            self.refuse(place, f"`{place}` must be {shape.what}.")
        elif shape is SCALAR and isinstance(value, dict | list):
            self._not_granted(place)

    def _image(self, value: str) -> None:
        self.result.images += 1
        self.result.image_characters += len(value)

    def _not_granted(self, place: str) -> None:
        self.refuse(place, f"The gateway does not allow `{place}`: omit it, or grant it with --allow-llm-field.")


def count(value: Any) -> int | None:
    """Return a positive integer, even if written as a float (`100.0`); None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and 1 <= value < _LARGEST else None


def is_granted(place: str, granted: Iterable[str]) -> bool:
    """Return whether a configuration grants a field or header."""
    return any(fnmatchcase(place, pattern) for pattern in granted)


def _matches(shape: Any, value: Any) -> bool:
    if isinstance(shape, Kept):
        return not isinstance(value, dict | list)
    return isinstance(value, list if isinstance(shape, list) else dict)


def _drop_nulls(value: Any) -> bool:
    """Remove null fields of an object, or null items of a list; return whether there were any."""
    if isinstance(value, dict):
        empty = [name for name, part in value.items() if part is None]
        for name in empty:
            del value[name]
        return bool(empty)
    if isinstance(value, list) and None in value:
        value[:] = [item for item in value if item is not None]
        return True
    return False


def _is_reference(named: str, item: dict[str, Any]) -> bool:
    """Return whether a provider may look up an item by its id, because it contains no other content."""
    needed = _COMPLETE.get(named)
    if needed is not None:
        return not all(_is_stated(item.get(name)) for name in needed)
    return not any(_is_stated(part) for name, part in item.items() if name not in _NAMES)


def _is_stated(value: Any) -> bool:
    """Return whether a value contains text at any depth; empty parts and invisible characters do not count."""
    parts = [value]
    for part in parts:  # the list grows by the content of each part
        if isinstance(part, str) and any(map(is_visible, part)):
            return True
        parts.extend(part.values() if isinstance(part, dict) else part if isinstance(part, list) else ())
    return False


def _refers(schema: Any) -> bool:
    """Return whether a JSON schema refers to another document, or declares its own identity."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if any(isinstance(part.get(name), str) and not part[name].startswith("#") for name in _REFERENCES):
                return True
            named = part.get("id")  # the keyword of draft 4, which turns local references into remote ones
            if isinstance(named, str) and "//" in named:
                return True
            dialect = part.get("$schema")
            if isinstance(dialect, str) and not _DIALECT.fullmatch(dialect):
                return True
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return False


def plain(name: str) -> str:
    """Return a name for the ledger that carries no message, since an agent chose it."""
    return name if _PLAIN.fullmatch(name) else "?"
