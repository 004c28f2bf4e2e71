"""Technique tasks: small diagnostic questions about the data of any competition with a table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from mleredux.plugin import Ref, hookimpl

if TYPE_CHECKING:
    from mleredux.plugin.artifact import Artifact, Run
    from mleredux.plugin.page import Action, Page, Panel
    from mleredux.plugin.task import Task

mleredux_contract = 2


@hookimpl
def mleredux_register_techniques() -> Iterable[Ref]:
    """Register one technique per folder with a `technique.py`, imported when used."""
    folders = sorted(path.parent.name for path in Path(__file__).parent.glob("*/technique.py"))
    return [Ref(name, f"{__name__}.{name}.technique:technique") for name in folders]


@hookimpl
def mleredux_find_task(name: str, base: Task | None) -> Task | None:
    """Resolve ids of tasks that are generated (`wine+planted-7`, `synthetic-micro-7`) or hold back training rows."""
    if name.endswith(("+dev", "-dev")):
        from mleredux_techniques._kit.planting.dev import find_dev

        return find_dev(name)
    if base is None and not name.startswith("synthetic-"):
        return None
    from mleredux_techniques._kit.planting.competition import planted_competition
    from mleredux_techniques._kit.planting.micro import micro_competition
    from mleredux_techniques._kit.planting.seeds import parse
    from mleredux_techniques._kit.planting.synthetic import synthetic_competition

    if base is None:
        return synthetic_competition(name) or micro_competition(name)
    variant = name.partition("+")[2]
    if variant == "shadow":
        from mleredux_techniques._kit.planting.shadow import shadow_competition

        return shadow_competition(base)
    seed = parse(variant)
    return None if seed is None else planted_competition(base, seed)


@hookimpl
def mleredux_register_commands() -> Iterable[Ref]:
    """Return the commands `findings`, `planted`, `classroom` and `runs techniques`."""
    commands = tomllib.loads((files(__name__) / "commands.toml").read_text(encoding="utf-8"))
    return [Ref(name, f"{__name__}.{fields.pop('function')}", fields) for name, fields in commands.items()]


@hookimpl
def mleredux_register_formats() -> Iterable[Ref]:
    """Return the format of findings as a skill."""
    title = "Agent Skills (SKILL.md) of findings, in a zip file"
    return [Ref("skill", f"{__name__}.findings.skill:skill", {"title": title, "suffix": ".zip", "together": True})]


@hookimpl
def mleredux_produce_artifacts(run: Run) -> Iterable[Artifact]:
    """Write feedback on technique runs."""
    if "@" not in run.spec.task:
        return []
    from mleredux_techniques.feedback import produce

    return produce(run)


@hookimpl
def mleredux_register_pages() -> Iterable[Page | Panel | Action]:
    """Return the page of technique questions and the page of findings about a task."""
    from mleredux.plugin.page import Action, Page, Panel

    where = f"{__name__}.pages"
    return [
        Page(path="/techniques", template="techniques.html.j2", function=f"{where}:techniques", menu="Techniques"),
        Action(path="/techniques/own", function=f"{where}:own"),
        Panel(title="Techniques", template="on_task.html.j2", function=f"{where}:on_task", place="task"),
    ]
