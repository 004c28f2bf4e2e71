"""Agents say what they need, sandboxes what they can do; neither names the other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st
from mleredux._core.cli.root import root
from mleredux._core.plugins.capabilities import Capabilities, Needs, choose, fitting, needs_of
from mleredux.errors import MlereduxError, NotFound
from mleredux.models import Agent, Build

PROCESS = Capabilities(gpus=True)
ENGINE = Capabilities(True, ("python", "debian", "npm", "dockerfile", "image"), gpus=True, writable_root=True)
INSTALLED = {"podman": ENGINE, "process": PROCESS, "docker": ENGINE, "another": PROCESS}

_PLUGIN = """
from mleredux._core.plugins.capabilities import Capabilities
from mleredux._core.sandboxes.process import ProcessSandbox
from mleredux.hookspecs import hookimpl

class Third(ProcessSandbox):
    id, title, capabilities = "third", "Of a third party", Capabilities({fields})

@hookimpl
def mleredux_register_sandboxes():
    return [Third()]
"""


def mleredux(*arguments: str) -> Result:
    return CliRunner().invoke(root, arguments)


def agent(**fields: Any) -> Agent:
    return Agent(id="some", title="Some", command=("true",), **fields)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (agent(), ["process", "another", "docker", "podman"]),
        (agent(build=Build(python=("numpy",))), ["process", "another", "docker", "podman"]),
        (agent(isolated=True), ["docker", "podman"]),
        (agent(build=Build(debian=("jq",))), ["docker", "podman"]),
        (agent(build=Build(context=Path("here"))), ["docker", "podman"]),
        (agent(build=Build(writable_root=True)), ["docker", "podman"]),
    ],
)
def test_what_a_declaration_says_decides_where_an_agent_runs(made: Agent, expected: list[str]) -> None:
    assert fitting(needs_of(made), INSTALLED) == expected
    assert choose(made, INSTALLED) == expected[0]


def test_a_refusal_says_what_is_lacking_and_what_would_do() -> None:
    with pytest.raises(MlereduxError) as refused:
        choose(agent(isolated=True, build=Build(debian=("jq",))), INSTALLED, "process")
    assert str(refused.value) == (
        "Agent some needs isolation and installing Debian packages, which sandbox process lacks. "
        "Use sandbox docker or podman."
    )
    with pytest.raises(NotFound, match="No installed sandbox can run agent some: process lacks network mode open"):
        choose(agent(), {"process": Capabilities(networks=("none",))}, network="open")
    with pytest.raises(MlereduxError, match="needs GPUs"):
        choose(agent(), {"bare": Capabilities()}, "bare", gpus=1)


def test_words_that_are_no_capability_are_refused() -> None:
    with pytest.raises(ValueError, match="'rpm' is not a valid build source"):
        Capabilities(builds=("rpm",))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'host' is not a valid network mode"):
        Capabilities(networks=("host",))


_builds = st.lists(st.sampled_from(["python", "debian", "npm", "dockerfile", "image"]), unique=True).map(tuple)
_capabilities = st.builds(
    Capabilities,
    st.booleans(),
    _builds,
    st.lists(st.sampled_from(["none", "gateway", "open"]), unique=True).map(tuple),
    st.booleans(),
    st.booleans(),
)
_needs = st.builds(
    Needs, st.booleans(), _builds, st.sampled_from(["none", "gateway", "open"]), st.booleans(), st.booleans()
)


@given(_needs, st.dictionaries(st.text("abc", min_size=1), _capabilities))
def test_who_can_do_more_can_run_whatever_one_who_can_do_less_does(
    needs: Needs, installed: dict[str, Capabilities]
) -> None:
    able = fitting(needs, installed)
    assert set(able) == {name for name, has in installed.items() if not needs.lacking(has)}
    assert able == fitting(needs, dict(reversed(installed.items())))
    if able:
        assert not needs.lacking(ENGINE)


def test_a_sandbox_of_a_third_party_runs_every_agent_whose_needs_it_meets(
    mleredux_home: Path,
) -> None:
    plugin = mleredux_home / "third.py"
    plugin.write_text(_PLUGIN.format(fields=""))
    shown = mleredux("-p", str(plugin), "list", "sandboxes", "--json").output
    third = next(row for row in json.loads(shown) if row["id"] == "third")
    assert (third["isolated"], third["builds"]) == (False, ["interpreter"])
    for name in ("dummy", "baseline"):
        assert "third" in next(row for row in _agents(plugin) if row["id"] == name)["sandboxes"]
    done = mleredux("-p", str(plugin), "run", "digits", "--agent", "dummy", "--sandbox", "third", "--json")
    assert done.exit_code == 0, done.output
    refused = mleredux("-p", str(plugin), "run", "digits", "--agent", "aide", "--sandbox", "third")
    assert refused.exit_code == 1
    assert "Agent aide needs isolation" in str(refused.exception)


def _agents(plugin: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(mleredux("-p", str(plugin), "list", "agents", "--json").output)
    return rows
