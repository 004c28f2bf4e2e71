"""The command line against a real server, as a newcomer uses it: the same commands, the same documents as here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from mleredux_support import commands as testing
from mleredux_support.commands import Told
from mleredux_support.server import ServerProcess

Mleredux = Callable[..., Told]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("server") / "runs") as started:
        yield started


@pytest.fixture
def mleredux(server: ServerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mleredux:
    """The program with the server named; nothing it says holds the token."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MLEREDUX_TOKEN", server.token)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("MLEREDUX_SERVER", raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, here: bool = False) -> Told:
        told = testing.mleredux(*arguments, *(() if here else ("--server", server.url)))
        assert server.token not in told.out + told.err
        return told

    return run


@pytest.fixture(scope="module")
def submission(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some well-formed predictions, and not the best."""
    from mleredux._core.api import prepare

    sample = prepare("digits").public / "sample_submission.csv"
    path = tmp_path_factory.mktemp("submission") / "submission.csv"
    path.write_bytes(sample.read_bytes())
    return path


def test_what_there_is_is_listed_and_shown_as_here(mleredux: Mleredux) -> None:
    for arguments in (
        ("list", "--set", "starter", "--set", "low"),
        ("list", "--technique", "cv"),
        *(("list", kind) for kind in ("techniques", "agents", "graders", "sandboxes")),
    ):
        told = mleredux(*arguments, "--json").json
        assert {row["id"] for row in told} == {row["id"] for row in mleredux(*arguments, "--json", here=True).json}
    told, here = mleredux("show", "digits", "--json").json, mleredux("show", "digits", "--json", here=True).json
    assert "data" not in told, "no paths of the server"
    assert [key for key in here if key not in ("data", "prepared") and told[key] != here[key]] == []
    assert mleredux("show", "digits", "--obfuscated").out != mleredux("show", "digits").out
    agent = mleredux("agent", "show", "dummy", "--json").json
    here = mleredux("agent", "show", "dummy", "--json", here=True).json
    assert [key for key in agent if key in here and agent[key] != here[key]] == [] and agent["limits"]


@pytest.fixture(scope="module")
def finished(server: ServerProcess) -> dict[str, Any]:
    """Filled by the first test that runs an agent: its record."""
    return {}


def test_a_run_is_followed_to_its_end_and_told_as_here(
    mleredux: Mleredux, finished: dict[str, Any], tmp_path: Path
) -> None:
    asked = ("run", "digits", "--agent", "dummy", "--sandbox", "process", "--json")
    told = mleredux(*asked, "--label", "kind=test", "--follow")
    assert told.code == 0, told.err
    here = mleredux(*asked, "--runs-dir", str(tmp_path / "runs"), here=True).json
    assert set(here) <= set(told.json) and set(here["report"]) == set(told.json["report"])
    assert told.json["report"]["score"] == here["report"]["score"] and told.json["path"] is None
    finished |= told.json


def test_a_run_is_found_and_shown(mleredux: Mleredux, finished: dict[str, Any]) -> None:
    assert [row["id"] for row in mleredux("runs", "--label", "kind=test", "--json").json] == [finished["id"]]
    assert mleredux("runs", "--label", "kind=other", "--json").json == []
    for name in (finished["id"], finished["id"][-8:], "last"):
        assert mleredux("runs", "show", name, "--json").json["id"] == finished["id"]
    shown = mleredux("runs", "show", "last").out
    assert "state=queued" in shown and "state=done" in shown and "accuracy" in shown


def test_logs_and_artifacts_are_those_of_the_run(
    mleredux: Mleredux, finished: dict[str, Any], server: ServerProcess, tmp_path: Path
) -> None:
    folder = server.runs_dir / finished["id"]
    log = (folder / "logs" / "agent.log").read_text()
    assert log and mleredux("logs").out == mleredux("logs", "--follow", "--raw").out == log
    listed = mleredux("artifacts", "--json").json
    manifest = json.loads((folder / "artifacts.json").read_bytes())["artifacts"]
    assert sorted(item["path"] for item in listed) == sorted(item["path"] for item in manifest)
    told = mleredux("artifacts", "--output", "copies", "--producer", "agent")
    assert told.code == 0, told.err
    wanted = [item for item in listed if item["producer"] == "agent"]
    assert wanted
    for item in wanted:
        assert hashlib.sha256((tmp_path / "copies" / item["path"]).read_bytes()).hexdigest() == item["sha256"]


def test_predictions_are_graded_and_looked_at_as_here(mleredux: Mleredux, submission: Path, tmp_path: Path) -> None:
    def told(*arguments: str) -> tuple[Any, Any]:
        there, here = mleredux(*arguments, "--json"), mleredux(*arguments, "--json", here=True)
        assert there.code == here.code
        for report in (there.json, here.json):
            assert report
        return there.json, here.json

    for path in (str(submission), str(tmp_path / "missing.csv")):
        there, here = told("grade", path, "digits")
        differing = {key for key in here if there[key] != here[key]}
        # Of a file that can't be sent, the report is made of what everybody may know of the task.
        assert differing <= {"created_at", "ledger"} | ({"teams"} if path != str(submission) else set())
        there, here = told("validate", path, "digits")
        assert there == here
    lines = [{"competition_id": "digits", "submission_path": path} for path in (str(submission), None)]
    (tmp_path / "submission.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    there, here = told("grade", "--jsonl", "submission.jsonl", "--output", "reports")
    for key in set(here) - {"competition_reports"}:
        assert there[key] == here[key]
    assert len(list((tmp_path / "reports").iterdir())) >= 1


def test_an_agent_is_built_ahead_of_its_runs(mleredux: Mleredux) -> None:
    told = mleredux("agent", "build", "dummy", "--sandbox", "process", "--follow")
    assert told.code == 0 and told.out == "dummy\n", told.err
    refused = mleredux("agent", "build", "repo:https://127.0.0.1:1/team/agent.git@main", "--sandbox", "docker")
    assert refused.code == 4 and "Error: " in refused.err and "Traceback" not in refused.err


def test_a_matrix_is_one_experiment_and_is_cancelled_as_one(mleredux: Mleredux) -> None:
    asked = ("run", "digits", "--agent", "baseline", "--sandbox", "process", "--seed", "1", "--seed", "2")
    records = mleredux(*asked, "--detach", "--json").json
    assert len(records) == 2
    experiment = records[0]["experiment"]
    ids = {record["id"] for record in records}
    assert {row["id"] for row in mleredux("runs", "--experiment", experiment, "--json").json} == ids
    refused = mleredux("runs", "delete", records[0]["id"], "--yes")
    assert refused.code == 1 and "Traceback" not in refused.err
    assert mleredux("runs", "cancel", "--experiment", experiment).code == 0
    for name in ids:
        mleredux("logs", name, "--follow")  # ends when the run does
        assert mleredux("runs", "show", name, "--json").json["status"] == "cancelled"
    assert mleredux("runs", "delete", *ids, "--yes").code == 0
    assert mleredux("runs", "--experiment", experiment, "--json").json == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("runs", "show", "nothing"), "There is no run 'nothing'"),
        (("run", "nothing", "--agent", "dummy"), "There is no task 'nothing'"),
        (("run", "digits", "--agent", "dumy"), "dummy"),
        (("run", "digits", "--agent", "dummy", "-O", "no=1"), "no"),
        (("show", "cv@nothing"), "nothing"),
        (("run", "digits", "--agent", "dummy", "--time-limit", "1000d"), "limits.time_limit"),
        (("artifacts", "../../etc"), "There is no run '../../etc'"),
    ],
)
def test_what_is_not_there_is_one_sentence(mleredux: Mleredux, arguments: tuple[str, ...], sentence: str) -> None:
    told = mleredux(*arguments)
    assert told.code == 1 and sentence in told.err and told.err.count("\n") == 1 and told.out == ""


def test_an_experiment_of_a_plan_is_run_and_counted(mleredux: Mleredux, tmp_path: Path) -> None:
    (tmp_path / "known.md").write_text("Be brief.")
    arms = "".join(f'[arms.{name}]\nagent = "dummy"\nsandbox = "process"\n' for name in ("v1", "v2"))
    plan = tmp_path / "plan.toml"
    plan.write_text(f'[experiment]\nname = "first"\ntasks = ["digits"]\n{arms}context = "known.md"\n')
    told = mleredux("experiment", "run", str(plan), "--json")
    assert told.code == 0, told.err
    assert {(run["arm"], run["status"]) for run in told.json} == {("v1", "done"), ("v2", "done")}
    status = mleredux("experiment", "status", told.json[0]["experiment"], "--json").json
    assert (status["total"], status["ended"], len(status["arms"])) == (2, 2, 2)
    extended = mleredux("experiment", "extend", str(plan), "--seed", "1", "--task", "wine", "--json")
    assert extended.code == 0, extended.err
    assert mleredux("experiment", "status", "first", "--json").json["total"] == 8
    assert "There is no experiment 'last'" in mleredux("experiment", "status", "last").err


def test_an_experiment_is_checked_analysed_and_reported_as_here(mleredux: Mleredux, tmp_path: Path) -> None:
    arms = "".join(f'[arms.{name}]\nagent = "dummy"\nsandbox = "process"\n' for name in ("v1", "v2"))
    plan = tmp_path / "plan.toml"
    design = 'name = "told"\nprimary = "valid"\ntasks = ["digits", "wine"]\nseeds = [0, 1]\n'
    plan.write_text(f"[experiment]\n{design}{arms}")
    checked = mleredux("experiment", "check", str(plan))
    assert checked.code == 0 and "2 arms × 2 tasks × 2 seeds = 8 runs." in checked.out, checked.err
    name = mleredux("experiment", "run", str(plan), "--json").json[0]["experiment"]
    assert mleredux("experiment", "check", str(plan), "--json").json["past"] >= 8
    whole, some = (
        mleredux("experiment", "analyse", name, *more, "--json").json for more in ((), ("--where", "seed=1"))
    )
    assert [[arm["runs"] for arm in one["arms"]] for one in (whole, some)] == [[4, 4], [2, 2]]
    assert (whole["name"], whole["measure"], whole["arms"][0]["deterministic"]) == ("told", "valid", True)
    assert whole["arms"][0]["time"] is not None  # versions come with the table
    report = mleredux("experiment", "report", name, "-o", str(tmp_path / "page"))
    assert report.code == 0 and (tmp_path / "page" / "report.html").is_file(), report.err
    exported = mleredux("experiment", "export", name, "--to", "csv", "-o", str(tmp_path / "csv"))
    assert exported.code == 0 and len((tmp_path / "csv" / "runs.csv").read_text().splitlines()) == 9, exported.err
    compared = mleredux("compare", "v1", "v2", "--experiment", name, "--json")
    assert (compared.json["measure"], compared.json["difference"]) == ("valid", 0.0)
    assert mleredux("experiment", "report", name, "--runs-dir", "runs").code == 2


def test_nobody_sees_anothers_runs(
    mleredux: Mleredux, finished: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mleredux("account", "user", "create", "bob").code == 0
    made = mleredux("account", "token", "create", "--name", "laptop", "--user", "bob", "--json").json
    monkeypatch.setenv("MLEREDUX_TOKEN", made["token"])
    assert mleredux("whoami", "--json").json["user"]["name"] == "bob"
    assert mleredux("runs", "--json").json == []
    hidden, absent = mleredux("runs", "show", finished["id"]), mleredux("runs", "show", "absent")
    assert hidden.code == 1 and hidden.err.replace(finished["id"], "absent") == absent.err
    assert mleredux("account", "user", "create", "eve").code == 1
    monkeypatch.undo()


def test_a_token_that_was_revoked_is_told_what_to_do(mleredux: Mleredux, monkeypatch: pytest.MonkeyPatch) -> None:
    made = mleredux("account", "token", "create", "--name", "short", "--scope", "read", "--json").json
    assert made["id"] in mleredux("account", "token", "list").out
    monkeypatch.setenv("MLEREDUX_TOKEN", made["token"])
    refused = mleredux("run", "digits", "--agent", "dummy")
    assert refused.code == 1 and "run" in refused.err
    assert mleredux("account", "token", "revoke", made["id"]).code == 0
    gone = mleredux("runs")
    assert gone.code == 1 and "mleredux login http" in gone.err and made["token"] not in gone.err


def test_quotas_are_set_and_kept(mleredux: Mleredux) -> None:
    mleredux("account", "project", "create", "lab")
    told = mleredux("account", "project", "set-quota", "lab", "--queued-runs", "0", "--json")
    assert told.json["quota"]["queued_runs"] == 0
    refused = mleredux("run", "digits", "--agent", "dummy", "--sandbox", "process", "--project", "lab")
    assert refused.code == 1 and refused.err.startswith("Error: ")
    again = mleredux("account", "project", "set-quota", "lab", "--concurrent-runs", "3", "--json").json
    assert (again["quota"]["queued_runs"], again["quota"]["concurrent_runs"]) == (0, 3), "what is not named stays"
