"""The bundled recipes: each pins its program, asks the gateway alone, and reads the prompt from its file."""

from __future__ import annotations

import re
import subprocess

import pytest
from mleredux_agent_command.recipes import find_recipe, recipe_names

BUNDLED = ("aider", "claude-code", "codex", "gemini-cli", "opencode", "qwen-code")


def test_all_recipes_are_found_by_name() -> None:
    assert set(BUNDLED) <= set(recipe_names())


@pytest.mark.parametrize("name", BUNDLED)
def test_a_recipe_is_pinned_and_its_command_is_a_valid_script(name: str) -> None:
    recipe = find_recipe(name)
    assert re.fullmatch(r"(npm:(@[\w-]+/)?[\w-]+@|pip:[\w-]+==)\d+\.\d+\.\d+", recipe.install) and recipe.model
    assert "$MLEREDUX_PROMPT_FILE" in recipe.command and "$MLEREDUX_MODEL" in recipe.command
    checked = subprocess.run(["sh", "-n"], input=recipe.command, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, "")
