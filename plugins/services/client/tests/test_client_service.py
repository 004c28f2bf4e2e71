"""The client and a real `mleredux serve`: what its documents promise, and a server that is killed in between."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import mleredux
import mleredux_client as sdk
import pytest
from mleredux_client import Client, Run
from mleredux_support.ports import free_port
from mleredux_support.server import ServerProcess

PACKAGE = Path(__file__).parents[1]
ROOT = PACKAGE.parents[2]
NOTEBOOK = ROOT / "examples/notebooks/service.ipynb"
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server on a port that it keeps when it is started again."""
    port = str(free_port())
    with ServerProcess(tmp_path_factory.mktemp("served"), "--workers", "2", "--port", port) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url, server.token) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(server: ServerProcess, client: Client, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """That of the README's ten lines, with a quicker agent."""
    [lines] = re.findall(r"```python\n(.*?)```", (PACKAGE / "README.md").read_text(), re.DOTALL)
    assert lines.count('"baseline"') == 1 and 8 <= len(lines.splitlines()) <= 10
    before, names = Path.cwd(), dict[str, Run]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MLEREDUX_SERVER", server.url)
        patch.setenv("MLEREDUX_TOKEN", server.token)
        patch.chdir(tmp_path_factory.mktemp("readme"))
        exec(compile(lines.replace('"baseline"', '"dummy"'), "README.md", "exec"), names)
        assert (Path.cwd() / "digits-run" / "report.json").is_file()
    assert Path.cwd() == before
    return client.get_run(names["run"].id)


def test_the_ten_lines_of_the_readme_work(client: Client, run: Run) -> None:
    assert (run.status, run.task, run.valid, run.medal) == ("done", "digits", True, None)
    assert run.verdict == "verified", "the server's default"
    assert run.id in [found.id for found in client.runs(verdict="verified")]


def test_a_run_over_http_says_what_its_directory_says(server: ServerProcess, run: Run, tmp_path: Path) -> None:
    [path] = server.runs_dir.rglob(run.id)
    local = mleredux.Run(path)
    assert run.report is not None and local.report is not None
    assert run.report.model_dump(mode="json") == local.report.model_dump(mode="json")
    assert [event.model_dump() for event in run.events()] == [event.model_dump() for event in local.events()]
    assert [event.seq for event in run.events(after=4, follow=False)] == [e.seq for e in local.events(after=4)]
    assert [score.model_dump() for score in run.scores] == [score.model_dump() for score in local.scores]
    assert "".join(run.logs()) == "".join(run.logs(follow=True)) == local.agent_log.read_text()
    assert run.rollout is not None and local.rollout is not None
    assert run.rollout.model_dump() == local.rollout.model_dump()
    assert local.manifest is not None
    assert {info.path for info in run.artifacts.list()} >= {info.path for info in local.manifest.artifacts}
    for file in run.artifacts.download(tmp_path):
        sent, stored = file.read_bytes(), (path / file.relative_to(tmp_path)).read_bytes()
        if file.parent == tmp_path:  # documents of the run, without the server's folders
            assert str(server.runs_dir).encode() not in sent and len(sent) == len(stored)
            stored = bytes(a if a == ord("*") else b for a, b in zip(sent, stored, strict=True))
        assert sent == stored


class Cut(httpx.SyncByteStream):
    """An answer that breaks after so many bytes."""

    def __init__(self, whole: httpx.SyncByteStream, size: int) -> None:
        self._whole, self._size = whole, size

    def __iter__(self) -> Iterator[bytes]:
        left = self._size
        for piece in self._whole:
            yield piece[:left]
            left -= len(piece)
            if left < 0:
                raise httpx.ReadError("cut")

    def close(self) -> None:
        self._whole.close()


class CutsStreams(httpx.HTTPTransport):
    """A connection on which long answers break, again and again."""

    cuts = 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        *_, kind, name = request.url.path.split("/")
        size = 1000 if name == "events" else 9_000 if kind == "artifacts" else None
        if size is not None:
            self.cuts += 1
            assert isinstance(answer.stream, httpx.SyncByteStream)
            answer.stream = Cut(answer.stream, size)
        return answer


def test_where_every_connection_breaks_everything_arrives_all_the_same(
    server: ServerProcess, run: Run, tmp_path: Path
) -> None:
    cutting = CutsStreams()
    whole = {file.path: file.read() for file in run.artifacts if file.path in ("report.html", "report.json")}
    with Client(server.url, server.token, transport=cutting) as unlucky:
        again = unlucky.get_run(run.id)
        assert [event.seq for event in again.events()] == [event.seq for event in run.events()]
        events = cutting.cuts
        for path, content in whole.items():
            [found] = again.artifacts.download(tmp_path, path)
            assert found.read_bytes() == content
    assert events > 2 and cutting.cuts - events > 2


@pytest.mark.parametrize("name", ["run.zip", "run.tar", "run.tar.gz"])
def test_an_archive_has_every_artifact(run: Run, tmp_path: Path, name: str) -> None:
    path = run.artifacts.archive(tmp_path / name)
    if name.endswith("zip"):
        with zipfile.ZipFile(path) as archive:
            names = [info.filename for info in archive.infolist() if not info.is_dir()]
    else:
        with tarfile.open(path) as tar:
            names = [info.name for info in tar if info.isfile()]
    assert {name.removeprefix(f"{run.id}/") for name in names} >= {info.path for info in run.artifacts.list()}


def test_lists_are_filtered(client: Client, run: Run) -> None:
    assert [found.id for found in client.runs(task="digits", agent="dummy", status=["done", "failed"])][-1] == run.id
    assert client.runs(task="digits", medal="gold", agent="dummy").first() is None
    assert {task.id for task in client.tasks(set="starter")} >= {"digits", "wine"}
    assert client.task("digits").thresholds == client.task("digits", obfuscated=False).thresholds
    assert {technique.id for technique in client.techniques()} >= {"cv", "leakage"}
    assert {"baseline", "dummy"} <= {agent.id for agent in client.agents()}
    assert client.agent("baseline").options and {box.id for box in client.sandboxes()} >= {"process"}
    assert "accuracy" in {grader.id for grader in client.graders()}


def test_refusals_say_what_is_wrong(client: Client, run: Run) -> None:
    with pytest.raises(sdk.MlereduxApiError) as told:
        client.run("digit")
    assert told.value.status in (404, 422) and "digit" in str(told.value) and told.value.request_id
    with pytest.raises(sdk.Invalid) as invalid:
        client.run("digits", limits={"cpus": -1})
    assert invalid.value.fields[0]["field"].endswith("cpus")
    with pytest.raises(sdk.NotFound):
        client.get_run("20260101-000000-nothing")
    with pytest.raises(sdk.NotFound):
        run.artifacts["none.txt"].read()
    with Client(client.url, "mlr_wrong") as nobody, pytest.raises(sdk.Unauthenticated):
        nobody.me()


def test_predictions_are_graded_without_an_agent(client: Client, run: Run, tmp_path: Path) -> None:
    good = run.artifacts["output/submission.csv"].save(tmp_path)
    bad = tmp_path / "bad.csv"
    bad.write_text("id,digit\n0,many\n")
    assert (client.validate(good, "digits").valid, client.validate(bad, "digits").valid) == (True, False)
    handed_in = client.grade(good, "digits", wait=False)
    refused = client.grade(bad, "digits")
    assert (refused.valid_submission, refused.score) == (False, None) and refused.message
    assert handed_in.wait(timeout=120).result().score == run.score
    assert handed_in.id in {found.id for found in client.submissions(task="digits")}
    handed_in.delete()
    with pytest.raises(sdk.NotFound):
        client.get_submission(handed_in.id)
    with pytest.raises(sdk.MlereduxApiError, match="nothing-like-it"):
        client.grade(good, "nothing-like-it")


def test_an_agents_environment_is_made_ahead(client: Client) -> None:
    build = client.build("dummy", sandbox="process", wait=True)
    assert (build.status, build.agent) == ("ready", "dummy") and build.image
    assert "nothing was built" in "".join(build.log())
    assert build.id in {found.id for found in client.builds()}
    with pytest.raises(sdk.MlereduxApiError, match="nowhere"):
        client.build("repo:/nowhere@main", wait=True)


class LosesAnswers(httpx.HTTPTransport):
    """A connection on which the first answer to every POST is lost."""

    def __init__(self) -> None:
        super().__init__()
        self.lost: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        if request.method == "POST" and request.url.path not in self.lost:
            self.lost.append(request.url.path)
            answer.close()
            raise httpx.ReadError("lost")
        return answer


def test_what_is_asked_for_twice_is_made_once(server: ServerProcess, client: Client) -> None:
    lossy = LosesAnswers()
    with Client(server.url, server.token, transport=lossy) as unlucky:
        made = unlucky.run("digits", agent="dummy", labels={"asked": "twice"})
        project = unlucky.projects.create("asked-twice")
    client.get_run(made.id).cancel()
    assert len(lossy.lost) == 2
    assert [found.id for found in client.runs(labels={"asked": "twice"})] == [made.id]
    assert [found.id for found in client.projects if found.name == "asked-twice"] == [project.id]


def test_who_may_what(server: ServerProcess, client: Client, run: Run) -> None:
    user = client.users.create("ada")
    made = client.tokens.create("laptop", ["read", "run"], user=user.id, expires_in=3600)
    with Client(server.url, made.token.get_secret_value()) as ada:
        assert (ada.me().user.name, ada.me().token.scopes) == ("ada", ["read", "run"])
        assert list(ada.runs()) == []
        with pytest.raises(sdk.NotFound):
            ada.get_run(run.id)
        with pytest.raises(sdk.Forbidden):
            ada.users.create("eve")
        project = client.projects.create("team", quota={"cpus": 1, "concurrent_runs": 1})
        assert project.quota.cpus == 1
        client.projects.add_member(project, user)
        assert "team" in {one.name for one in ada.projects}
        assert client.projects.update(project, quota={"cpus": 2}).quota.cpus == 2
        client.tokens.delete(made)
        with pytest.raises(sdk.Unauthenticated):
            ada.me()


def test_the_notebook_runs_from_its_first_to_its_last_cell(
    server: ServerProcess, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("MLEREDUX_SERVER", server.url)
    monkeypatch.setenv("MLEREDUX_TOKEN", server.token)
    monkeypatch.setenv("MLEREDUX_NOTEBOOK_TIME_LIMIT", "10")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "outputs are not committed"
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert sum("text/html" in output.get("data", {}) for output in shown) >= 8
    assert server.token not in nbformat.writes(notebook)


def test_a_server_that_is_killed_leaves_neither_gap_nor_repeat(server: ServerProcess, client: Client) -> None:
    run = client.run("wine", agent="dummy", sandbox="process", time_limit=60)
    seen = []
    for event in run.events():
        seen.append(event.seq)
        if event.data.get("state") == "running":
            server.kill()
            server.start()
    assert seen == list(range(len(seen))) and len(seen) > 8
    assert run.status == "done", run.message
