"""The base class of all models of responses."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Response(BaseModel):
    """A model whose validator is built on first use, since programs import many models and use few."""

    model_config = ConfigDict(defer_build=True)
