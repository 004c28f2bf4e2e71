"""Runs on nodes that have only an object store in common with the machine that gives them runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from mleredux._core.cli.root import root
from mleredux._core.plugins import Catalogue
from mleredux._core.stages.prepare import prepare
from mleredux._core.store import Run, RunStore
from mleredux._core.store.run import read_ticket, write_ticket
from mleredux.errors import ResumeRefused, StoreError, may_pass
from mleredux.models import Cause
from mleredux_executor_nodes.objects import open_store
from mleredux_executor_nodes.replica import Replica
from mleredux_executor_nodes.shelf import Shelf, stage
from mleredux_grading import regrade
from mleredux_store_s3.bucket import Bucket, _explained
from mleredux_support.lab import PLUGINS, Lab, until
from mleredux_support.plans import plan_of
from mleredux_support.s3 import ApartExecutor, S3Server


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    made = S3Server()
    yield made
    made.stop()


@pytest.fixture
def bucket(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return Bucket(server.url(tmp_path.name))


@pytest.fixture
def lab(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    (tmp_path / "here").mkdir()
    (tmp_path / "starts").mkdir()
    for name, value in Lab.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    nodes = [tmp_path / "a", tmp_path / "b"]
    made = Lab(tmp_path / "here", ApartExecutor(tmp_path / "here", nodes), bucket.url)
    made.starts_folder = tmp_path / "starts"
    yield made
    made.close()


def test_objects_are_created_and_replaced_only_as_expected(bucket: Bucket) -> None:
    assert bucket.read("a/b") is None
    first = bucket.swap("a/b", b"1", None)
    assert first is not None and bucket.swap("a/b", b"2", None) is None
    second = bucket.swap("a/b", b"3", first)
    assert second is not None and bucket.swap("a/b", b"4", first) is None
    assert bucket.read("a/b") == (b"3", second)
    bucket.delete(["a/b", "a/none"])
    assert bucket.read("a/b") is None and bucket.swap("a/b", b"5", second) is None
    for url in ("s3://", "s3://key:secret@bucket/x", "s3://bucket/x?a=b"):
        with pytest.raises(StoreError, match="s3://BUCKET/PREFIX"):
            Bucket(url)
    with pytest.raises(StoreError, match="No installed plugin"):
        open_store(Catalogue(), "gs://bucket")


@pytest.mark.parametrize(
    ("status", "code", "said", "passes"),
    [
        (503, "SlowDown", "s3://lab/x does not respond normally: Said so (SlowDown).", True),
        (500, "InternalError", "s3://lab/x does not respond normally: Said so (InternalError).", True),
        (507, "XMinioStorageFull", "s3://lab/x does not respond normally: Said so (XMinioStorageFull).", True),
        (429, "", "s3://lab/x does not respond normally: 429 Too Many Requests.", True),
        (403, "RequestTimeTooSkewed", "s3://lab/x does not respond normally: Said so (RequestTimeTooSkewed).", True),
        (403, "AccessDenied", "s3://lab/x refused a request: Said so (AccessDenied).", False),
        (403, "", "s3://lab/x refused a request: 403 Forbidden.", False),
        (400, "ExpiredToken", "s3://lab/x refused a request: Said so (ExpiredToken).", False),
        (501, "NotImplemented", "s3://lab/x refused a request: Said so (NotImplemented).", False),
        (301, "PermanentRedirect", "s3://lab/x refused a request: redirect without LOCATION", False),
        (404, "NoSuchBucket", "The bucket of s3://lab/x does not exist.", False),
        (0, "", "s3://lab/x does not respond: Connection refused.", True),
    ],
)
def test_a_refusal_states_its_reason_each_time_in_the_same_sentence(
    status: int, code: str, said: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            body = f"<Error><Code>{code}</Code><Message>Said so.</Message></Error>".encode() if code else b""
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_PUT = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as service:
        if status:
            threading.Thread(target=service.serve_forever, daemon=True).start()
        else:
            service.server_close()
        for name, value in S3Server.credentials(service.server_port).items():
            monkeypatch.setenv(name, value)
        bucket, errors = Bucket("s3://lab/x"), []
        requests: list[Callable[[], object]] = [
            lambda: bucket.read("a"),
            lambda: bucket.swap("a", b"", None),
            lambda: bucket.swap("a", b"", "a-tag"),
            lambda: bucket.write("a", b""),
            lambda: list(bucket.keys("a")),
        ]
        for request in requests[: 2 if passes else 5]:  # the client repeats those that may pass
            with pytest.raises(StoreError) as raised:
                request()
            errors.append(raised.value.message)
        if status:
            service.shutdown()
    assert len(set(errors)) == 1 and said in errors[0], errors
    assert may_pass(errors[0]) == passes


def test_a_store_that_is_silent_is_said_to_have_timed_out() -> None:
    text = "Generic S3 error: Error performing GET http://s/k in 60.1s  - HTTP error: error sending request"
    debug = "kind: Timeout,\n    source: reqwest::Error {\n        kind: Request,\n        source: TimedOut,"
    error = _explained(Exception(f"{text}\n\nDebug source:\n{debug}"), "s3://lab/x")
    assert error.message == "The object store s3://lab/x does not respond: timed out."


def test_an_attempt_that_lost_its_run_replaces_nothing_of_the_newer_one(bucket: Bucket, tmp_path: Path) -> None:
    run = _new(tmp_path)
    (run.logs_dir / "agent.log").write_bytes(b"one\n")
    (run.output_dir / "link").symlink_to("/etc/passwd")
    with (run.output_dir / "sparse").open("wb") as file:
        file.truncate(1 << 34)
    here = Replica(bucket, run.id, run.path)
    here.offer({"nonce": "n"})
    folders = [tmp_path / name / run.id for name in ("old", "new")]
    old, new = (Replica(bucket, run.id, folder) for folder in folders)
    assert not old.claim("another nonce") and old.claim("n")
    old.update()
    assert (folders[0] / "output" / "sparse").stat().st_blocks == 0
    assert (folders[0] / "output" / "link").readlink() == Path("/etc/passwd")
    with (folders[0] / "logs" / "agent.log").open("ab") as log:
        log.write(b"two\n")
    old.push()
    assert new.claim("n") and new.attempt == old.attempt + 1
    new.update()
    (folders[0] / "result").write_text("old")
    (folders[1] / "result").write_text("new")
    new.push()
    with pytest.raises(ResumeRefused):
        old.push()
    (folders[0] / "result").write_text("older")
    with pytest.raises(ResumeRefused):
        old.push(all_again=True)
    inode = (run.logs_dir / "agent.log").stat().st_ino
    run.ask_to_cancel()
    here.pull()
    assert (run.path / "result").read_text() == "new"
    assert (run.logs_dir / "agent.log").read_bytes() == b"one\ntwo\n"
    assert (run.logs_dir / "agent.log").stat().st_ino == inode, "who follows the log reads on"
    new.push()
    assert Run(folders[1]).cancel_asked
    here.fence()
    with pytest.raises(ResumeRefused):
        new.push()
    assert not Replica(bucket, run.id, folders[0]).claim("n")


def test_a_log_that_grows_is_stored_in_few_pieces_and_masked_ones_leave_nothing(
    bucket: Bucket, tmp_path: Path, server: S3Server
) -> None:
    run = _new(tmp_path)
    here = Replica(bucket, run.id, run.path)
    here.offer({"nonce": "n"})
    node = Replica(bucket, run.id, tmp_path / "node" / run.id)
    assert node.claim("n")
    node.update()
    log = tmp_path / "node" / run.id / "logs" / "agent.log"
    for number in range(80):
        with log.open("a") as file:
            file.write(f"line {number} with a-secret\n")
        node.push()
    here.pull()
    assert (run.logs_dir / "agent.log").read_bytes() == log.read_bytes()
    with log.open("r+b") as file:
        file.write(log.read_bytes().replace(b"a-secret", b"********"))
    node.push()
    here.pull()
    assert (run.logs_dir / "agent.log").read_bytes() == log.read_bytes()
    import boto3

    client = boto3.client("s3", endpoint_url=server.environment["AWS_ENDPOINT_URL"])
    stored = client.list_objects_v2(Bucket="mleredux", Prefix=f"{tmp_path.name}/runs/{run.id}/")["Contents"]
    assert len(stored) < 10, "what is superseded is deleted"
    bodies = [client.get_object(Bucket="mleredux", Key=one["Key"])["Body"].read() for one in stored]
    assert not any(b"a-secret" in body for body in bodies)
    for _ in range(2):
        here.delete()
    assert client.list_objects_v2(Bucket="mleredux", Prefix=f"{tmp_path.name}/runs/{run.id}/")["KeyCount"] == 0
    with pytest.raises(ResumeRefused):
        node.push()
    assert client.list_objects_v2(Bucket="mleredux", Prefix=f"{tmp_path.name}/runs/{run.id}/")["KeyCount"] == 0


def test_what_replaced_attempts_left_is_swept_and_deleting_a_run_deletes_its_objects(
    bucket: Bucket, tmp_path: Path
) -> None:
    run = _new(tmp_path)
    here = Replica(bucket, run.id, run.path)
    here.offer({"nonce": "n"})
    home = f"runs/{run.id}"
    old, new = (Replica(bucket, run.id, tmp_path / name / run.id) for name in ("old", "new"))
    for node in (old, new):
        assert node.claim("n")
        node.update()
    (old.folder / "output" / "big").write_text("of the replaced attempt")
    with pytest.raises(ResumeRefused):
        old.push()
    (new.folder / "output" / "small").write_text("of the last one")
    new.push()
    left = sorted(bucket.keys(home))
    bucket.write(f"{home}/{new.attempt + 1}/next", b"an attempt that begins now")
    here.sweep()
    kept = sorted(bucket.keys(home))
    assert f"{home}/{new.attempt + 1}/next" in kept
    assert {one.rpartition("/")[2] for one in left} - {one.rpartition("/")[2] for one in kept}
    here.pull()
    assert (run.output_dir / "small").read_text() == "of the last one"
    run.give_up(Cause.CANCELLED, "A user cancelled the run.")
    here.close()
    seen = Replica(bucket, run.id, tmp_path / "seen" / run.id)
    seen.load_tree()
    seen.update()
    assert Run(seen.folder).state == "cancelled", "also where only the object store is left"
    delete = ["runs", "--runs-dir", str(tmp_path / "runs"), "delete", "--yes", run.id]
    write_ticket(run.path, {"store": "s3://no-such-bucket"})
    refused = CliRunner().invoke(root, delete)
    assert refused.exit_code != 0 and "does not exist" in str(refused.output) + str(refused.exception)
    assert run.path.exists() and list(bucket.keys(home))
    write_ticket(run.path, {"store": bucket.url})
    assert CliRunner().invoke(root, delete, catch_exceptions=False).exit_code == 0
    assert not run.path.exists() and not list(bucket.keys(home))


def test_data_are_staged_once_verified_and_repaired(bucket: Bucket, tmp_path: Path, server: S3Server) -> None:
    from concurrent.futures import ThreadPoolExecutor

    from mleredux._core.data import DataStore

    catalogue = Catalogue(load=("mleredux_testing.toys",))
    task, data = catalogue.task("toy"), DataStore(tmp_path / "data")
    shelf = Shelf(bucket, data)
    assert shelf.publish(task) is None
    prepared = prepare(task, catalogue, data)
    name = shelf.publish(task)
    assert name is not None
    before = len(server.requests)
    assert shelf.publish(task) == name and len(server.requests) == before
    home = tmp_path / "node"
    with ThreadPoolExecutor(4) as pool:
        staged = list(pool.map(lambda _: stage(bucket, name, task.id, home), range(4)))
    assert sorted(fetched for _, fetched in staged)[:3] == [0, 0, 0]
    found = DataStore(staged[0][0]).find(task)
    assert found is not None and found.digest == prepared.digest
    times = {path.stat().st_mtime_ns for path in (found.public, *found.public.parent.rglob("*"))}
    assert times == {prepared.public.stat().st_mtime_ns}, "copies tell no more than the prepared files"
    before = len(server.requests)
    assert stage(bucket, name, task.id, home)[1] == 0 and len(server.requests) == before
    answers = next(path for path in found.private.iterdir() if path.is_file())
    assert answers.stat().st_mode & 0o222 == 0
    right = answers.read_bytes()
    status = answers.stat()
    answers.chmod(0o644)
    answers.write_bytes(b"x" * len(right))
    os.utime(answers, ns=(status.st_atime_ns, status.st_mtime_ns))
    (found.public / "added").write_text("x")
    assert stage(bucket, name, task.id, home)[1] == len(right)
    assert answers.read_bytes() == right and not (found.public / "added").exists()
    tree = bucket.read(f"data/trees/{name}")
    assert tree is not None
    bucket.write(f"data/trees/{name}", tree.content + b"x")
    with pytest.raises(StoreError, match="damaged"):
        stage(bucket, name, task.id, tmp_path / "other")


@pytest.mark.skipif(os.geteuid() != 0, reason="hiding folders from a process needs root")
def test_dead_nodes_and_a_restarted_store_lose_nothing_where_no_file_system_is_shared(
    lab: Lab, bucket: Bucket, tmp_path: Path, server: S3Server
) -> None:
    catalogue = lab.catalogue
    prepare(catalogue.task("toy"), catalogue, lab.pipeline().data)
    killed, kept, cancelled = runs = [lab.new(waits=True) for _ in range(3)]
    thread = lab.follow(runs)
    until(lambda: all(lab.starts(run) for run in runs))
    until(lambda: all(run.log.state.agent_started for run in runs))
    server.stop()
    agents = lab.agents([killed])
    os.kill(int(read_ticket(killed.path)["job"].partition("-")[0]), signal.SIGKILL)
    for process in agents:
        with contextlib.suppress(psutil.NoSuchProcess):  # what a shell waited for
            process.kill()
    cancelled.ask_to_cancel()
    server.start()
    until(lambda: lab.starts(killed) == 2)
    until(lambda: cancelled.state == "cancelled")
    lab.release()
    thread.join(90)
    ends = [(run.cause, run.message) for run in runs]
    assert [run.state for run in runs] == ["done", "done", "cancelled"], (ends, lab.said)
    count = lab.count([killed, kept])
    assert not count.lost and not count.twice
    for run in (killed, kept):
        assert [event.seq for event in run.events()] == list(range(len(run.events())))
        assert run.report is not None and run.report.score is not None
        assert not [event for event in run.events() if event.data.get("status") == "changed"], "on the other node, too"
        assert run.manifest is not None and (run.output_dir / "submission.csv").is_file()
        log = (run.logs_dir / "worker.log").read_text()
        assert "a-secret-of-tests" not in log and f"bytes of {run.spec.task}" in log
    regrade(kept, catalogue)
    seen = Replica(bucket, kept.id, tmp_path / "seen" / kept.id)
    seen.load_tree()
    seen.update()
    for name in ("report.json", "grades.json"):
        assert (seen.folder / name).read_bytes() == (kept.path / name).read_bytes()
    assert {one.rpartition("/")[2] for one in bucket.keys(f"runs/{kept.id}")} == {
        one.rpartition("/")[2] for one in {*seen.tree.names(), "head", str((seen._head or {})["tree"])}
    }
    nodes = [tmp_path / "a", tmp_path / "b"]
    until(lambda: not any((node / "runs" / kept.id).exists() for node in nodes))
    assert [len(list((node / "data").glob("*.json"))) for node in nodes] == [1, 1]


@pytest.mark.skipif(os.geteuid() != 0, reason="a disk that is full needs root")
@pytest.mark.parametrize("kilobytes", [4, 400])
def test_a_run_given_to_a_node_whose_disk_is_full_goes_on_with_another(
    lab: Lab, tmp_path: Path, kilobytes: int
) -> None:
    catalogue = lab.catalogue
    prepare(catalogue.task("toy"), catalogue, lab.pipeline().data)
    full = tmp_path / "a"
    full.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "none", str(full)], check=True)
    try:
        with contextlib.suppress(OSError):
            (full / "something").write_bytes(bytes(kilobytes * 1000 - 40_000 if kilobytes > 40 else 8192))
        run = lab.new()
        thread = lab.follow([run])
        thread.join(90)
    finally:
        subprocess.run(["umount", "--lazy", str(full)], check=True)
    assert (run.state, lab.starts(run)) == ("done", 1), (run.cause, run.message, lab.said)
    assert isinstance(lab.executor, ApartExecutor) and lab.executor.given == 2, "the first job ended for want of space"
    assert not (count := lab.count([run])).lost and not count.twice


def _new(home: Path) -> Run:
    catalogue = Catalogue(load=PLUGINS)
    return RunStore(home / "runs").create(plan_of(catalogue, "toy", "waiting", sandbox="process"), home / "data")
