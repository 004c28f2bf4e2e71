"""A wrong value of any option is a usage error that names the option, before anything is done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux_support.commands import mleredux

NUMBERS = ("x", "nan", "inf", "-inf", "1e999", "")
PAIRS = ("x", "=x", " =x", "")
SIZES = ("x", "-1", "5 apples", "nan", "9" * 400, "")
TIMES = ("x", "-5d", "nan", "9" * 20 + "d", "")
WRONG = {
    "FloatParamType": NUMBERS,
    "Number": NUMBERS,
    "FloatRange": NUMBERS,
    "NumberRange": NUMBERS,
    "IntParamType": ("x", "1.5", "nan", ""),
    "IntRange": ("x", "1.5", "nan", ""),
    "Duration": ("x", "-5", "5 weeks", "nan", "0", "9" * 400, ""),
    "Megabytes": SIZES,
    "Choice": ("no such choice", ""),
}
"""Wrong values by the name of the option's type."""
COUNTS = ("", "=", "=x", "=-1", "=1.5", "=101")
WRITTEN = {
    "KEY=VALUE": PAIRS,
    "FIELD=VALUE": PAIRS,
    "CAUSE=N": (
        *PAIRS,
        "often=1",
        "cancelled=1",
        *(f"agent_crashed{n}" for n in ("", "=", "=x", "=-1", "=1.5", "=101")),
    ),
    "TIME": TIMES,
    "[build:]HOST": ("", "build:", "a b", "http://"),
}
"""Wrong values by how the help writes the option's value."""
LATER = {"serve", "classroom"}
"""Commands that check such a text when they read their other settings."""


def wrong_values(
    group: click.Group, context: click.Context, names: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Option, tuple[str, ...]]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        path = (*names, name)
        if isinstance(command, click.Group):
            yield from wrong_values(command, click.Context(command, parent=context, info_name=name), path)
        for option in command.params:
            if not isinstance(option, click.Option) or option.is_flag or option.count:
                continue
            written = () if name in LATER else WRITTEN.get(str(option.metavar), ())
            if values := WRONG.get(type(option.type).__name__, written):
                yield " ".join(path), option, values


def test_a_wrong_value_of_any_option_is_refused_in_a_sentence_that_names_it() -> None:
    accepted, tried = [], 0
    for command, option, values in wrong_values(root, click.Context(root, info_name="mleredux")):
        there = ["--server", "http://127.0.0.1:9"] if getattr(option, "place", "") == "server" else []
        for value in values:
            tried += 1
            arguments = [*command.split(), *there, option.opts[-1], value]
            ended = CliRunner().invoke(root, arguments)
            said = " ".join(ended.output.split())
            if ended.exit_code != 2 or not any(f"'{name}'" in said for name in option.opts):
                accepted.append((command, option.opts[-1], value, ended.exit_code, said[-200:]))
    assert not accepted, "\n".join(map(str, accepted))
    assert tried > 400


@pytest.mark.parametrize("command", ["grade --jsonl", "certify --check", "experiment import"])
def test_a_field_that_occurs_twice_in_a_file_of_a_user_is_reported(command: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_text('{"competition_id": "wine", "submission_path": "a.csv", "submission_path": "b.csv"}\n')
    ended = CliRunner().invoke(root, [*command.split(), str(path), "-o", str(tmp_path / "output")])
    said = "".join([ended.output, str(ended.exception), *(file.read_text() for file in tmp_path.glob("output/*"))])
    assert ended.exit_code and "the field 'submission_path' occurs twice in one object" in said


@pytest.mark.parametrize("limit", ["cpus", "time_limit", "grace", "notice", "llm_cost_usd"])
@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_limit_without_a_finite_value_creates_no_run(limit: str, value: float) -> None:
    from mleredux.models import Limits

    with pytest.raises(ValueError, match=limit):
        Limits.model_validate({limit: value})


FIELDS_TWICE = ('{"a": 1, "a": 2}', '{"b": {"a": 1, "a": 1}}', '[{"a": 1, "a": null}]')
EXPRESSIONS = ("(", ")", "not", "and", "wine and", "wine or or digits", "()", "wine digits")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run."""
    folder = tmp_path_factory.mktemp("run")
    ended = mleredux("run", "wine", "--agent", "dummy", "--runs-dir", str(folder / "runs"), "--json")
    assert ended.code == 0, ended
    return folder


@pytest.mark.parametrize(
    ("arguments", "values", "sentence"),
    [
        (("run", "wine", "--agent", "dummy", "-k"), EXPRESSIONS, "can't be parsed"),
        (("run", "wine", "--agent", "dummy", "-O"), [f"x={value}" for value in FIELDS_TWICE], "'a' occurs twice"),
        (("human", "start", "wine", "-O"), [f"x={value}" for value in FIELDS_TWICE], "'a' occurs twice"),
        (("leaderboard", "--where"), ("nope=1", "nope.seed=0", "Seed=0"), "No run has the field"),
        (("compare", "dummy", "dummy[seed=1]", "--where"), ("nope=1",), "No run has the field"),
        (("compare", "dummy[nope=1]", "dummy[seed=1]"), (), "No run has the field"),
        (("experiment", "analyse", "runs", "--where"), ("nope=1",), "No run has the field"),
    ],
)
def test_a_value_that_cannot_be_evaluated_is_a_usage_error(
    arguments: tuple[str, ...], values: Sequence[str], sentence: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = sorted(Path("runs").iterdir())
    for more in [[value] for value in values] or [[]]:
        ended = mleredux(*arguments, *more)
        assert (ended.code, ended.out) == (2, ""), (more, ended)
        assert sentence in ended.err and ended.err.count("Error: ") == 1, (more, ended.err)
        assert "internal" not in ended.err and "Traceback" not in ended.err
    assert sorted(Path("runs").iterdir()) == before
