"""The agent's options, and what they may be."""

from __future__ import annotations

from mleredux.plugin.agent import libraries
from pydantic import BaseModel, ConfigDict, Field, field_validator


class Options(BaseModel):
    """Options by the names of MLAgentBench's runner, mostly with its defaults."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    llm_name: str = Field(default="gpt-4.1", min_length=1)
    fast_llm_name: str | None = None
    edit_script_llm_name: str | None = None
    max_steps: int = Field(default=50, ge=1)
    max_retries: int = Field(default=5, ge=1)
    max_tokens: int = Field(default=4000, ge=1)
    edit_script_llm_max_tokens: int = Field(default=4000, ge=1)
    max_steps_in_context: int = Field(default=3, ge=1)
    max_observation_steps_in_context: int = Field(default=3, ge=1)
    temperature: float | None = Field(default=0.5, ge=0, le=2)
    retrieval: bool = False
    llm_retries: int = Field(default=5, ge=0)
    libraries: str = "tabular"
    source: str | None = Field(default=None, pattern=r"^https://\S+\.(tar\.gz|zip|whl)(#\S*)?$")
    """Where pip gets MLAgentBench from: the archive of a commit. None: the base image has it."""

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value
