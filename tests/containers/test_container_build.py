"""Images: made once by content, with the host's certificates and without its passwords."""

from __future__ import annotations

import base64
import http.server
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import textwrap
import threading
import time
import uuid
import zipfile

import pytest
from mleredux._core.protocols import BuildRequest
from mleredux.errors import BuildFailed, Cancelled, SandboxError
from mleredux.models import Agent, Build
from mleredux_sandbox_docker.sandbox import DockerSandbox


@pytest.fixture
def package(tmp_path, monkeypatch):
    """An importable package with tests and bytecode beside its source, whose content is new in each test."""
    name = f"agent_{uuid.uuid4().hex[:8]}"
    folder = tmp_path / "site" / name
    (folder / "tests").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "__init__.py").write_text(f"NAME = '{name}'\n")
    (folder / "__main__.py").write_text("from . import NAME\nprint('I am', NAME)\n")
    (folder / "tests" / "test_it.py").write_text("")
    (folder / "__pycache__" / "old.pyc").write_bytes(b"")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return folder


@pytest.fixture
def request_for(tmp_path):
    """`request_for(python=…, packages=…, …)` asks for an agent's image; `said` collects what the user is told."""

    def make(*, time_limit=600, base_image=None, agent_id="built", **build):
        agent = Agent(id=agent_id, title="Built", command=("true",), build=Build(**build))
        said = []
        request = BuildRequest(
            agent=agent, log=tmp_path / "build.log", progress=said.append, base_image=base_image, time_limit=time_limit
        )
        object.__setattr__(request, "said", said)
        return request

    return make


def context_with(tmp_path, dockerfile, **files):
    folder = tmp_path / "context"
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text(textwrap.dedent(dockerfile))
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def test_an_agents_packages_run_in_its_image_without_their_tests(sandbox, package, request_for, make_launch, run):
    built = sandbox.build(request_for(packages=(package.name,)))
    look = f"python -m {package.name}; find /opt/agent -name '*.py' | sort; touch /opt/agent/x 2>/dev/null || echo ro"
    launch = make_launch("sh", "-c", look)
    _, log = run(type(launch)(**{**vars(launch), "built": built}))
    place = f"/opt/agent/{package.name}"
    assert log.decode().splitlines() == [
        f"I am {package.name}",
        f"{place}/__init__.py",
        f"{place}/__main__.py",
        "ro",
    ]


def test_an_image_is_built_once_by_content(sandbox, package, request_for, tmp_path):
    first = sandbox.build(request_for(packages=(package.name,)))
    request = request_for(packages=(package.name,))
    begun = time.monotonic()
    second = sandbox.build(request)
    assert time.monotonic() - begun < 20
    assert (first.cached, second.cached) == (False, True)
    assert request.said == []
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", second.identity)
    assert second.identity == first.identity
    assert "compileall" in (tmp_path / "build.log").read_text()

    os.utime(package / "__init__.py")
    (package / "tests" / "test_more.py").write_text("")
    assert sandbox.build(request_for(packages=(package.name,))).cached, "neither times nor tests are content"
    (package / "__init__.py").write_text("NAME = 'another'\n")
    changed = sandbox.build(request_for(packages=(package.name,)))
    assert not changed.cached
    assert changed.identity != first.identity


BUILD_ELSEWHERE = """
import sys
from pathlib import Path
from mleredux.models import Agent, Build
from mleredux._core.protocols import BuildRequest
from mleredux._core.plugins import current
agent = Agent(id="built", title="Built", command=("true",), build=Build(context=Path(sys.argv[1])))
built = current().sandbox("docker").build(BuildRequest(agent=agent, log=Path(sys.argv[2])))
print(built.identity, built.cached)
"""


@pytest.mark.engines("docker")
def test_two_programs_that_want_the_same_image_build_it_once(base, tmp_path):
    dockerfile = f"""\
        ARG BASE_IMAGE
        FROM ${{BASE_IMAGE}}
        RUN sleep 2; echo {uuid.uuid4().hex} > /new
        """
    context = context_with(tmp_path, dockerfile)
    programs = [
        subprocess.Popen(
            [sys.executable, "-c", BUILD_ELSEWHERE, str(context), str(tmp_path / f"{number}.log")],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(2)
    ]
    answers = [program.communicate(timeout=120)[0].split() for program in programs]
    assert answers[0][0] == answers[1][0]
    assert sorted(cached for _, cached in answers) == ["False", "True"]


@pytest.fixture
def index(base):
    """A package index with a password, on the loopback of this machine."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny_package.py", "VALUE = 42\n")
        archive.writestr(
            "tiny_package-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-package\nVersion: 1.0\n"
        )
        archive.writestr(
            "tiny_package-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr("tiny_package-1.0.dist-info/RECORD", "")
    file = "tiny_package-1.0-py3-none-any.whl"
    pages = {"/simple/tiny-package/": f'<a href="/{file}">{file}</a>'.encode(), f"/{file}": wheel.getvalue()}
    password = base64.b64encode(b"user:pass-w0rd").decode()

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            allowed = self.headers.get("Authorization") == f"Basic {password}"
            content = pages.get(self.path, b"") if allowed else b""
            self.send_response(200 if content else 404 if allowed else 401)
            self.send_header("Content-Type", "text/html" if self.path.endswith("/") else "application/octet-stream")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            """Keep the test's output clean."""

    address = "127.0.0.1"
    with http.server.ThreadingHTTPServer((address, 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield address, f"http://user:pass-w0rd@{address}:{server.server_address[1]}/simple"
        server.shutdown()


@pytest.mark.attack
def test_requirements_are_installed_and_no_password_of_a_package_index_stays(
    sandbox, request_for, make_launch, run, monkeypatch, tmp_path, index, program
):
    address, url = index
    monkeypatch.setenv("PIP_INDEX_URL", url)
    monkeypatch.setenv("PIP_TRUSTED_HOST", address)
    agent_id = f"tiny-{uuid.uuid4().hex[:6]}"
    earlier = set(program("images", "--all", "--quiet", "--no-trunc").split())
    built = sandbox.build(request_for(python=("tiny-package==1.0", f"# {agent_id}"), agent_id=agent_id))
    launch = make_launch("python", "-c", "import tiny_package as t; print(t.VALUE, t.__file__)")
    _, log = run(type(launch)(**{**vars(launch), "built": built}))
    assert log.startswith(b"42 /opt/venv/"), log
    assert "pass-w0rd" not in (tmp_path / "build.log").read_text()
    images = {built.identity, *program("images", "--all", "--quiet", "--no-trunc").split()} - (
        earlier - {built.identity}
    )
    everything = [program("history", "--no-trunc", image) for image in images]
    assert any("tiny" in text or "pip" in text for text in everything), "histories are told"
    assert "pass-w0rd" not in repr([*everything, program("image", "inspect", built.identity)])


@pytest.mark.attack
def test_a_dockerfile_of_ones_own_gets_no_password_and_keeps_no_proxy(
    sandbox, request_for, tmp_path, monkeypatch, program
):
    monkeypatch.setenv("https_proxy", "http://someone:pr0xy-pass@127.0.0.1:9")
    monkeypatch.setenv("PIP_INDEX_URL", "http://user:pass-w0rd@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://index.invalid/simple")
    dockerfile = f"""\
        ARG BASE_IMAGE
        FROM ${{BASE_IMAGE}}
        ARG PIP_INDEX_URL
        ARG PIP_EXTRA_INDEX_URL
        RUN echo {uuid.uuid4().hex}; echo "index=$PIP_INDEX_URL extra=$PIP_EXTRA_INDEX_URL proxy=$https_proxy"
        """
    built = sandbox.build(request_for(context=context_with(tmp_path, dockerfile)))
    log = (tmp_path / "build.log").read_text()
    assert "index= extra=http://index.invalid/simple proxy=http://localhost:3128" in log
    kept = program("history", "--no-trunc", built.identity) + program("image", "inspect", built.identity)
    for secret in ("pass-w0rd", "pr0xy-pass"):
        assert secret not in kept
        assert secret not in log


def test_the_hosts_certificates_reach_the_build(sandbox, request_for, tmp_path, monkeypatch):
    bundle = tmp_path / "corporate.pem"
    bundle.write_text(f"# certificate {uuid.uuid4().hex}\n")
    monkeypatch.setenv("MLEREDUX_CA_BUNDLE", str(bundle))
    dockerfile = f"""\
        ARG BASE_IMAGE
        FROM ${{BASE_IMAGE}}
        RUN echo {uuid.uuid4().hex}; cat $PIP_CERT; tail -n 1 /etc/ssl/certs/ca-certificates.crt
        """
    context = context_with(tmp_path, dockerfile)
    first = sandbox.build(request_for(context=context))
    certificate = bundle.read_text().strip()
    assert (tmp_path / "build.log").read_text().count(f"\n{certificate}") >= 2
    bundle.write_text("# another certificate\n")
    assert sandbox.build(request_for(context=context)).identity == first.identity, "certificates are no content"


def test_a_dockerfile_with_a_base_of_its_own_needs_no_other_and_is_built_anew_with_another(
    sandbox, base, request_for, tmp_path, program
):
    own = f"mleredux/test-of-bases:{uuid.uuid4().hex[:8]}"
    program("tag", base, own)
    context = context_with(tmp_path, f"FROM {own}\nRUN echo {uuid.uuid4().hex} > /new\n")
    request = request_for(context=context, base_image="127.0.0.1:9/none:1")
    first = sandbox.build(request)
    assert sandbox.build(request).identity == first.identity
    program("tag", first.identity, own)
    assert sandbox.build(request).identity != first.identity
    program("rmi", own)


def test_a_context_is_taken_as_its_dockerignore_says(sandbox, request_for, tmp_path, make_launch, run):
    dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY . /program/\n"
    files = {".dockerignore": "secret*\n# a comment\n", "secret.txt": "x", "start.sh": uuid.uuid4().hex}
    built = sandbox.build(request_for(context=context_with(tmp_path, dockerfile, **files)))
    launch = make_launch("sh", "-c", "ls -A /program")
    _, log = run(type(launch)(**{**vars(launch), "built": built}))
    assert b"start.sh" in log
    assert b"secret" not in log


@pytest.mark.attack
def test_a_dockerfile_means_what_it_means_to_its_engine(sandbox, request_for, tmp_path, program):
    dockerfile = f"""\
        ARG BASE_IMAGE
        FROM ${{BASE_IMAGE}} AS first
        ARG NAME={uuid.uuid4().hex}
        ARG OTHER="$NAME and more"
        ENV KEPT=1
        WORKDIR /place
        RUN echo "$OTHER|$KEPT|$(pwd)" > made && mkdir new && \\
            # a comment
            touch new/file
        FROM first
        ARG NAME=mine
        ARG KEPT=2
        RUN ["sh", "-c", "echo $NAME $KEPT > /json"]
        COPY --from=first /place/made /copied
        RUN rm -r new && cat made /copied /json && ls -A
        FROM ${{BASE_IMAGE}}
        COPY --from=1 /json /json
        COPY --from=first /place /place
        ENV MORE=3
        CMD ["echo", "by default"]
        RUN find /place /json | sort
        """
    built = sandbox.build(request_for(context=context_with(tmp_path, dockerfile)))
    log = (tmp_path / "build.log").read_text()
    said = f"{dockerfile.split('NAME=')[1][:32]} and more|1|/place\n"
    assert f"{said}{said}mine 1\n" in log
    assert "/json\n/place\n/place/made\n/place/new\n/place/new/file\n" in log
    config = json.loads(program("image", "inspect", built.identity))[0]["Config"]
    assert config["Cmd"] == ["echo", "by default"] and not config.get("Entrypoint")
    kept = dict(line.split("=", 1) for line in config["Env"])
    assert kept["MORE"] == "3" and not kept.keys() & {"NAME", "OTHER", "KEPT", "http_proxy"}


@pytest.mark.attack
def test_an_archive_that_unpacks_to_too_much_is_not_added(sandbox, request_for, tmp_path):
    context = context_with(tmp_path, "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nADD bomb.tar.gz /\nRUN du -sm /zeros\n")
    with tarfile.open(context / "bomb.tar.gz", "w:gz", compresslevel=1) as bomb:
        info = tarfile.TarInfo("zeros")
        info.size = 500 << 20
        with open("/dev/zero", "rb") as zeros:
            bomb.addfile(info, zeros)
    with pytest.raises(BuildFailed, match="400 MB of disk") as failed:
        sandbox.build(request_for(context=context, max_image_mb=200))
    assert failed.value.by_agent


def test_a_step_that_fails_is_named_with_the_end_of_its_output(sandbox, request_for, tmp_path):
    dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo the reason; exit 7\n"
    request = request_for(context=context_with(tmp_path, dockerfile))
    with pytest.raises(BuildFailed, match=r"failed at step [23] of \d+ \(RUN echo the reason; exit 7\)") as failure:
        sandbox.build(request)
    assert "\nthe reason\n" in failure.value.message
    assert str(request.log) in str(failure.value)
    assert "the reason" in request.log.read_text()


@pytest.mark.attack
def test_a_build_is_ended_at_its_time_limit_and_leaves_no_container(sandbox, request_for, tmp_path):
    import psutil

    marker = uuid.uuid4().hex
    dockerfile = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {marker}; sleep 300\n"
    begun = time.monotonic()
    with pytest.raises(BuildFailed, match=r"took longer than 8 s, up to step [23]"):
        sandbox.build(request_for(context=context_with(tmp_path, dockerfile), time_limit=8))
    assert time.monotonic() - begun < 120
    until = time.monotonic() + 90
    while any(f"echo {marker}" in " ".join(found.info["cmdline"] or ()) for found in psutil.process_iter(["cmdline"])):
        assert time.monotonic() < until, "the build's container is still there"
        time.sleep(0.2)


def test_a_silent_build_ends_once_it_is_cancelled(sandbox, request_for, tmp_path):
    marker = uuid.uuid4().hex
    dockerfile = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\nRUN echo {marker}; sleep 300\n"
    request = request_for(context=context_with(tmp_path, dockerfile))
    object.__setattr__(request, "cancelled", lambda: f"\n{marker}" in request.log.read_text())
    request.log.touch()
    begun = time.monotonic()
    with pytest.raises(Cancelled):
        sandbox.build(request)
    assert time.monotonic() - begun < 120


def test_a_missing_base_image_is_an_error_with_a_way_out(sandbox, request_for):
    with pytest.raises(SandboxError, match=r"Image 127\.0\.0\.1:9/none:1 is missing and can't be fetched") as failure:
        sandbox.build(request_for(base_image="127.0.0.1:9/none:1"))
    assert "--base-image" in failure.value.hint


def test_a_ready_image_is_used_as_it_is(sandbox, base, request_for, program):
    identity = "sha256:" + json.loads(program("image", "inspect", base))[0]["Id"].removeprefix("sha256:")
    built = sandbox.build(request_for(image=base))
    assert built == type(built)(identity=identity, reference=identity, cached=True)


def test_what_can_not_be_built_is_said_before_anything_is(sandbox, base, request_for, tmp_path):
    with pytest.raises(BuildFailed, match="package 'no_such_package', which can't be imported"):
        sandbox.build(request_for(packages=("no_such_package",)))
    with pytest.raises(BuildFailed, match="There is no Dockerfile in"):
        sandbox.build(request_for(context=tmp_path / "nowhere"))


@pytest.mark.engines("docker")
def test_an_engine_that_is_not_there_is_an_error_with_a_remedy(engine, monkeypatch, tmp_path, request_for):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    with pytest.raises(SandboxError, match="The Docker engine can't be reached at unix://") as failure:
        DockerSandbox().build(request_for())
    assert "systemctl start docker" in failure.value.hint
    (finding,) = DockerSandbox().check()
    assert (finding.ok, finding.name) == (False, "docker engine")
    assert finding.remedy == failure.value.hint


@pytest.mark.docker
def test_an_engine_that_does_not_answer_holds_nobody_up(monkeypatch, tmp_path):
    import socket

    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(tmp_path / "silent.sock"))
        silent.listen()
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/silent.sock")
        begun = time.monotonic()
        findings = []
        thread = threading.Thread(target=lambda: findings.extend(DockerSandbox().check()), daemon=True)
        thread.start()
        thread.join(90)
        assert [finding.ok for finding in findings] == [False]
        assert time.monotonic() - begun < 90
