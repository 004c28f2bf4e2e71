"""The agent's options, and what they may be."""

from __future__ import annotations

from typing import Literal

from mleredux.plugin.agent import libraries
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Options(BaseModel):
    """Options and their defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    model: str = Field(default="gpt-4.1-mini", min_length=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    steps: int = Field(default=0, ge=0)
    command_timeout: int = Field(default=1800, ge=1)
    actions: Literal["tools", "text"] = "tools"
    libraries: str = "tabular"

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value
