"""`mleredux doctor` tells what is missing, and how to fix it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from mleredux._core.checks import machine as doctor
from mleredux._core.data import DataStore
from mleredux._core.planning.names import check_metric
from mleredux._core.plugins import Catalogue, Plugin
from mleredux._core.plugins.capabilities import Capabilities
from mleredux._core.plugins.discovery import Entry, Ref
from mleredux._core.protocols import Finding
from mleredux._core.store import RunStore
from mleredux.errors import NotFound
from mleredux.models import Grader, Metric
from mleredux_support.commands import mleredux
from mleredux_testing import TOY_PLUGIN, toy_task

CHECKS = """
import click
from mleredux.plugin import Ref, hookimpl
from mleredux.plugin.sandbox import Finding

def check(area):
    def findings():
        if area == "broken":
            raise RuntimeError("the robot is stuck")
        return [Finding("account", area == "disks", "It is looked up.")]
    return click.Command(area, callback=findings)

disks, tapes, broken = map(check, ("disks", "tapes", "broken"))

@hookimpl
def mleredux_register_commands():
    return [Ref(f"doctor {area}", f"{__name__}:{area}") for area in ("disks", "tapes", "broken")]
"""


@pytest.fixture
def catalogue() -> Catalogue:
    """Core and the toy plugin alone."""
    others = [plugin.name for plugin in Catalogue().plugins if plugin.source != "built in"]
    return Catalogue(block=others, load=[TOY_PLUGIN])


def look(catalogue: Catalogue, tmp_path: Path) -> dict[str, doctor.Diagnosis]:
    found = doctor.diagnose(catalogue, RunStore(tmp_path / "runs"), DataStore(tmp_path / "data"))
    return {f"{diagnosis.area}/{diagnosis.finding.name}": diagnosis for diagnosis in found}


def test_a_machine_that_can_do_the_main_job_is_healthy(catalogue: Catalogue, tmp_path: Path) -> None:
    found = look(catalogue, tmp_path)
    assert doctor.healthy(list(found.values()))
    assert (
        found["python/python"].level == found["plugins/tasks"].level == found["sandboxes/process sandbox"].level == "ok"
    )


def test_what_plugins_check_is_among_the_findings(tmp_path: Path) -> None:
    (tmp_path / "checks.py").write_text(CHECKS)
    found = look(Catalogue(load=[str(tmp_path / "checks.py")]), tmp_path)
    assert [found[f"{area}/account"].level for area in ("disks", "tapes")] == ["ok", "warning"]
    assert "the robot is stuck" in found["broken/doctor broken"].finding.message


def test_a_plugin_that_fails_is_a_warning_that_names_it(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("import a_module_that_is_not_there\n")
    others = [plugin.name for plugin in Catalogue().plugins if plugin.source != "built in"]
    found = look(Catalogue(block=others, load=[TOY_PLUGIN, str(broken)]), tmp_path)
    assert found["plugins/broken"].level == "warning"
    assert "a_module_that_is_not_there" in found["plugins/broken"].finding.message
    assert doctor.healthy(list(found.values()))


def test_without_tasks_the_main_job_does_not_work(tmp_path: Path) -> None:
    others = [plugin.name for plugin in Catalogue().plugins if plugin.source != "built in"]
    found = look(Catalogue(block=others), tmp_path)
    assert found["plugins/tasks"].level == "error"
    assert not doctor.healthy(list(found.values()))


class _Broken:
    id, title, capabilities = "broken", "Broken", Capabilities(isolated=True)

    def check(self) -> list[Finding]:
        return [Finding("engine", False, "The engine does not answer.", "Start it.")]

    build = layout = start = attach = sweep = lambda self: None


def test_a_sandbox_that_does_not_work_is_a_warning_while_another_does(catalogue: Catalogue, tmp_path: Path) -> None:
    plugin = Plugin("given", "given")
    catalogue.entries("sandboxes")["broken"] = Entry("broken", "sandboxes", plugin, Ref("broken"), _Broken())
    found = look(catalogue, tmp_path)
    assert found["sandboxes/engine"].level == "warning"
    assert found["sandboxes/engine"].finding.remedy == "Start it."
    assert doctor.healthy(list(found.values()))
    del catalogue.entries("sandboxes")["process"]
    assert not doctor.healthy(list(look(catalogue, tmp_path).values()))


def test_low_disk_and_memory_are_warnings(
    catalogue: Catalogue, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LOW_DISK_GB", 10.0**9)
    monkeypatch.setenv("MLEREDUX_MEMORY_MB", "512")
    found = look(catalogue, tmp_path)
    assert found["disk/runs disk"].level == found["disk/data disk"].level == found["memory/machine"].level == "warning"


def test_data_that_others_prepared_is_a_warning_with_a_remedy(catalogue: Catalogue, tmp_path: Path) -> None:
    assert look(catalogue, tmp_path)["data/files"].level == "ok"
    for name, record in (("ours", '{"neutral": true}'), ("older", "{}"), ("damaged", "{"), ("of-mle-bench", None)):
        folder = tmp_path / "data" / name / "prepared"
        (folder / "public").mkdir(parents=True)
        if record:
            (folder / "prepared.json").write_text(record)
    diagnosis = look(catalogue, tmp_path)["data/files"]
    assert diagnosis.level == "warning"
    assert "damaged, of-mle-bench, older may" in diagnosis.finding.message
    assert "--force" in (diagnosis.finding.remedy or "")


def test_a_runs_folder_that_is_a_file_is_an_error(catalogue: Catalogue, tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    found = look(catalogue, tmp_path)
    assert found["disk/runs folder"].level == "error"
    assert "--runs-dir" in (found["disk/runs folder"].finding.remedy or "")


@pytest.mark.parametrize(("load", "code"), [((TOY_PLUGIN,), 0), ((), 3)])
def test_the_command_prints_one_json_document_and_its_exit_code_says_whether_it_works(
    tmp_path: Path, load: tuple[str, ...], code: int
) -> None:
    blocked = [plugin.name for plugin in Catalogue().plugins if plugin.source != "built in"]
    options = [word for name in blocked for word in ("--block", name)] + [
        word for name in load for word in ("-p", name)
    ]
    asked = subprocess.run(
        [sys.executable, "-c", "from mleredux._core.cli.root import main; main()", *options, "doctor", "--json"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert asked.returncode == code, asked.stderr
    assert json.loads(asked.stdout)["healthy"] is (code == 0)


def test_docker_is_not_imported_where_its_plugin_is_blocked(tmp_path: Path) -> None:
    program = (
        "import sys; sys.argv = ['mleredux', '--block', 'docker', 'doctor', '--json']\n"
        "from mleredux._core.cli.root import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "assert 'docker' not in sys.modules"
    )
    asked = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert asked.returncode == 0, asked.stderr


def test_a_pair_of_task_and_agent_is_told_whether_it_runs_here() -> None:
    told = mleredux("doctor", "wine", "--agent", "baseline", "--json")
    found = {f"{one['area']}/{one['name']}": one for one in told.json["findings"]}
    assert told.code == 0 and found["agent/baseline on wine"]["message"] == "It runs in sandbox process."
    told = mleredux("doctor", "wine", "--agent", "hunter", "--sandbox", "no-such-sandbox")
    assert told.code == 3 and "There is no sandbox 'no-such-sandbox'" in told.out
    assert mleredux("doctor", "--agent", "baseline").code == 2


def test_a_metric_that_cannot_be_computed_is_found_before_an_agent_starts() -> None:
    grader = toy_task.metric.grader
    assert isinstance(grader, Grader)
    lacking = grader.model_copy(update={"requires": {"no_such_module": "odd-metrics[all]"}})
    with pytest.raises(NotFound, match="needs the package no_such_module") as error:
        check_metric(Catalogue(), toy_task.model_copy(update={"metric": Metric(grader=lacking)}))
    assert error.value.hint == "Install it: `pip install 'odd-metrics[all]'`."
    with pytest.raises(NotFound, match="there is no such grader"):
        check_metric(Catalogue(), toy_task.model_copy(update={"metric": Metric(grader="no-such-grader")}))
    with pytest.raises(NotFound) as error:
        check_metric(Catalogue(), toy_task.model_copy(update={"metric": Metric(grader="rmsee")}))
    assert str(error.value.hint).startswith("Did you mean rmse")
