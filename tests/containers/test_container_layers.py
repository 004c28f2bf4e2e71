"""Images of repositories: built in layers, with a cache of downloads into which no build puts anything for another."""

from __future__ import annotations

import contextlib
import hashlib
import http.server
import io
import tarfile
import threading
import time
import uuid
import zipfile
from collections import Counter
from pathlib import Path

import pytest
from mleredux._core.disuse import remove, unused_since
from mleredux._core.plugins import current
from mleredux._core.protocols import BuildRequest
from mleredux.errors import BuildFailed
from mleredux_agent_repo.agents import agent_of
from mleredux_sandbox_docker.building import DockerImages
from mleredux_sandbox_docker.engine import connect
from mleredux_sandbox_podman.images import PodmanImages

PLACE = "/var/tmp/mleredux-pip"
POISON = f"""\
import os, pathlib
place = pathlib.Path("{PLACE}")
place.mkdir(parents=True, exist_ok=True)
(place / "poison").write_text("poison")
print("cache variable:", os.environ.get("MLEREDUX_PIP_CACHE"), "files:", len(list(place.rglob("*"))))
"""
PROJECT = """\
[project]
name = "hostile"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


def wheel(name: str, version: str) -> bytes:
    made, info = io.BytesIO(), f"{name}-{version}.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr(f"{name}.py", "VALUE = 42\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return made.getvalue()


def sdist() -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in {"pyproject.toml": PROJECT, "backend.py": POISON}.items():
            member = tarfile.TarInfo(f"hostile-1.0/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


@pytest.fixture
def index(monkeypatch, tmp_path):
    """A package index that says how long its files may be kept, as PyPI does; counts what is fetched."""
    files = {"honest-1.0-py3-none-any.whl": wheel("honest", "1.0"), "more-1.0-py3-none-any.whl": wheel("more", "1.0")}
    files["hostile-1.0.tar.gz"] = sdist()
    pages: dict[str, bytes] = {}
    for name, content in files.items():
        pages[f"/files/{name}"] = content
        link = f'<a href="/files/{name}#sha256={hashlib.sha256(content).hexdigest()}">{name}</a>'
        pages[f"/simple/{name.partition('-')[0]}/"] = link.encode()
    fetched: Counter[str] = Counter()

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = pages.get(self.path, b"")
            fetched[self.path] += 1
            kept = "max-age=365000000, immutable, public" if "/files/" in self.path else "max-age=600, public"
            self.send_response(200 if content else 404)
            self.send_header("Cache-Control", kept)
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Keep the test's output clean."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_address[1]}/simple")
        monkeypatch.setenv("PIP_TRUSTED_HOST", "127.0.0.1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        yield fetched
        server.shutdown()


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def build(sandbox, tmp_path):
    """`build({file: text})` builds an agent's folder, with a name and requirements that no other test has; its log."""

    own = uuid.uuid4().hex  # an engine may have images of earlier sessions

    def make(files: dict[str, str]) -> str:
        folder = tmp_path / f"agent-{uuid.uuid4().hex[:8]}"
        folder.mkdir()
        for name, text in {"solve.py": f"# {folder.name}\n", **files}.items():
            (folder / name).write_text(f"{text}# {own}\n" if name == "requirements.txt" else text)
        agent = agent_of(f"repo:{folder}")
        log = tmp_path / f"{folder.name}.log"
        with contextlib.suppress(BuildFailed):
            sandbox.build(BuildRequest(agent=agent, log=log, time_limit=600, hosts=()))
        return log.read_text()

    return make


def test_a_changed_line_runs_no_step_again_until_the_images_are_removed(build, sandbox, index, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "RUN" in build({"requirements.txt": "honest\n"})
    seen = index.total()
    changed = build({"requirements.txt": "honest\n", "solve.py": f"print('{uuid.uuid4()}')\n"})
    assert seen and index.total() == seen
    assert "COPY . /opt/agent" in changed and "RUN" not in changed
    engine = DockerImages(connect()) if sandbox.id == "docker" else PodmanImages()
    made = unused_since(time.time() + 1)
    names = [one.name.partition(":")[0] for one in made]
    assert names[0] == "mleredux/solve-py" and sorted(names) == ["mleredux/layers", *["mleredux/solve-py"] * 2]
    assert all(engine.find_image(one.name) for one in made)
    for one in made:
        remove(current(), one)
    assert not any(engine.find_image(one.name) for one in made) and not unused_since(time.time() + 1)


@pytest.mark.engines("docker")
def test_what_one_build_fetched_another_has(build, index):
    build({"requirements.txt": "honest\n"})
    assert index["/files/honest-1.0-py3-none-any.whl"] == 1
    build({"requirements.txt": "honest\nmore\n"})
    assert index["/files/honest-1.0-py3-none-any.whl"] == 1, "it comes from the cache"
    assert index["/files/more-1.0-py3-none-any.whl"] == 1


@pytest.mark.engines("docker")
@pytest.mark.attack
def test_no_code_of_an_agent_or_a_package_gets_the_cache(build, index, tmp_path):
    build({"requirements.txt": "honest\n"})
    cache = tmp_path / "cache" / "mleredux" / "pip"
    before = contents(cache)
    assert before
    manifest = "[agent]\nid = 'own'\ncommand = ['true']\n[build]\n"
    own = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY . /own\nRUN python3 /own/backend.py; exit 1\n"
    attacks = [
        {"requirements.txt": "hostile\n"},  # a package that is built
        {"mleredux-agent.toml": f"{manifest}python = ['.']\n", "pyproject.toml": PROJECT, "backend.py": POISON},
        {"mleredux-agent.toml": f"{manifest}dockerfile = 'Dockerfile'\n", "Dockerfile": own, "backend.py": POISON},
    ]
    for files in attacks:
        assert "cache variable: None files: 1" in build(files), "the attack was carried out, on a folder of its own"
        after = contents(cache)
        assert before.items() <= after.items(), "what others fetched is as it was"
        assert not any(b"poison" in name.encode() + content for name, content in after.items())
