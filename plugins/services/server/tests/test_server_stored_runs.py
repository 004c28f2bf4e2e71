"""Ended runs whose directories are in the object store only."""

from __future__ import annotations

import random
import shutil
import zipfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from mleredux._core.plugins import Catalogue
from mleredux._core.store import Run
from mleredux.models import Cause
from mleredux_client import Client
from mleredux_executor_nodes.objects import open_store
from mleredux_executor_nodes.replica import Replica
from mleredux_server.app import make_service
from mleredux_server.database.tables import Job, now
from mleredux_server.operations.retention import Rule, remove
from mleredux_server.scheduler.startup import recover
from mleredux_support.s3 import BUCKET, S3Server
from mleredux_support.server_local import LocalServer

BIG = random.Random(0).randbytes(20 << 20)
PIECE = 8 << 20


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with pytest.MonkeyPatch.context() as patch:
        made = S3Server()
        for name, value in made.environment.items():
            patch.setenv(name, value)
        yield made
        made.stop()


@pytest.fixture(scope="module")
def server(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    home = tmp_path_factory.mktemp("stored")
    with LocalServer(home / "runs", executor="slurm", store=s3.url("lab")).running() as started:
        yield started


@pytest.fixture(scope="module")
def run(server: LocalServer, s3: S3Server) -> Run:
    """A run with a file of 20 MB, published as by a node; its directory here is deleted."""
    made = server.make_run()
    (made.output_dir / "model.bin").write_bytes(BIG)
    (made.logs_dir / "steps.log").write_text("".join(f"step {number}\n" for number in range(1000)))
    server.execute(made)
    assert made.state == "done", made.message
    publish(server, s3, made)
    shutil.rmtree(made.path)
    return made


@pytest.fixture
def http(server: LocalServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=60) as client:
        yield client


def publish(server: LocalServer, s3: S3Server, run: Run) -> None:
    Replica(open_store(server.service.catalogue, s3.url("lab")), run.id, run.path).offer({})


def keys(s3: S3Server, run: Run) -> list[str]:
    found = client_of(s3).list_objects_v2(Bucket=BUCKET, Prefix=f"lab/runs/{run.id}/").get("Contents", [])
    return [one["Key"] for one in found]


def client_of(s3: S3Server):
    import boto3

    return boto3.client("s3", endpoint_url=s3.environment["AWS_ENDPOINT_URL"])


def test_a_run_is_served_though_its_directory_is_deleted(
    server: LocalServer, run: Run, http: httpx.Client, s3: S3Server, tmp_path: Path
) -> None:
    where = f"/v1/runs/{run.id}"
    assert [one["id"] for one in http.get("/v1/runs").json()["items"]] == [run.id]
    score = http.get(where).json()["report"]["score"]
    assert score is not None and http.get(f"{where}/report").json()["score"] == score
    listed = {one["path"]: one for one in http.get(f"{where}/artifacts").json()["items"]}
    assert listed["output/model.bin"]["size"] == len(BIG)
    assert http.get(f"{where}/events").json()["items"][-1]["data"]["state"] == "done"
    tail = http.get(f"{where}/logs/steps.log", headers={"Range": "bytes=-9"})
    assert tail.status_code == 206 and tail.text == "step 999\n"
    followed = http.get(f"{where}/logs/steps.log", headers={"Accept": "text/event-stream"}).text
    assert "step 999" in followed and "event: end" in followed

    before = len(s3.requests)
    at = 2 * PIECE - 5
    part = http.get(f"{where}/artifacts/output/model.bin", headers={"Range": f"bytes={PIECE + 3}-{at}"})
    assert part.status_code == 206 and part.content == BIG[PIECE + 3 : at + 1]
    read = [path for method, path in s3.requests[before:] if method == "GET" and not path.endswith("/head")]
    assert len(read) == 1, "only the piece that the range is in"
    assert not list(server.service.settings.state_dir.rglob("model.bin"))

    client = Client(server.url, server.token)
    client.get_run(run.id).artifacts.download(tmp_path / "copy")
    assert (tmp_path / "copy" / "output" / "model.bin").read_bytes() == BIG
    (tmp_path / "all.zip").write_bytes(http.get(f"{where}/archive").content)
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        assert archive.read("output/model.bin") == BIG

    http.post("/ui/sign-in", data={"token": server.token}, headers={"Origin": server.url})
    page = http.get(f"/ui/runs/{run.id}")
    assert page.status_code == 200 and f"{score:.3g}" in page.text
    assert "step 999" in http.get(f"/ui/runs/{run.id}/files?path=logs/steps.log").text
    files = http.get(f"/ui/runs/{run.id}/files").text
    assert "model.bin" in files and files.count("not on this disk") == 1
    recover(server.service)
    assert http.get(where).json()["status"] == "done", "also after a restart"


def test_a_file_that_is_missing_in_a_directory_is_served(server: LocalServer, s3: S3Server, http: httpx.Client) -> None:
    made = server.execute(server.make_run())
    publish(server, s3, made)
    wanted = (made.output_dir / "submission.csv").read_bytes()
    shutil.rmtree(made.output_dir)
    assert http.get(f"/v1/runs/{made.id}/artifacts/output/submission.csv").content == wanted
    assert http.get(f"/v1/runs/{made.id}/artifacts/output/none").status_code == 404


def test_nothing_of_a_damaged_or_missing_object_is_sent(
    server: LocalServer, run: Run, http: httpx.Client, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = server.service.stored_runs
    assert store is not None
    store.forget(run.id)
    store._pieces.clear()
    client, where = client_of(s3), f"/v1/runs/{run.id}/artifacts/output/model.bin"
    pieces = {client.head_object(Bucket=BUCKET, Key=key)["ContentLength"]: key for key in keys(s3, run)}
    last = pieces[len(BIG) - 2 * PIECE]
    right = client.get_object(Bucket=BUCKET, Key=last)["Body"].read()
    for damage, words in ((b"x" + right[1:], "is damaged"), (None, "are missing")):
        if damage is None:
            client.delete_object(Bucket=BUCKET, Key=last)
        else:
            client.put_object(Bucket=BUCKET, Key=last, Body=damage)
        answer = http.get(where)
        assert answer.status_code == 503 and words in answer.json()["detail"], answer.text
        assert http.get(where, headers={"Range": "bytes=0-9"}).content == BIG[:10], "other pieces are right"
    client.put_object(Bucket=BUCKET, Key=last, Body=right)
    assert http.get(where).content == BIG

    monkeypatch.setattr(store, "_objects", open_store(server.service.catalogue, "s3://no-such-bucket/lab"))
    store.forget(run.id)
    answer = http.get(where)
    assert answer.status_code == 503, answer.text
    assert answer.json()["detail"] == "The bucket of s3://no-such-bucket/lab does not exist."
    store.forget(run.id)


def test_objects_are_deleted_with_a_run_whose_directory_is_gone(
    server: LocalServer, run: Run, http: httpx.Client, s3: S3Server
) -> None:
    gone = server.make_run()
    gone.give_up(Cause.CANCELLED, "A user cancelled the run.")
    publish(server, s3, gone)
    server.settle(gone.id, "cancelled")
    with server.service.database.writing() as session:
        session.get_one(Job, gone.id).ended_at = now() - timedelta(days=9)
    shutil.rmtree(gone.path)
    assert keys(s3, gone)
    ended = remove(make_service(server.service.settings, Catalogue()), [Rule(None, 8 * 86400.0)])
    assert [one.id for one in ended] == [gone.id]
    assert not keys(s3, gone) and keys(s3, run)
    assert http.get(f"/v1/runs/{gone.id}").status_code == 404


def test_folders_of_runs_that_were_read_have_a_limit(
    server: LocalServer, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = server.service.stored_runs
    assert store is not None
    first = store.folder(run.id)
    assert (first / "run.json").is_file() and not (first / "output" / "model.bin").exists()
    monkeypatch.setattr(store, "_disk", 0)
    store.folder(run.id)
    assert first.exists(), "it may be read just now"
    monkeypatch.setattr("mleredux_executor_nodes.stored_runs._BUSY_SECONDS", -1)
    store.open(run.id, "run.json")
    assert not first.exists()
