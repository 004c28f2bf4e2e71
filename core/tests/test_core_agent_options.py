"""Options of agents: checked before a run is made, and able to change how the agent is built and started."""

from __future__ import annotations

from typing import Any

import pytest
from mleredux._core.cli.commands import run as run_command
from mleredux._core.plugins import Catalogue, Entry, Plugin, Ref
from mleredux.errors import MlereduxError, PluginError
from mleredux.models import Agent, Build
from mleredux_agents.options import libraries, read_options
from mleredux_support.plans import plan_of
from pydantic import BaseModel, Field, field_validator


def configure(options: dict[str, Any]) -> Agent:
    if options["size"] == "huge":
        raise MlereduxError("Option size is small or large.")
    return agent.model_copy(update={"build": Build(python=(f"size=={options['size']}",))})


agent = Agent(id="sized", title="Sized", command=("true",), options={"size": "small"}, configure=configure)


@pytest.fixture
def catalogue(toy: Any) -> Catalogue:
    found: Catalogue = toy.catalogue
    own = Plugin("sized", "given", source="given")
    found.entries("agents")["sized"] = Entry("sized", "agents", own, Ref("sized"), agent)
    return found


def test_options_make_the_agent(catalogue: Catalogue) -> None:
    assert catalogue.agent("sized").build.python == ()
    assert catalogue.agent("sized", {}).build.python == ("size==small",)
    assert catalogue.agent("sized", {"size": "large"}).build.python == ("size==large",)


def test_options_that_make_no_sense_are_refused_before_a_run_is_made(catalogue: Catalogue) -> None:
    with pytest.raises(MlereduxError, match=r"size is small or large"):
        plan_of(catalogue, "toy", "sized", sandbox="process", options={"size": "huge"})
    with pytest.raises(MlereduxError, match=r"has no option colour\. Its options: size\."):
        plan_of(catalogue, "toy", "sized", sandbox="process", options={"colour": 1})


def test_a_preset_stands_for_its_values_and_options_beside_it_win(catalogue: Catalogue) -> None:
    presets = {"big": {"size": "large"}, "wrong": {"colour": 1}}
    named = agent.model_copy(update={"presets": presets, "options": {"size": "small", "depth": 1}})
    catalogue.entries("agents")["sized"] = Entry("sized", "agents", Plugin("x", "given"), Ref("sized"), named)

    def made(**options: Any) -> dict[str, Any]:
        found: dict[str, Any] = plan_of(catalogue, "toy", "sized", sandbox="process", options=options).options
        return found

    assert catalogue.agent("sized", {"preset": "big"}).build.python == ("size==large",)
    assert made(preset="big", depth=2) == {"size": "large", "depth": 2}
    assert made(preset="big", size="small") == {"size": "small"}
    for name, sentence in {"huge": r"no preset 'huge'\. Its presets: big, wrong", "wrong": "no option colour"}.items():
        with pytest.raises(MlereduxError, match=sentence):
            made(preset=name)


def test_a_fault_of_the_agent_names_it(catalogue: Catalogue) -> None:
    broken = agent.model_copy(update={"configure": lambda options: options["nothing"]})
    catalogue.entries("agents")["sized"] = Entry("sized", "agents", Plugin("x", "given"), Ref("sized"), broken)
    with pytest.raises(PluginError, match="Agent sized rejected its options"):
        catalogue.agent("sized", {})


class Known(BaseModel):
    """Options of an agent."""

    steps: int = Field(default=3, ge=1)
    libraries: str = "none"

    @field_validator("libraries")
    @classmethod
    def _are_known(cls, value: str) -> str:
        libraries(value)
        return value


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"steps": 0}, "Agent a does not accept steps=0: input should be greater than or equal to 1."),
        ({"steps": "many"}, "Agent a does not accept steps='many': input should be a valid integer"),
        ({"libraries": "tabular; pandas"}, "libraries='tabular; pandas': 'pandas' is neither a set of libraries"),
        ({"libraries": "-r /etc/passwd"}, "is neither a set of libraries"),
        ({"libraries": "a==1\n-r x"}, "is neither a set of libraries"),
        ({"libraries": "evil @ https://example.org/e.zip"}, "is neither a set of libraries"),
    ],
)
def test_an_option_that_makes_no_sense_is_one_sentence(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(MlereduxError) as caught:
        read_options("a", Known, given)
    assert sentence in caught.value.message
    assert caught.value.hint == "`mleredux agent show a` shows its options and their defaults."


def test_libraries_are_sets_and_requirements() -> None:
    found = libraries("tabular; minimal; statsmodels==0.14.5; torch>=2.5,<3")
    assert found.debian == ("libgomp1",)
    assert found.python[-2:] == ("statsmodels==0.14.5", "torch>=2.5,<3")
    assert len(found.python) == len(set(found.python)) == 5


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000])
def test_values_that_are_nested_too_deeply_are_text(value: str) -> None:
    assert run_command.read_options((f"key={value}",)) == {"key": value}
