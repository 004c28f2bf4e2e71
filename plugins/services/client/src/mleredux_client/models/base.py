"""The base class of the client's own models."""

from __future__ import annotations

from typing import Any, Optional, get_origin

from mleredux import models
from pydantic import ConfigDict

_ALWAYS = {"id", "name", "task", "agent", "status", "position"}
"""Fields that every server sends."""


class Model(models.Model):
    """A frozen model of a response of any version: unknown fields are kept, and absent fields are empty."""

    model_config = ConfigDict(extra="allow", protected_namespaces=(), defer_build=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        """Let a response omit fields: text, dates and optional values are then None, all others empty or zero."""
        for name, field in cls.model_fields.items():
            if field.is_required() and name not in _ALWAYS and name not in cls.__annotations__:
                kind = get_origin(field.annotation) or field.annotation
                field.default = kind() if kind in (bool, int, dict, list) else None
                field.annotation = Optional[field.annotation]  # type: ignore[assignment]  # noqa: UP045
