"""Plugins on a real import path: a folder of installed distributions, listed by a separate process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

GOOD = """
from pathlib import Path
from mleredux import Agent, Competition, Grader, Metric, Ref, hookimpl
mleredux_contract = 2
GRADER = Grader(id="{name}-grader", title="G", direction="maximize", score=lambda given: 1.0)
TASK = Competition(id="{name}-task", title="T", description=Path("d.md"), metric=Metric(grader=GRADER),
                   direction="maximize", variants={{"odd": lambda task: task, "bad": lambda task: 1 / 0}})
@hookimpl
def mleredux_register_tasks():
    return [TASK]
@hookimpl
def mleredux_register_agents():
    return [Ref("{name}-agent", "{name}:AGENT")]
AGENT = Agent(id="{name}-agent", title="A", command=("true",))
"""
LIST = """
import json, sys
from mleredux._core.plugins import Catalogue
catalogue = Catalogue()
tasks, agents = list(catalogue.entries("tasks")), list(catalogue.entries("agents"))
print(json.dumps({"tasks": tasks, "agents": agents, "problems": catalogue.problems(), "modules": sorted(sys.modules),
                  "states": {plugin.name: plugin.state for plugin in catalogue.plugins}}))
"""


class Site:
    """A folder of installed distributions, each with one plugin."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    def install(
        self,
        name: str,
        code: str,
        *,
        entry: str | None = None,
        distribution: str | None = None,
        group: str = "mleredux",
    ) -> None:
        """Write a package and its distribution; a group without a name has no entry points."""
        package = self.path / name
        package.mkdir()
        (package / "__init__.py").write_text(code)
        info = self.path / f"{(distribution or name).replace('-', '_')}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution or name}\nVersion: 1.2\n")
        if group:
            (info / "entry_points.txt").write_text(f"[{group}]\n{entry or name} = {name}\n")

    def good(self, name: str) -> None:
        self.install(name, GOOD.format(name=name))

    def change(self, name: str, old: str, new: str) -> None:
        """Edit a plugin's source, as its author would."""
        path = self.path / name / "__init__.py"
        path.write_text(path.read_text().replace(old, new))

    def python(self, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # Without the distributions of this environment: only ours, and click, pluggy and pydantic from the same folder.
        ours = "import sys, importlib_metadata as metadata; real = metadata.distributions\n"
        ours += "metadata.distributions = lambda **q: [found for found in real(**q) if '-1.2.' in str(found._path)]\n"
        return subprocess.run(
            [sys.executable, "-c", ours + code],
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join((str(self.path), str(Path(__file__).parents[1]))),
                "XDG_CACHE_HOME": str(self.path.parent / "cache"),
                "MLEREDUX_BLOCK_PLUGINS": "",
                **environment,
            },
            capture_output=True,
            text=True,
            timeout=600,
        )

    def listed(self, **environment: str) -> dict[str, Any]:
        told = self.python(LIST, **environment)
        assert told.returncode == 0, told.stderr
        found: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
        return found
