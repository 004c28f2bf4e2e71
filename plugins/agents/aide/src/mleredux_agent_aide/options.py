"""The agent's options, and what they may be."""

from __future__ import annotations

from mleredux.plugin.agent import libraries
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Options(BaseModel):
    """Options with AIDE's own defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    code_model: str = Field(default="o4-mini", min_length=1)
    feedback_model: str = Field(default="gpt-4.1-mini", min_length=1)
    code_temperature: float | None = Field(default=0.5, ge=0, le=2)
    feedback_temperature: float | None = Field(default=0.5, ge=0, le=2)
    max_tokens: int | None = Field(default=None, ge=1)
    steps: int = Field(default=20, ge=1, le=10_000)
    exec_timeout: int = Field(default=3600, ge=1)
    drafts: int = Field(default=5, ge=1)
    debug_prob: float = Field(default=0.5, ge=0, le=1)
    max_debug_depth: int = Field(default=3, ge=0)
    folds: int = Field(default=5, ge=1)
    data_preview: bool = True
    libraries: str = "tabular"

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value
