"""`mleredux new` writes packages that are complete."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.root import root
from mleredux._core.data import DataStore
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.grade import grade
from mleredux._core.stages.prepare import prepare
from mleredux_testing import TOY_PLUGIN, toy_task
from mleredux_testing.scaffolds.command import render


def new(*arguments: str) -> Result:
    return CliRunner().invoke(root, ["new", *arguments])


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    assert new("task-bundle", "spring-tides", "--output", str(tmp_path)).exit_code == 0
    return tmp_path / "spring-tides"


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    assert new("agent", "near-by", "--output", str(tmp_path)).exit_code == 0
    return tmp_path / "near-by"


@pytest.fixture
def llm(tmp_path: Path) -> Path:
    assert new("agent", "asking-one", "--llm", "--output", str(tmp_path)).exit_code == 0
    return tmp_path / "asking-one"


@pytest.fixture
def cli(tmp_path: Path) -> Path:
    assert new("agent", "wrapping-one", "--cli", "--output", str(tmp_path)).exit_code == 0
    return tmp_path / "wrapping-one"


@pytest.mark.parametrize("made", ["bundle", "agent", "llm", "cli"])
def test_the_package_is_complete_and_no_placeholder_is_left(made: str, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(made)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {"pyproject.toml", "README.md", f"test_{folder.name.replace('-', '_')}.py"} <= {path.name for path in files}
    assert not [path for path in files if "{{" in path.read_text() or path.suffix == ".tmpl"]
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    (target,) = project["entry-points"]["mleredux"].values()
    assert (folder / "src" / Path(*target.split("."))).with_suffix(".py").exists() or (
        folder / "src" / target / "__init__.py"
    ).exists()


@pytest.mark.parametrize(
    "name", ["Big", "1st", "a_b", "a--b", "a-", "-a", "", "json", "class", "mleredux", "a" * 41, "../up", "ä"]
)
@pytest.mark.parametrize("kind", ["task-bundle", "agent"])
def test_a_name_that_can_be_no_package_is_refused(kind: str, name: str, tmp_path: Path) -> None:
    made = new(kind, "--output", str(tmp_path), "--", name)
    assert made.exit_code == 2
    assert "Invalid value for NAME" in made.output
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_ever_overwritten(bundle: Path) -> None:
    before = {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()}
    again = new("agent", bundle.name, "--output", str(bundle.parent))
    assert again.exit_code == 1
    assert "exists" in str(again.exception)
    assert {path: path.read_bytes() for path in bundle.rglob("*") if path.is_file()} == before


def test_a_name_that_is_installed_is_refused(tmp_path: Path) -> None:
    made = CliRunner().invoke(
        root, ["-p", "mleredux_testing.toys", "new", "task-bundle", "toy", "--output", str(tmp_path)]
    )
    assert made.exit_code == 1
    assert "is already installed" in str(made.exception)


@pytest.mark.parametrize(
    ("kind", "example", "module"),
    [("sandbox", "plain-sandbox", "sandbox"), ("technique", "constant-columns", "technique")],
)
def test_the_code_of_templates_is_that_of_the_examples(kind: str, example: str, module: str, tmp_path: Path) -> None:
    """So that the documented example and what `mleredux new` writes stay the same."""
    render(("plugin", kind), example, tmp_path / "made", {"what": "", "needs": "", "run": "", "guide": ""})
    package = example.replace("-", "_")
    made = (tmp_path / "made" / "src" / package / f"{module}.py").read_text()
    place = Path(__file__).parents[3] / "examples" / kind / "src" / package / f"{module}.py"
    wanted = (
        place.read_text().replace('id = "plain"', 'id = "plain-sandbox"').replace('"plain sandbox"', f'"{example}"')
    )
    assert made == wanted


def run_python(folder: Path, *arguments: str, **env: str) -> None:
    """Run Python with the package importable, as `pip install` would make it."""
    ended = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(folder / "src"), "PATH": "/usr/bin:/bin", "HOME": str(folder.parent), **env},
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]


CONFORMS = """
import mleredux_testing as testing
from mleredux._core.plugins import Catalogue
testing.check_task('spring-tides', catalogue=Catalogue(load=['spring_tides']))
"""


def test_the_task_conforms_as_it_is_written(bundle: Path) -> None:
    run_python(bundle, "-c", CONFORMS)


@pytest.mark.parametrize("kind", ["code", "service", "model", "policy"])
def test_a_task_that_asks_for_a_program_conforms(kind: str, tmp_path: Path) -> None:
    assert new("task-bundle", "spring-tides", "--kind", kind, "--output", str(tmp_path)).exit_code == 0
    assert not [
        path for path in (tmp_path / "spring-tides").rglob("*.*") if path.is_file() and "{{" in path.read_text()
    ]
    run_python(tmp_path / "spring-tides", "-c", CONFORMS)


METRIC = """
def trimmed_error(y_true, y_pred, sample_weight=None):
    errors = np.abs(y_true - y_pred)
    kept = errors <= np.quantile(errors, 0.9)
    return np.average(errors[kept], weights=None if sample_weight is None else sample_weight[kept])


"""


def test_a_task_with_a_metric_of_five_lines_conforms(bundle: Path) -> None:
    (place,) = (bundle / "src").glob("*/task.py")
    declared = place.read_text()
    changed = declared.replace("task = Competition(", f"{METRIC.lstrip()}task = Competition(").replace(
        'Metric(grader="rmse")',
        'Metric(grader=make_grader(trimmed_error, direction="minimize", perfect=0.0))',
    )
    imports = "import numpy as np\nfrom mleredux_tables import make_grader\n"
    place.write_text(changed.replace("from mleredux import Comp", f"{imports}from mleredux import Comp"))
    assert place.read_text().count("trimmed_error") == 2
    run_python(bundle, "-c", CONFORMS)


def test_the_agent_solves_the_toy_task_as_it_is_written(agent: Path, tmp_path: Path) -> None:
    data = DataStore(tmp_path / "data")
    prepared = prepare(toy_task, Catalogue(load=[TOY_PLUGIN]), data)
    facts = {"sample": "sample_submission.csv", "id_columns": ["id"], "target_columns": ["large"]}
    (tmp_path / "task.json").write_text(json.dumps(facts))
    (tmp_path / "code").mkdir()
    run_python(
        agent,
        "-m",
        "near_by",
        MLEREDUX_DATA_DIR=str(prepared.public),
        MLEREDUX_TASK_DIR=str(tmp_path),
        MLEREDUX_OUTPUT_DIR=str(tmp_path),
        MLEREDUX_SUBMISSION=str(tmp_path / "submission.csv"),
        MLEREDUX_DEADLINE=str(time.time() + 60),
        MLEREDUX_SEED="0",
        MLEREDUX_OPTIONS='{"neighbours": 5, "max_rows": 2000}',
    )
    report = grade(toy_task, tmp_path / "submission.csv", prepared.private, Catalogue(load=[TOY_PLUGIN]))
    assert report.score is not None
    assert report.score > 0.8
