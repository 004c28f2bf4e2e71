"""Runs in a real MLflow store in one file, read back with MLflow's own client."""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from mleredux._core.cli.root import root
from mleredux._core.store import Run


@pytest.fixture
def uri(empty_store: Path, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the URI of a dedicated store; artifacts go below a dedicated working directory."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(empty_store, tmp_path / "mlflow.db")
    return f"sqlite:///{tmp_path / 'mlflow.db'}"


@pytest.fixture
def client(uri: str) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(uri, uri)


def track(run: Run, *arguments: str) -> Result:
    return CliRunner().invoke(root, ["runs", "--runs-dir", str(run.path.parent), "track", *arguments])


def only_run(client: Any, experiment: str = "tides") -> Any:
    (found,) = client.search_runs([client.get_experiment_by_name(experiment).experiment_id])
    return found


def history(client: Any, run_id: str) -> dict[str, list[tuple[float, int, int]]]:
    keys = client.get_run(run_id).data.metrics
    return {
        key: [(metric.value, metric.timestamp, metric.step) for metric in client.get_metric_history(run_id, key)]
        for key in keys
    }


def files(client: Any, run_id: str, folder: str | None = None) -> set[str]:
    found: set[str] = set()
    for item in client.list_artifacts(run_id, folder):
        found |= files(client, run_id, item.path) if item.is_dir else {item.path}
    return found


def test_a_finished_run_is_sent_completely(make_run: Any, uri: str, client: Any, at: Any) -> None:
    run = make_run()
    said = track(run, run.id, "--to", uri)
    assert said.exit_code == 0 and said.output == f"{run.id}  sent\n"
    there = only_run(client)
    assert (there.info.run_name, there.info.status) == (run.id, "FINISHED")
    assert (there.info.start_time, there.info.end_time) == (at(0.1), at(23))
    assert there.data.params["limits.time_limit"] == "120.0" and there.data.tags["mleredux.medal"] == "silver"
    assert there.data.metrics["score"] == 0.97222 and there.data.metrics["llm/calls"] == 4
    assert history(client, there.info.run_id)["score_over_time"] == [(0.9, at(8), 1), (0.97222, at(20), 3)]
    listed = {artifact.path for artifact in run.manifest.artifacts}
    assert files(client, there.info.run_id) == listed and "output/submission.csv" in listed
    fetched = client.download_artifacts(there.info.run_id, "output/submission.csv")
    assert Path(fetched).read_text() == "id,label\n1,7\n"


def test_sending_again_creates_no_duplicates(make_run: Any, uri: str, client: Any) -> None:
    run = make_run()
    track(run, run.id, "--to", uri)
    there = only_run(client)
    before = history(client, there.info.run_id)
    assert track(run, run.id, "--to", uri).output == f"{run.id}  up to date\n"
    (run.path / "mlflow.json").unlink()  # a copy of the run, on another machine
    assert track(run, run.id, "--to", uri).output == f"{run.id}  up to date\n"
    client.set_tag(there.info.run_id, "mleredux.synced", "")  # it was interrupted just before it completed
    assert track(run, run.id, "--to", uri).output == f"{run.id}  sent\n"
    assert only_run(client).info.run_id == there.info.run_id
    assert history(client, there.info.run_id) == before


def test_a_partial_upload_is_completed(make_run: Any, uri: str, client: Any) -> None:
    """The first of two requests with metrics arrived, and the run's record of it was lost."""
    from mleredux_tracker_mlflow import upload as sending
    from mlflow.entities import Metric

    run = make_run()
    experiment = client.create_experiment("tides")
    half = client.create_run(experiment, tags={"mleredux.run_id": run.id}, run_name=run.id).info.run_id
    points = sending.facts_of(run).points
    client.log_batch(half, metrics=[Metric(*point) for point in points[: len(points) // 2]])
    track(run, run.id, "--to", uri)
    there = only_run(client)
    assert there.info.run_id == half and there.info.status == "FINISHED"
    found = [(key, *point) for key, all_points in history(client, half).items() for point in all_points]
    assert sorted(found) == sorted(tuple(point) for point in points)


def test_a_resumed_run_continues_the_same_mlflow_run(make_run: Any, uri: str, client: Any, go_on: Any, at: Any) -> None:
    from mleredux_tracker_mlflow.settings import Settings
    from mleredux_tracker_mlflow.upload import Sender

    run = make_run("failed", "environment_broke")
    track(run, run.id, "--to", uri)
    first = only_run(client)
    assert (first.info.status, first.data.tags["mleredux.cause"]) == ("FAILED", "environment_broke")
    go_on(run, [(60, "state", {"state": "grading"})])
    Sender(Settings(uri)).send(run)
    assert only_run(client).info.status == "RUNNING"
    stage = {"stage": "grading", "status": "finished", "seconds": 2.5}
    go_on(run, [(63, "stage", stage), (64, "state", {"state": "producing"}), (65, "state", {"state": "done"})])
    assert track(run, run.id, "--to", uri).output == f"{run.id}  sent\n"
    last = only_run(client)
    assert (last.info.run_id, last.info.status, last.info.end_time) == (first.info.run_id, "FINISHED", at(65))
    assert last.data.tags["mleredux.cause"] == "" and last.data.tags["mleredux.status"] == "done"
    assert history(client, last.info.run_id)["stage_seconds/grading"] == [(2.5, at(63), 0)]


def test_many_points_go_in_several_requests(make_run: Any, uri: str, client: Any) -> None:
    run = make_run()
    rows = "".join(f"{second},{100 + second},{second / 2},2,,\n" for second in range(20, 1020))
    with (run.logs_dir / "resources.csv").open("a") as file:
        file.write(rows)
    track(run, run.id, "--to", uri)
    memory = history(client, only_run(client).info.run_id)["resources/memory_mb"]
    assert len(memory) == 1002 and memory[-1][0] == 1119 and memory[-1][2] == 1019


def test_all_finished_runs_and_the_chosen_experiment(make_run: Any, uri: str, client: Any, go_on: Any) -> None:
    first, second, going = make_run(), make_run(seed=4), make_run(seed=5)
    lines = (going.path / "events.jsonl").read_text().splitlines(keepends=True)
    (going.path / "events.jsonl").write_text("".join(lines[:-1]))
    said = track(first, "--all", "--to", uri, "--experiment", "old runs", "--json")
    rows = json.loads(said.output)
    assert said.exit_code == 0 and [(row["id"], row["result"]) for row in rows] == [
        (run_id, "sent") for run_id in sorted([first.id, second.id])
    ]
    found = client.search_runs([client.get_experiment_by_name("old runs").experiment_id])
    assert {run.info.run_id for run in found} == {row["mlflow_run_id"] for row in rows}
    named = track(first, going.id, "--to", uri)
    assert named.exit_code == 1 and named.output == f"{going.id}  left out: The run is not finished.\n"


def test_a_run_deleted_in_mlflow_is_created_again_with_its_files(make_run: Any, uri: str, client: Any) -> None:
    run = make_run()
    track(run, run.id, "--to", uri)
    gone = only_run(client).info.run_id
    client.delete_run(gone)
    assert track(run, run.id, "--to", uri).output == f"{run.id}  sent\n"
    again = only_run(client).info.run_id
    assert again != gone and "report.html" in files(client, again)


def test_only_one_process_at_a_time_opens_a_database(
    make_run: Any, uri: str, empty_store: Path, tmp_path: Path
) -> None:
    """MLflow creates its tables on first use: concurrently started workers collided, and runs were missing."""
    from mleredux._core.store.files import FileLock
    from mleredux_tracker_mlflow.connection import opening_lock
    from mleredux_tracker_mlflow.settings import Settings
    from mleredux_tracker_mlflow.upload import Sender
    from mlflow.tracking import MlflowClient

    run, place = make_run(), tmp_path / "not-there-yet.db"
    uri = f"sqlite:///{place}"
    opening_lock(uri).parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(1) as pool:
        with FileLock(opening_lock(uri)):
            sending = pool.submit(Sender(Settings(uri)).send, run)
            assert wait([sending], timeout=1).not_done and not place.exists()
            shutil.copy(empty_store, place)
        sending.result(timeout=60)
    assert only_run(MlflowClient(uri, uri)).info.status == "FINISHED"


def test_errors_are_reported_in_a_sentence(make_run: Any, uri: str, client: Any, monkeypatch: Any) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    run = make_run()
    assert "Specify runs, or pass --all." in track(run).output
    with pytest.raises(Exception, match=r"No MLflow tracking URI is set\. Pass --to URI"):
        raise track(run, run.id).exception or AssertionError("no error")
    said = track(run, run.id, "--to", "http://me:hunter2@127.0.0.1:9")
    assert said.exit_code == 1 and "does not respond" in said.output and "hunter2" not in said.output
    client.delete_experiment(client.create_experiment("tides"))
    said = track(run, run.id, "--to", uri)
    assert "Experiment 'tides' was deleted in MLflow" in said.output and "Traceback" not in said.output
    assert not list(run.path.glob(".writing-*"))


def test_runs_are_exported_as_a_database_that_mlflow_reads(make_run: Any, own_cache: Path, tmp_path: Path) -> None:
    from mlflow.tracking import MlflowClient

    runs = [make_run(seed=seed) for seed in (0, 1)]
    target = tmp_path / "exported.db"
    words = ["export", *(run.id for run in runs), "--to", "mlflow", "-o", str(target)]
    said = CliRunner().invoke(root, [*words, "--runs-dir", str(runs[0].path.parent)])
    assert said.exit_code == 0, said.output
    client = MlflowClient(f"sqlite:///{target}", f"sqlite:///{target}")
    experiment = client.get_experiment_by_name("tides")
    assert experiment is not None
    found = {one.data.tags["mleredux.run_id"]: one for one in client.search_runs([experiment.experiment_id])}
    assert set(found) == {run.id for run in runs} and {one.info.status for one in found.values()} == {"FINISHED"}
    for run in runs:
        assert run.report is not None and found[run.id].data.metrics["score"] == run.report.score
        assert not (run.path / "mlflow.json").exists(), "an export is no place where runs are tracked"
