"""What a new user's first mistakes are answered with: one sentence on what is wrong, one on what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from mleredux._core.cli.options import Duration, check_values
from mleredux._core.cli.root import root
from mleredux._core.locations import cache_dir
from mleredux.plugin.command import Catalogue
from mleredux_support.commands import mleredux

MISTAKES = {
    "run digits --agent python": (1, "specify the path to your script, notebook or folder"),
    "run digits --agent ./missing.py": (1, "no such file or folder in"),
    "run digits --agent repo:./nothing": (1, "nothing"),
    "run digist --agent dummy": (1, "Did you mean digits or digits-code?"),
    "run digits --agent dumy": (1, "Did you mean dummy?"),
    "rnu digits": (2, "Did you mean run?"),
    "strat digits": (2, "Did you mean human start"),
    "statsu": (2, "Did you mean experiment status"),
    "runs delet": (2, "Did you mean delete?"),
    "human stat": (2, "Did you mean start?"),
    "runs compare": (2, "Did you mean `mleredux compare`?"),
    "runs list": (2, "Did you mean `mleredux runs`?"),
    "agent list": (2, "Did you mean `mleredux list agents`?"),
    "tasks": (2, "Did you mean `mleredux list tasks`?"),
    "new metric": (2, "The commands are: agent, artifact, command, executor, grader, "),
    "runs delete last --runs-dir x": (
        2,
        "write it directly after `mleredux runs`.",
    ),
    "run digits --agent dummy --debug": (2, "write it directly after `mleredux`."),
    "runs show last --trace": (2, "write it directly after `mleredux`."),
    "run digits --agent dummy --junit-xml /proc/x/y.xml": (1, "/proc/x/y.xml can't be written: "),
    "run digits": (2, "Choose an agent with --agent; installed: "),
    "run digits --agent dummy --memory 5q": (2, "write 512m, 4g or a number of megabytes"),
    "run digits --agent dummy -o foo": (2, "not of the form KEY=VALUE"),
    "run digits --agent dummy -O foo=1": (1, "Its options: none."),
    "run digits --agent dummy --retry oom=2": (2, "'oom' is not one of 'agent_crashed', "),
    "run digits --agent dummy --retry out_of_memory=x": (2, "Invalid value for '--retry': 'x' is not a valid integer"),
    "run digits --agent dummy --retry out_of_memory": (2, "'out_of_memory' is not of the form CAUSE=N."),
    "run digits --agent dummy --retry =3": (2, "'=3' is not of the form CAUSE=N."),
    "run digits --agent dummy --jobs 80x": (2, "'80x' is not a valid integer."),
    "run digits --agent dummy --retry out_of_memory=-1": (2, "'--retry': -1 is not in the range 0<=x<=100."),
    "run digits --agent dummy --llm-calls 3 --on-budget stop": (1, "its LLM calls, if any, are not counted."),
    "run digits --agent dummy --network gateway --on-budget stop": (1, "it has no LLM budget."),
    "findings nosuch": (1, "There is no task 'nosuch'."),
    "findings digit": (1, "Did you mean digits or digits-code?"),
    "run digits --agent dummy --sandbox dockr": (1, "Did you mean docker?"),
    "run spaceship-titanic --agent dummy": (1, "pass them with --from"),
    "prepare spaceship-titanic --from .": (1, "specify the folder or archive that has it with --from"),
    "prepare spaceship-titanic --from typo.zip": (1, "Specify a folder or a zip file with --from."),
    "list --category Nothing": (0, "There are no such tasks."),
    "prune --unused-since soon": (2, "is invalid; use 2h, 7d, or 2026-05-01"),
}


@pytest.mark.parametrize("line", MISTAKES)
def test_a_mistake_is_answered_with_what_to_do(line: str, mleredux_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAGGLE_API_TOKEN", "KAGGLE_USERNAME", "KAGGLE_KEY", "KAGGLE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_dir().parent))
    monkeypatch.setenv("HOME", str(mleredux_home))
    monkeypatch.chdir(mleredux_home)
    code, said = MISTAKES[line]
    told = mleredux(*line.split())
    assert (told.code, said in told.out + told.err) == (code, True), told.out + told.err
    assert "Traceback" not in told.err
    assert not list((mleredux_home / "runs").glob("*/run.json")), "a mistake leaves no run behind"


@pytest.mark.parametrize("name", ["grade", "validate"])
def test_a_file_that_is_not_there_is_named_and_is_no_success(name: str, mleredux_home: Path) -> None:
    told = mleredux(name, "submissoin.csv", "wine")
    assert told.code == 1 and "submissoin.csv does not exist." in told.out + told.err


NONSENSE = ("x", "", "1,5", "nan", "-inf", "9" * 40, "-" + "9" * 40)


def _numbers(group: click.Group, context: click.Context) -> Iterator[tuple[click.Command, click.Option]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        if isinstance(command, click.Group):
            yield from _numbers(command, click.Context(command, parent=context, info_name=name))
        for param in command.params:
            if isinstance(param, click.Option) and isinstance(param.type, (click.IntRange, click.FloatRange, Duration)):
                yield command, param


def test_each_number_option_refuses_nonsense_in_one_sentence() -> None:
    context = click.Context(root, info_name="mleredux", obj=Catalogue())
    options = list(_numbers(root, context))
    assert len(options) > 50
    for command, option in options:
        check_values(command)
        for text in NONSENSE:
            with pytest.raises(click.UsageError) as refused:
                option.process_value(context, option.type_cast_value(context, [text] if option.multiple else text))
            sentence = refused.value.format_message()
            assert "\n" not in sentence and len(sentence) < 200, (option.opts, text, sentence)
