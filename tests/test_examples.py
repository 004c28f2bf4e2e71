"""Third parties' packages install into a clean environment, and everything works with them, and without them.

The environment is made by `uv` from the folders of this checkout, as `examples/*/README.md` say.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
OURS = (
    "core",
    *(f"kits/{name}" for name in ("agentkit", "programs", "rollout", "tables", "testing")),
    *("plugins/graders", "plugins/techniques", "plugins/agents/dummy"),
)
EXAMPLES = ("examples/task-bundle", "examples/agent", "examples/technique", "examples/sandbox")

MISSING = {
    "run digits --agent dummy": "mleredux-competition-starter",
    "run spaceship-titanic --agent dummy": "'mleredux-competition-mlebench[all]'",
    "run bike-hours --agent aide": "mleredux-agent-aide",
    "run bike-hours --agent ./pyvenv.py": "mleredux-agent-repo",
    "run cv@bike-hours --agent dummy": "mleredux-techniques",
    "serve": "mleredux-server",
    "runs plot last": "mleredux-artifact-reports",
    "compare a b": "mleredux-experiments",
}
"""Commands and the package that they lack."""

pytestmark = pytest.mark.slow


class Environment:
    """A virtual environment of its own.

    Attributes:
        folder: Where it is, and where commands run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "env" / "bin"
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("MLEREDUX_", "PYTHON", "VIRTUAL"))
        }
        self.variables = {**kept, "MLEREDUX_DATA_ROOT": str(folder / "data"), "COLUMNS": "200"}
        self.uv("venv", "--quiet", "--python", sys.executable, str(folder / "env"))

    def uv(self, *words: str) -> str:
        uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
        return self._call([uv, *words])

    def install(self, *folders: str) -> None:
        """Install from folders of this checkout, each built as its users would build it."""
        places = [str(ROOT / folder) if (ROOT / folder).is_dir() else folder for folder in folders]
        self.uv("pip", "install", "--quiet", "--python", str(self.bin / "python"), *places)

    def uninstall(self, *names: str) -> None:
        self.uv("pip", "uninstall", "--quiet", "--python", str(self.bin / "python"), *names)

    def mleredux(self, *words: str) -> Any:
        """What a command prints as JSON."""
        return json.loads(self._call([str(self.bin / "mleredux"), *words, "--json"]))

    def refused(self, *words: str) -> str:
        """What a command that must fail prints as its error."""
        ended = subprocess.run(
            [str(self.bin / "mleredux"), *words], capture_output=True, text=True, cwd=self.folder, env=self.variables
        )
        assert ended.returncode not in (0, 70), ended.stdout
        return " ".join(ended.stderr.split())

    def pytest(self, folder: str) -> str:
        return self._call([str(self.bin / "python"), "-m", "pytest", str(ROOT / folder), "-p", "no:cacheprovider"])

    def _call(self, command: list[str]) -> str:
        ended = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.variables)
        assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
        return ended.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    environment = Environment(tmp_path_factory.mktemp("clean"))
    environment.install(*OURS, *EXAMPLES, "pytest")
    return environment


def test_installing_the_bundle_alone_makes_its_task_appear(clean: Environment) -> None:
    assert [task["id"] for task in clean.mleredux("list")] == ["bike-hours"]
    assert "nearest-rows" in [agent["id"] for agent in clean.mleredux("list", "agents")]


def test_the_example_agent_solves_the_example_task_to_a_graded_report(clean: Environment) -> None:
    run = clean.mleredux("run", "bike-hours", "--agent", "nearest-rows")
    assert run["status"] == "done"
    assert run["report"]["valid_submission"] is True
    assert run["report"]["score"] < 35
    assert run["report"]["teams"] == 29
    listed = {
        artifact["path"]
        for artifact in json.loads((clean.folder / run["path"] / "artifacts.json").read_bytes())["artifacts"]
    }
    assert {"report.json", "output/submission.csv", "output/rollout/trajectory.json"} <= listed


def test_agents_run_in_the_example_sandbox_that_they_do_not_know(clean: Environment) -> None:
    run = clean.mleredux("run", "bike-hours", "--agent", "dummy", "--sandbox", "plain")
    assert run["status"] == "done" and run["report"]["valid_submission"] is True
    shown = {agent["id"]: agent["sandboxes"] for agent in clean.mleredux("list", "agents")}
    assert shown == {name: ["process", "plain"] for name in ("dummy", "nearest-rows", "oracle")}


def test_its_variant_is_another_task_with_data_of_its_own(clean: Environment) -> None:
    run = clean.mleredux("run", "bike-hours+week", "--agent", "dummy")
    assert run["report"]["competition_id"] == "bike-hours+week"
    rows = (clean.folder / "data" / "bike-hours+week" / "prepared" / "public" / "train.csv").read_text().splitlines()
    assert len(rows) == 1 + 7 * 24


def test_the_example_technique_is_asked_of_the_example_task_and_graded(clean: Environment) -> None:
    assert "constant-columns" in [technique["id"] for technique in clean.mleredux("list", "techniques")]
    task = "constant-columns+planted-1@bike-hours"
    clean.mleredux("prepare", task)
    truth = json.loads((clean.folder / "data" / task / "prepared" / "private" / "truth.json").read_bytes())
    columns = [{"column": name, "share": share, "drop": True} for name, share in truth["shares"].items()]
    document = clean.folder / "constant-columns_analysis.json"
    document.write_text(json.dumps({"columns": columns}))
    report = clean.mleredux("grade", str(document), task)
    assert len(columns) >= 2 and report["score"] == 1.0
    document.write_text(json.dumps({"columns": columns[:1]}))
    assert clean.mleredux("grade", str(document), task)["score"] < 0.9


@pytest.mark.parametrize("folder", EXAMPLES)
def test_their_own_tests_pass(clean: Environment, folder: str) -> None:
    assert "passed" in clean.pytest(folder)


def test_removing_a_plugin_leaves_a_working_program_with_fewer_names(clean: Environment) -> None:
    """The last test of this file: nothing is installed again."""
    told = clean.refused("run", "bike-hours", "--agent", "dummy", "--sandbox", "docker")
    assert "Install it: `pip install mleredux-sandbox-docker`." in told
    clean.uninstall("nearest-rows", "constant-columns", "mleredux-techniques", "mleredux-graders")
    assert [agent["id"] for agent in clean.mleredux("list", "agents")] == ["dummy", "oracle"]
    assert clean.mleredux("list", "graders") == clean.mleredux("list", "techniques") == []
    assert [task["id"] for task in clean.mleredux("list")] == ["bike-hours"]
    assert clean.mleredux("doctor")["healthy"] is True
    told = clean.refused("run", "bike-hours", "--agent", "dummy")
    assert "is graded with" in told and "pip install mleredux-graders" in told, "before the agent works for nothing"
    (clean.folder / "pyvenv.py").touch()
    for words, package in MISSING.items():
        assert f"Install it: `pip install {package}`." in clean.refused(*words.split()), words
    clean.uninstall("bike-hours")
    assert clean.mleredux("list") == []
    assert [sandbox["id"] for sandbox in clean.mleredux("list", "sandboxes")] == ["plain", "process"]
