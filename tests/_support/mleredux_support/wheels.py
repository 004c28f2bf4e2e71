"""Build wheels of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[3]
_FOLDERS = ("core", "kits/*", "plugins/*", "plugins/*/*")
PROJECTS = {
    str(tomllib.loads(path.read_text())["project"]["name"]): path.parent
    for folder in _FOLDERS
    for path in sorted(ROOT.glob(f"{folder}/pyproject.toml"))
}
"""The folder of each distribution of the workspace."""
UV = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
_BUILD = """
import os, sys
from hatchling.build import build_wheel
for project in sys.argv[2:]:
    os.chdir(project)
    build_wheel(sys.argv[1])
"""


def build_wheels(folder: Path, *names: str) -> None:
    """Build wheels of distributions, or of all, in one process that has their only build requirement.

    `uv build` makes the same wheels, but creates an environment and starts two processes for each.

    Args:
        folder: The folder to create, with the wheels in it.
        names: The names of the distributions.
    """
    projects = [PROJECTS[name] for name in names or PROJECTS]
    for project in projects:
        needs = tomllib.loads((project / "pyproject.toml").read_text())["build-system"]
        assert needs == {"requires": ["hatchling"], "build-backend": "hatchling.build"}, project
    folder.mkdir()
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    with tempfile.TemporaryDirectory() as builder:
        python = str(Path(builder) / "bin" / "python")
        for command in (
            (UV, "venv", "--quiet", "--clear", "--python", sys.executable, builder),
            (UV, "pip", "install", "--quiet", "--python", python, "hatchling"),
            (python, "-c", _BUILD, str(folder), *map(str, projects)),
        ):
            done = subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True)
            assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}{done.stderr[-2000:]}"
    assert len(list(folder.glob("*.whl"))) == len(projects)
