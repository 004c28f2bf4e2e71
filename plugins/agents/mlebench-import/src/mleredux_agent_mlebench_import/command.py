"""`mleredux agent import-mlebench`."""

from __future__ import annotations

from pathlib import Path

import click
from mleredux.plugin.command import json_option, print_json

from mleredux_agent_mlebench_import.agents import load_agents
from mleredux_agent_mlebench_import.layout import read_folder
from mleredux_agent_mlebench_import.registry import DEFAULT_LIBRARIES, keep, register


@click.command("import-mlebench")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--id", "ids", multiple=True, metavar="ID", help="Only this agent of config.yaml; can be repeated.")
@click.option(
    "--libraries",
    default=DEFAULT_LIBRARIES,
    show_default=True,
    help="Packages to preinstall in the environment `agent`: none, minimal, tabular, torch, text, or "
    "requirements separated by semicolons.",
)
@click.option("--env-image", metavar="IMAGE", help="An existing image to use as mlebench-env.")
@json_option
def command(folder: Path, ids: tuple[str, ...], libraries: str, env_image: str | None, as_json: bool) -> None:
    """Import agents from a folder in MLE-bench's layout: config.yaml, Dockerfile, start.sh.

    The folder is copied, and its agents run unchanged: `mleredux run TASK --agent mlebench:ID`.
    """
    entries = read_folder(folder)
    unknown = [name for name in ids if name not in entries]
    if unknown:
        raise click.BadParameter(f"config.yaml has no {', '.join(unknown)}; it has {', '.join(entries)}.")
    copy = keep(folder, libraries, env_image)
    agents = {name: agent for name, agent in load_agents(copy).items() if not ids or name in ids}
    replaced = register(list(agents.values()), copy)
    warnings = [
        f"{name} asks for a privileged container; it will run without privileges, like every agent."
        for name in agents
        if entries[name].privileged
    ]
    warnings += [f"{name} was imported before; its name now stands for this folder." for name in replaced]
    if as_json:
        print_json(
            {
                "copy": copy,
                "agents": [
                    {"id": f"mlebench:{name}", "reference": agent.reference, "secrets": agent.secrets}
                    for name, agent in agents.items()
                ],
                "warnings": warnings,
            }
        )
        return
    for name, agent in agents.items():
        needs = f" (needs {', '.join(agent.secrets)}, or a gateway that holds them)" if agent.secrets else ""
        click.echo(f"mlebench:{name}{needs}")
    for warning in warnings:
        click.echo(f"Warning: {warning}", err=True)
