"""The agent's options, and what they may be."""

from __future__ import annotations

from mleredux.plugin.agent import libraries
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Options(BaseModel):
    """Options with OpenHands' own defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    model: str = Field(default="gpt-5.6", min_length=1)
    max_iterations: int = Field(default=500, ge=1)
    reminders: int = Field(default=2, ge=0)
    temperature: float | None = Field(default=None, ge=0, le=2)
    reasoning_effort: str | None = "high"
    max_output_tokens: int | None = Field(default=None, ge=1)
    llm_timeout: int = Field(default=300, ge=1)
    llm_retries: int = Field(default=5, ge=0)
    libraries: str = "tabular"

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value
