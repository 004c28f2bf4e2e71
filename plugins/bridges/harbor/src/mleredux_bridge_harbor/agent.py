"""The oracle for Harbor's tasks, which runs the task's own solution."""

from __future__ import annotations

from pathlib import Path

from mleredux.plugin.agent import Agent, Build

agent = Agent(
    id="harbor-oracle",
    title="Runs the solution included in a Harbor task",
    command=("sh", "-c", "echo 'This agent only runs on Harbor tasks.' >&2; exit 1"),
    build=Build(context=Path(__file__).with_name("oracle")),
    needs=("answers",),
    isolated=True,
    tags=("no-llm",),
)
