"""Agents that users upload from their own machine, and secrets that they lend to them."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from mleredux.plugin.command import Catalogue
from mleredux.plugin.host import provide_secrets
from mleredux_client import Client, Forbidden, Invalid, MlereduxApiError, NotFound, TooLarge, UsageError
from mleredux_client.calls import get
from mleredux_client.folders import LocalAgent, files_of, packed
from mleredux_gateway.config import load_config, run_variables
from mleredux_server.database.tables import Source
from mleredux_server.files.packages import unpack
from mleredux_server.files.uploads import Upload
from mleredux_server.protocol.problems import Problem
from mleredux_server.runs.references import granted
from mleredux_server.runs.sources import check_source, delete_source, store_source
from mleredux_server.runs.uploaded import read_reference, sources_dir
from mleredux_server.settings import Settings
from mleredux_support.server import ServerProcess
from mleredux_support.server_local import LocalServer
from mleredux_testing.pytest_plugin import BASE_IMAGE

TOKEN = "hf_planted-0123456789-of-ann"
MANIFEST = """\
[agent]
id = "own"
command = ["sh", "-c", "cp /dev/null log; python3 \\"$MLEREDUX_AGENT_DIR/solve.py\\""]
[environment]
secrets = ["HF_TOKEN"]
[smoke]
task = "wine"
time_limit = "1m"
"""
SOLVE = """\
import os, pathlib, shutil
token = os.environ.get("HF_TOKEN", "none")
print("token", token, len(token), sorted(name for name in os.environ if "TOKEN" in name or "KEY" in name))
print("files", sorted(os.listdir(os.environ["MLEREDUX_AGENT_DIR"])))
output = pathlib.Path(os.environ.get("MLEREDUX_OUTPUT_DIR", "."))
(output / "kept.txt").write_text(token)
shutil.copy(pathlib.Path(os.environ["MLEREDUX_DATA_DIR"]) / "sample_submission.csv", output / "submission.csv")
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An agent with files that stay on its user's machine."""
    made = tmp_path_factory.mktemp("own") / "my-agent"
    (made / "data" / "keep").mkdir(parents=True)
    (made / "mleredux-agent.toml").write_text(MANIFEST)
    (made / "solve.py").write_text(SOLVE)
    (made / ".gitignore").write_text("*.secret\n/data/*\n!/data/keep\n")
    (made / ".dockerignore").write_text("notes\n# comment\n!notes/shared.md\n")
    (made / "data" / "big.csv").write_text("x" * 1000)
    (made / "data" / "keep" / "small.csv").write_text("x")
    (made / "data" / "keep" / ".gitignore").write_text("*.tmp\n!kept.tmp\n")
    for name in ("a.tmp", "kept.tmp"):
        (made / "data" / "keep" / name).write_text("x")
    (made / "notes").mkdir()
    (made / "notes" / "todo.md").write_text("x")
    (made / "notes" / "shared.md").write_text("x")
    (made / "api.secret").write_text("x")
    for name in (".git", "__pycache__", ".venv"):
        (made / name).mkdir()
        (made / name / "x").write_text("x")
    (made / "link").symlink_to("data/keep/small.csv")
    return made


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(
        Path(tmp_path_factory.mktemp("server")) / "runs", env={"MLEREDUX_BASE_IMAGE": BASE_IMAGE}
    ) as started:
        yield started


@pytest.fixture(scope="module")
def admin(server: ServerProcess) -> Iterator[Client]:
    with Client(server.url, server.token) as client:
        yield client


def member(server: ServerProcess, admin: Client, name: str) -> Client:
    """A user whose project may use the process sandbox."""
    admin.users.create(name)
    project = next(one for one in admin.projects.list() if one.name == name)
    admin.projects.update(project, quota={"sandboxes": None})
    token = admin.tokens.create("test", user=name).token.get_secret_value()
    return Client(server.url, token)


@pytest.fixture(scope="module")
def ann(server: ServerProcess, admin: Client) -> Iterator[Client]:
    with member(server, admin, "ann") as client:
        yield client


@pytest.fixture(scope="module")
def bob(server: ServerProcess, admin: Client) -> Iterator[Client]:
    with member(server, admin, "bob") as client:
        yield client


def test_what_is_ignored_stays_on_the_users_machine(folder: Path) -> None:
    sent = {".dockerignore", ".gitignore", "data/keep/.gitignore", "data/keep/kept.tmp", "data/keep/small.csv", "link"}
    assert set(files_of(LocalAgent(folder))) == sent | {"mleredux-agent.toml", "notes/shared.md", "solve.py"}
    script = folder.parent / "agent.py"
    script.write_text("x")
    (folder.parent / "other.txt").write_text("x")
    assert list(files_of(LocalAgent(script.parent, script.name))) == ["agent.py"]


@pytest.mark.docker
def test_a_script_is_run_on_the_server_with_what_it_imports(
    server: ServerProcess, ann: Client, tmp_path: Path, docker_base_image: str
) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "utils.py").write_text("NAME = 'shared'\n")
    place = tmp_path / "scripts"
    place.mkdir()
    (place / "utils.py").symlink_to("../shared/utils.py")
    (place / "data").symlink_to("/usr")
    (place / "other.py").write_text("x = 1\n")
    (place / "solve.py").write_text(f"import utils\nprint(utils.NAME)\n{SOLVE}")
    (place / "solve.sh").write_text(
        '#!/usr/bin/env bash\na=(1 2); echo ${#a[@]}; python "$MLEREDUX_AGENT_DIR/solve.py"\n'
    )
    command = [sys.executable, "-m", "mleredux", "--server", server.url, "run", "digits", "--detach", "--no-verify"]
    command += ["--sandbox", "docker", "-O", "args=--fast", "--agent"]
    env = {**os.environ, "MLEREDUX_TOKEN": ann._http._token}
    for name, log in (("./solve.py", "shared\n"), (str(place / "solve.sh"), "2\nshared\n")):
        done = subprocess.run([*command, name], cwd=place, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        run = ann.get_run(done.stdout.split()[0]).wait(180)
        assert run.status == "done" and run.agent.startswith("upload:solve@") and run.score is not None, run.message
        assert "".join(run.logs()).startswith(log)
        before = ann.upload(place / "solve.py")
        (place / "other.py").write_text(f"# {name}\n")
        assert ann.upload(place / "solve.py") == before


def test_client_and_server_hash_a_folder_alike(folder: Path, tmp_path: Path) -> None:
    with packed(LocalAgent(folder)) as package, packed(LocalAgent(folder)) as again:
        assert package.archive.read_bytes() == again.archive.read_bytes()
        assert unpack(package.archive, tmp_path / "there", 1 << 20).digest == package.digest
    assert (tmp_path / "there" / "link").read_text() == "x"


@pytest.fixture(scope="module")
def run_id(server: ServerProcess, ann: Client, folder: Path, docker_base_image: str) -> str:
    """A run of ann's own agent with her secret, by the command line."""
    ann.secrets.set("HF_TOKEN", TOKEN)
    command = [sys.executable, "-m", "mleredux", "--server", server.url, "run", "digits", "--agent", f"./{folder.name}"]
    command += ["--secret", "HF_TOKEN", "--no-verify", "--detach"]
    token = ann._http._token
    env = {**os.environ, "MLEREDUX_TOKEN": token}
    done = subprocess.run(command, cwd=folder.parent, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = ann.get_run(done.stdout.split()[0]).wait(180)
    assert found.status == "done", (found.message, "".join(found.logs()))
    return found.id


@pytest.mark.docker
def test_a_folder_is_run_on_the_server_with_a_secret_that_nothing_shows(
    server: ServerProcess, ann: Client, run_id: str
) -> None:
    run = ann.get_run(run_id)
    assert run.agent.startswith("upload:my-agent@") and run.score is not None
    log = "".join(run.logs())
    assert f"token {'*' * len(TOKEN)} {len(TOKEN)} ['HF_TOKEN']" in log and "'solve.py'" in log
    assert "api.secret" not in log and "todo.md" not in log
    kept = [path for path in server.runs_dir.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
    assert kept == [] and not any(TOKEN in line for line in server.log)
    [shown] = ann.secrets.list()
    assert shown.name == "HF_TOKEN" and TOKEN not in repr(shown)


@pytest.mark.docker
def test_the_same_folder_is_uploaded_once(ann: Client, run_id: str, folder: Path) -> None:
    reference = ann.get_run(run_id).agent
    assert ann.upload(folder) == reference == ann.upload(f"{folder}/")
    sources = ann._http.json(get("/v1/sources"))["items"]
    [source] = [source for source in sources if source["agent"].startswith("upload:my-agent@")]
    assert source["agent"] == reference and source["files"] == 9


def test_keys_of_models_and_of_repositories_reach_no_agent(tmp_path: Path) -> None:
    catalogue, agent = Catalogue(), Catalogue().agent("dummy")
    with provide_secrets({"HF_TOKEN": TOKEN, "OPENAI_API_KEY": "sk-of-ann", "GIT_TOKEN": "pat-of-ann"}):
        assert granted(catalogue, Settings(runs_dir=tmp_path), agent).variables == ("HF_TOKEN",)
        [upstream] = [one for one in load_config(run_variables()).upstreams if one.name == "openai"]
        assert upstream.key == "sk-of-ann"


@pytest.mark.docker
def test_others_see_neither_the_folder_nor_the_secret(
    server: ServerProcess, ann: Client, bob: Client, run_id: str
) -> None:
    reference = ann.get_run(run_id).agent
    with pytest.raises(NotFound, match="no uploaded agent"):
        bob.run("digits", reference)
    with pytest.raises(NotFound, match="no uploaded agent"):
        bob.build(reference)
    assert bob.secrets.list() == []
    with pytest.raises(NotFound, match="no secret HF_TOKEN"):
        bob.run("digits", "dummy", sandbox="process", secrets=["HF_TOKEN"])
    with pytest.raises(MlereduxApiError):
        bob.secrets.set("HF_TOKEN", "x" * 20, project="ann")


def test_without_the_grant_the_agent_does_not_get_it(ann: Client, folder: Path) -> None:
    with pytest.raises(Forbidden, match="the variable HF_TOKEN, which was not granted"):
        ann.run("digits", folder)


def test_a_projects_secret_is_of_its_members(server: ServerProcess, admin: Client, ann: Client, bob: Client) -> None:
    shared = admin.projects.create("shared", quota={"sandboxes": None})
    admin.projects.add_member(shared, ann.me().user, "owner")
    admin.projects.add_member(shared, bob.me().user)
    ann.secrets.set("LAB_TOKEN", "value-of-the-lab", project="shared")
    assert [one.name for one in bob.secrets.list(project="shared")] == ["LAB_TOKEN"]
    with pytest.raises(Forbidden, match="Only owners"):
        bob.secrets.delete("LAB_TOKEN", project="shared")
    made = bob.run("digits", "dummy", sandbox="process", secrets=["LAB_TOKEN"], project="shared", verify=False)
    assert made.wait(180).status == "done"
    ann.secrets.set("LAB_TOKEN", "another-value", project="shared")
    folder = server.runs_dir / made.id
    with (folder / "logs" / "agent.log").open("a") as log:  # as an attempt that was given up
        log.write("value-of-the-lab")
    assert "".join(made.logs()).endswith("*" * len("value-of-the-lab"))
    with pytest.raises(NotFound):
        bob.run("digits", "dummy", sandbox="process", secrets=["LAB_TOKEN"])


@pytest.mark.parametrize("name", ["MLEREDUX_SERVE_TOKEN", "LD_PRELOAD", "PYTHONPATH", "PATH", "lower", "A-B"])
def test_names_that_change_programs_are_no_secrets(ann: Client, name: str) -> None:
    with pytest.raises(Invalid):
        ann.secrets.set(name, "x" * 20)


@pytest.mark.docker
def test_a_run_that_needs_it_keeps_the_folder(ann: Client, run_id: str) -> None:
    reference = ann.get_run(run_id).agent
    digest = reference.partition("@")[2]
    queued = ann.run("digits", reference, secrets=["HF_TOKEN"], verify=False)
    with httpx.Client(base_url=ann.url, headers={"Authorization": f"Bearer {ann._http._token}"}) as http:
        if not queued.refresh().finished:
            assert http.delete(f"/v1/sources/{digest}").status_code == 409
        queued.cancel()
        queued.wait(120)
        assert http.delete(f"/v1/sources/{digest}").status_code == 204
    with pytest.raises(NotFound):
        ann.run("digits", reference, secrets=["HF_TOKEN"])


def test_a_path_that_is_none_is_a_sentence(ann: Client, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder or script"):
        ann.run("digits", "./not-here")
    with pytest.raises(UsageError, match="only ignored files"):
        ann.run("digits", tmp_path)
    with pytest.raises(NotFound):
        ann.run("digits", "upload:x@" + "0" * 64)


def archive(*members: tuple[str, dict[str, object]], tail: bytes = b"") -> bytes:
    """A compressed tar of members with these fields."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, fields in members:
            info = tarfile.TarInfo(name)
            content = bytes(fields.get("content", b"x"))  # type: ignore[call-overload]
            for field, value in fields.items():
                if field != "content":
                    setattr(info, field, value)
            if info.isreg():
                info.size = len(content)
            tar.addfile(info, io.BytesIO(content) if info.isreg() else None)
    return gzip.compress(buffer.getvalue(), mtime=0) + tail


LINK = {"type": tarfile.SYMTYPE}


@pytest.mark.parametrize(
    "sent",
    [
        b"not a tar",
        gzip.compress(b"not a tar" * 1000, mtime=0),
        archive(("../x", {})),
        archive(("/etc/x", {})),
        archive(("a/../../x", {})),
        archive(("a\nb", {})),
        archive((".git/config", {})),
        archive(("a/.GIT/hooks/x", {})),
        archive(("x", {"type": tarfile.CHRTYPE})),
        archive(("x", {"type": tarfile.FIFOTYPE})),
        archive(("x", {}), ("y", {"type": tarfile.LNKTYPE, "linkname": "/etc/passwd"})),
        archive(("x", {**LINK, "linkname": "/etc/passwd"})),
        archive(("x", {**LINK, "linkname": "../../../etc/passwd"})),
        archive(("a", {**LINK, "linkname": "b"}), ("b", {**LINK, "linkname": ".."}), ("f", {})),
        archive(("a", {**LINK, "linkname": "a"}), ("f", {})),
        archive(("a", {**LINK, "linkname": ".."}), ("a/x", {})),
        archive(("x", {}), ("x", {})),
        archive(("x", {}), ("x/y", {})),
        archive(("/".join("a" * 60), {})),
        archive(("a" * 256, {})),
        archive(("x", {}), ("y", {**LINK, "linkname": "a" * 256})),
        archive(),
        archive(("x", {}))[:-20],
    ],
    ids=lambda sent: "",  # bytes of an archive tell the time at which it was made
)  # fmt: skip
def test_hostile_archives_are_refused(server: ServerProcess, ann: Client, sent: bytes) -> None:
    headers = {"Authorization": f"Bearer {ann._http._token}"}
    answer = httpx.post(f"{server.url}/v1/sources", headers=headers, files={"file": sent})
    assert answer.status_code == 422 and "The archive" in answer.json()["detail"], answer.text
    assert not list((server.runs_dir / ".server" / "uploads").iterdir())


def test_an_upload_repairs_a_folder_and_is_kept_for_every_project(local: LocalServer, tmp_path: Path) -> None:
    def store(name: str) -> Source:
        (tmp_path / "sent").write_bytes(archive(("x", {})))
        return store_source(local.service, local.caller(name), Upload(tmp_path / "sent", fields={"name": "x"}))

    headers = {"Authorization": f"Bearer {local.user('ann')}"}
    found = store("ann")
    place = sources_dir(local.service.settings) / found.id
    url = f"{local.url}/v1/sources/{found.id}"
    assert place.is_dir() and httpx.get(url, headers=headers).status_code == 200
    shutil.rmtree(place)
    assert httpx.get(url, headers=headers).status_code == 404
    store("ann")
    assert (place / "x").is_file() and httpx.get(url, headers=headers).status_code == 200
    local.user("bob")
    store("bob")
    delete_source(local.service, local.caller("ann"), found)
    run = local.make_run(agent=f"upload:x@{found.id}", user="ann")  # of who sees both projects
    with pytest.raises(Problem, match="have not ended"):
        delete_source(local.service, local.caller("bob"), store("bob"))
    assert place.is_dir()
    local.settle(run.id, "done")
    delete_source(local.service, local.caller("bob"), store("bob"))
    assert not place.exists()


def test_an_upload_is_refused_where_the_nodes_share_no_files(local: LocalServer) -> None:
    settings = local.service.settings.model_copy(update={"executor": "slurm", "store": "s3://bucket/prefix"})
    with pytest.raises(Problem, match="share no files"):
        check_source(replace(local.service, settings=settings), local.caller("admin"), f"upload:x@{'0' * 64}")


def test_what_is_too_large_is_refused_though_it_is_small_when_sent(ann: Client, tmp_path: Path) -> None:
    (tmp_path / "zeros").write_bytes(bytes(101 << 20))
    with pytest.raises(TooLarge, match="more than 100 MB"):
        ann.run("digits", tmp_path)
    (tmp_path / "zeros").unlink()
    many = archive(*[(f"f{number}", {"content": b""}) for number in range(20_001)])
    headers = {"Authorization": f"Bearer {ann._http._token}"}
    assert httpx.post(f"{ann.url}/v1/sources", headers=headers, files={"file": many}, timeout=120).status_code == 413


@pytest.mark.parametrize("part", [None, "solve.py", "sub/a b", "it's.py", "x#1@y%20 $(z)é.py", "[x], {a}&;.py"])
def test_a_script_of_any_name_is_part_of_an_uploaded_agent(part: str | None) -> None:
    reference = f"upload:own@{'0' * 64}"
    assert read_reference(f"{reference}#{part}" if part else reference) == ("own", "0" * 64, part)
