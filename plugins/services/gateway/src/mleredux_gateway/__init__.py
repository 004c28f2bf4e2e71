"""A metering LLM gateway for agents: holds the keys, counts tokens, enforces budgets, records every call.

| modules | contents |
|---|---|
| `endpoint`, `config` | the gateway of one run, in a thread; upstreams and their keys |
| `proxy`, `bounds` | the HTTP part; limits on memory and open connections |
| `screening`, `fields` | requests checked against the fields that agents may send |
| `demand`, `meter`, `prices` | the maximum usage of a call; the run's budgets; costs of calls |
| `upstream`, `replay` | requests to upstreams; recorded responses used instead |
| `answers`, `secrets` | the gateway's own responses; the run's token, and masks of secrets |
| `calls` | a call in progress; token usage estimated from text |
| `record`, `trajectory`, `scenario` | `llm/calls.jsonl`; a rollout, and artifacts; a scenario for tests |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from mleredux.plugin.agent import Agent
    from mleredux.plugin.artifact import Artifact, Run
    from mleredux.plugin.gateway import Gateway

    from mleredux_gateway.record import read_calls

__all__ = ["read_calls"]
mleredux_contract = 2


@hookimpl
def mleredux_open_gateway(run: Run, agent: Agent, socket: Path) -> Gateway:
    """Open one gateway per run, in a thread of this process."""
    from mleredux_gateway.endpoint import open_gateway

    return open_gateway(run, agent, socket)


@hookimpl
def mleredux_protected_variables() -> Iterable[str]:
    """Return the variables that contain keys of upstreams."""
    from mleredux_gateway.config import key_variables

    return key_variables()


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the check of the upstreams, which precedes each run that needs them."""
    facts = {"title": "Check the upstreams of the LLM gateway.", "network": "gateway"}
    return [Ref("doctor models", "mleredux_gateway.config:doctor", facts)]


@hookimpl
def mleredux_register_formats() -> Iterable[Ref]:
    """Return the format for scenarios of a scripted language model, which test agents."""
    return [Ref("scenario", "mleredux_gateway.scenario:SCENARIO")]


@hookimpl
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Return the record of calls, and the rollout created from it."""
    if run.spec.network != "gateway":
        return []
    from mleredux_gateway.trajectory import artifacts_of

    return artifacts_of(run)


def __getattr__(name: str) -> Any:
    """Load the public names on first access."""
    if name == "read_calls":
        from mleredux_gateway.record import read_calls

        return read_calls
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
