"""The agent's options and their valid values."""

from __future__ import annotations

from mleredux_agents import CliOptions, install_parts
from pydantic import field_validator, model_validator

from mleredux_agent_command.recipes import recipe_names


class Options(CliOptions):
    """Options and their defaults; an empty string means that the option is not set."""

    command: str = ""
    recipe: str = ""
    install: str = ""
    image: str = ""
    context: str = ""

    @field_validator("recipe")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value and value not in recipe_names():
            raise ValueError(f"available recipes: {', '.join(recipe_names())}")
        return value

    @field_validator("install")
    @classmethod
    def _names_its_kinds(cls, value: str) -> str:
        install_parts(value)
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Options:
        if not self.command and not self.recipe and not self.image and not self.context:
            raise ValueError("a command or a recipe is needed, as in `-O command='my-agent \"$MLEREDUX_PROMPT_FILE\"'`")
        if self.image and self.context:
            raise ValueError("specify either an image or a context, not both")
        if self.install and (self.image or self.context):
            raise ValueError("libraries can't be installed into your own image or context")
        return self
