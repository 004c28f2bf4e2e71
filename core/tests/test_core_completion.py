"""What a shell completes: commands and options by click, and names of tasks, agents, sandboxes and runs by mleredux."""

from __future__ import annotations

from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux.errors import NotFound
from mleredux_support.toy import TOY
from mleredux_testing.toys import TOY_PLUGIN

LOAD = ("-p", str(TOY))


def completed(line: str, incomplete: str) -> set[str]:
    words = ["-p", TOY_PLUGIN, *line.split()]
    complete = ShellComplete(root, {}, "mleredux", "_MLEREDUX_COMPLETE")
    return {item.value for item in complete.get_completions(words, incomplete)}


@pytest.mark.parametrize("line", ["run", "prepare", "show", "validate submission.csv", "grade submission.csv"])
def test_tasks_are_completed_wherever_they_are_arguments(line: str) -> None:
    assert completed(line, "to") == {"toy"}
    assert completed(line, "no-such") == set()


@pytest.mark.parametrize("line", ["run toy --agent", "run --agent", "run toy --seed 1 --agent"])
def test_agents_are_completed(line: str) -> None:
    assert "dummy" in completed(line, "du")
    assert all(name.startswith("du") for name in completed(line, "du"))


def test_sandboxes_and_executors_are_completed() -> None:
    assert completed("run toy --sandbox", "pro") == {"process"}
    assert "slurm" in completed("run toy --executor", "")


@pytest.mark.parametrize(
    "line", ["logs", "runs show", "runs delete", "artifacts", "run --resume", "run toy --agent dummy --replay"]
)
def test_runs_of_the_folder_are_completed(line: str, toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run = toy.new("copy")
    monkeypatch.setenv("MLEREDUX_RUNS_DIR", str(toy.store.path))
    assert run.id in completed(line, run.id[:8])
    assert completed(line, "las") == {"last"}


def test_runs_of_a_folder_that_is_named_before_are_completed(toy: Any) -> None:
    run = toy.new("copy")
    assert completed(f"logs --runs-dir {toy.store.path}", run.id[:8]) == {run.id}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("toy", "--agent", "crash"), "used agent copy, not crash; specify copy."),
        (("toy", "--agent", "copy"), "Agent copy does not call models through the gateway; omit --replay."),
        (
            ("toy", "--agent", "copy", "--seed", "1", "--seed", "2"),
            "repeats one run; specify one task, agent and seed.",
        ),
        (("toy", "--agent", "copy", "--agent", "crash"), "repeats one run; specify one task, agent and seed."),
    ],
)
def test_a_replay_that_is_refused_says_what_to_name_instead(toy: Any, words: tuple[str, ...], said: str) -> None:
    run = toy.new("copy")
    folders = ("--runs-dir", str(toy.store.path), "--data-dir", str(toy.data.path))
    ended = CliRunner().invoke(root, [*LOAD, "run", *words, "--replay", run.id, *folders])
    assert ended.exit_code == 2 and said in ended.output.replace("\n", " "), ended.output
    assert list(toy.store.ids()) == [run.id], "nothing was created"


@pytest.mark.parametrize("option", ["--replay", "--resume"])
def test_an_empty_name_of_a_run_is_never_taken_for_none(option: str, toy: Any) -> None:
    folders = ("--runs-dir", str(toy.store.path), "--data-dir", str(toy.data.path))
    ended = CliRunner().invoke(root, [*LOAD, "run", "toy", "--agent", "copy", option, "", *folders])
    assert ended.exit_code in (1, 2) and isinstance(ended.exception, SystemExit | NotFound)
    assert not list(toy.store.ids()), "nothing was created"


@pytest.mark.parametrize(("name", "letter"), [("run", "a"), ("runs", "t"), ("show", "j"), ("grade", "z")])
def test_a_short_option_that_no_command_has_suggests_the_long_ones_with_its_letter(name: str, letter: str) -> None:
    parameters = root.get_command(root.make_context("mleredux", [name]), name)
    assert parameters is not None
    long = {option for parameter in parameters.params for option in parameter.opts if option.startswith(f"--{letter}")}
    ended = CliRunner().invoke(root, [name, f"-{letter}", "toy"])
    assert (ended.exit_code, f"No such option '-{letter}'" in ended.output) == (2, True)
    assert ("Did you mean" in ended.output) == bool(long) == (letter != "z")
    assert all(option in ended.output for option in long)
