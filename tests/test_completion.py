"""Each parameter of each command completes the names that it takes, or takes free text."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete, get_completion_class
from mleredux._core.cli.completion import _Name
from mleredux._core.cli.root import root
from mleredux._core.store import RunStore
from mleredux.models import Limits, RunPlan
from mleredux.plugin.command import Catalogue

FREE = {
    "action",
    "agent_hosts",
    "agent_images",
    "agent_llm_fields",
    "agent_llm_models",
    "agent_variables",
    "allow_hosts",
    "allow_images",
    "allow_llm_fields",
    "allow_llm_models",
    "bad",
    "base_image",
    "category",
    "chosen",
    "columns",
    "changes",
    "commitment",
    "database",
    "deadline",
    "default_quota",
    "entry",
    "env_image",
    "good",
    "host",
    "id",
    "ids",
    "image",
    "issuer",
    "judge",
    "key",
    "labels",
    "libraries",
    "licenses",
    "measure",
    "metric",
    "model",
    "name",
    "names",
    "notes",
    "oidc_allow",
    "oidc_client",
    "oidc_issuer",
    "oidc_scope",
    "only",
    "owner",
    "pass_env",
    "producer",
    "project",
    "project_name",
    "repo_hosts",
    "retain",
    "revision",
    "rules",
    "secret",
    "secrets",
    "service",
    "since",
    "sort",
    "store",
    "subject",
    "token_id",
    "unused_since",
    "uri",
    "url",
    "user",
    "user_name",
    "webhook_hosts",
    "webhook_id",
    "where",
    "words",
}
"""Parameters that take text which nothing on this machine lists."""
KNOWN = {
    "tasks": "digits",
    "agents": "dummy",
    "sandboxes": "process",
    "executors": "slurm",
    "formats": "atif",
    "status": "failed",
    "techniques": "missing",
    "sets": "starter",
    "runs": "last",
    "arms": "b@1234567",
    "experiment": "trial",
}
"""One name of each kind."""


def _parameters(group: click.Group, context: click.Context, names: tuple[str, ...] = ()) -> Iterator[object]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None, name
        path = (*names, name)
        if isinstance(command, click.Group):
            yield from _parameters(command, click.Context(command, parent=context, info_name=name), path)
        for param in command.params:
            plain = type(param.type) in (click.types.StringParamType, _Name)
            if plain and not getattr(param, "is_flag", False):
                before = [one.name for one in command.params if isinstance(one, click.Argument)]
                yield pytest.param(path, param, before, id=f"{' '.join(path)} {param.name}")


def _all() -> list[object]:
    return list(_parameters(root, click.Context(root, info_name="mleredux", obj=Catalogue())))


def _completed(line: list[str], incomplete: str = "") -> dict[str, str]:
    found = ShellComplete(root, {}, "mleredux", "_MLEREDUX_COMPLETE").get_completions(line, incomplete)
    return {item.value: item.type for item in found}


@pytest.fixture(scope="module", autouse=True)
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEREDUX_RUNS_DIR", str(folder))
        more: dict[str, Any] = {"sandbox": "process", "seed": 0, "limits": Limits(time_limit=60)}
        plan = RunPlan(
            task="digits", agent=f"repo:https://git.example.org/a/b.git@{'1234567' * 6}", experiment="trial", **more
        )
        RunStore(folder).create(plan, folder)
        RunStore(folder).create(plan.model_copy(update={"experiment": "it's a:b=c, d@e"}), folder)
        yield


@pytest.mark.parametrize(("path", "param", "arguments"), _all())
def test_each_parameter_completes_what_it_takes(
    path: tuple[str, ...], param: click.Parameter, arguments: list[str]
) -> None:
    if isinstance(param, click.Argument):
        line = [*path, *["x"] * arguments.index(str(param.name))]
    else:
        line = [*path, param.opts[-1]]
    found = _completed(line)
    if isinstance(param.type, _Name) and param.type.kind == "files":
        assert found == {"": "file"}
    elif isinstance(param.type, _Name):
        known = KNOWN.get(param.type.kind)
        assert known is None or known in found, found
        assert _completed(line, "no-such") == {}
        if param.type.kind in ("agents", "runs"):
            assert _completed(line, "./so") == {"./so": "file"}
    else:
        assert found == {} and param.name in FREE, "complete it, or list it as free text"


WORDS = [
    ("run digi", "digits"),
    ("run --agent=basel", "--agent=baseline"),
    ("run --set=techniques@di", "--set=techniques@digits"),
    ("run missing@nom", "missing@nomad2018-predict-transparent-conductors"),
    ("run missing+planted-1@nom", "missing+planted-1@nomad2018-predict-transparent-conductors"),
    ("run calibr", "calibration@digits"),
    ("run wine+", "wine+dev"),
    ("run AI4Code+p", "AI4Code+private"),
    ("run wine+de", "wine+debug-200"),
    ("run digits --retry out_of_m", "out_of_memory=1"),
    ("run digits --agent baseline -O fol", "folds=5"),
    ("run digits --agent repo:./pyproj", "repo:./pyproject.toml"),
    ("compare b@", "b@1234567"),
    ("runs --experiment it", "it's a:b=c, d@e"),
    ("runs --experiment=it", "--experiment=it's a:b=c, d@e"),
]
"""Lines, and a completion of the last word."""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(("line", "word"), WORDS)
def test_shells_receive_whole_words_and_bash_what_follows_its_separators(
    shell: str, line: str, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = f"mleredux {line}"
    monkeypatch.setenv("COMP_WORDS", full)
    monkeypatch.setenv("COMP_CWORD", line.split()[-1] if shell == "fish" else str(len(line.split())))
    kind = get_completion_class(shell)
    assert kind is not None
    received = kind(root, {}, "mleredux", "_MLEREDUX_COMPLETE").complete().splitlines()
    assert word in {"bash": [row.partition(",")[2] for row in received], "zsh": received[1::3]}.get(
        shell, [row.partition(",")[2].partition("\t")[0] for row in received]
    )


@pytest.mark.parametrize(("line", "word"), WORDS)
def test_bash_replaces_the_part_of_a_word_after_its_last_separator(line: str, word: str) -> None:
    """bash splits words at these characters; what completes a word with `@` begins with it."""
    typed = line.split()[-1]
    start = max(typed.rfind("=") + 1, typed.rfind(":") + 1, typed.rfind("@"))
    script = f"""
    eval "$(_MLEREDUX_COMPLETE=bash_source mleredux)"
    COMP_LINE={shlex.quote(f"mleredux {line}")}; COMP_POINT=${{#COMP_LINE}}
    COMP_WORDS=(mleredux {line}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    _mleredux_completion mleredux 2>/dev/null
    eval "printf '%s\\n' ${{COMPREPLY[*]}}"
    """
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert word[max(start, 0) :] in ended.stdout.splitlines(), (ended.stdout, ended.stderr)
