"""Each parameter of each command completes the names that it takes, or takes free text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pytest
from click.shell_completion import ShellComplete
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
    "options",
    "owner",
    "pass_env",
    "producer",
    "project",
    "project_name",
    "repo_hosts",
    "retain",
    "retries",
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
