"""The agent's options, and what they may be."""

from __future__ import annotations

from mleredux.plugin.agent import libraries
from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from mleredux_agent_command.recipes import RECIPES

KINDS = ("npm", "pip", "apt")


class Options(BaseModel):
    """Options and their defaults; empty texts ask for nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    command: str = ""
    recipe: str = ""
    install: str = ""
    model: str = ""
    libraries: str = "tabular"
    image: str = ""
    context: str = ""

    @field_validator("recipe")
    @classmethod
    def _is_known(cls, value: str) -> str:
        if value and value not in RECIPES:
            raise ValueError(f"there are the recipes {', '.join(RECIPES)}")
        return value

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value

    @field_validator("install")
    @classmethod
    def _names_its_kinds(cls, value: str) -> str:
        for part in parts(value):
            kind, colon, name = part.partition(":")
            if kind not in KINDS or not colon or not name:
                raise ValueError(f"{part!r} is not of the form npm:NAME@VERSION, pip:NAME==VERSION or apt:NAME")
            if kind == "pip" and "=" not in name:
                raise ValueError(f"{part!r} names no version (pip:NAME==VERSION)")
        return value

    @model_validator(mode="after")
    def _fit_together(self) -> Options:
        if not self.command and not self.recipe and not self.image and not self.context:
            raise ValueError("a command or a recipe is needed, as in `-o command='my-agent \"$MLEREDUX_PROMPT_FILE\"'`")
        if self.image and self.context:
            raise ValueError("name either an image or a context, not both")
        if self.install and (self.image or self.context):
            raise ValueError("nothing is installed into an image or context of your own")
        return self


def parts(install: str) -> list[str]:
    """The parts of an option `install`, which semicolons separate."""
    return [part for part in (piece.strip() for piece in install.split(";")) if part]
