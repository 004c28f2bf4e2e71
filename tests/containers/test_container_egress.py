"""What builds and runs reach, and what a build may use, read from inside."""

from __future__ import annotations

import http.server
import json
import tempfile
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from mleredux._core.protocols import BuildRequest
from mleredux._core.sandboxes.egress import Rule, variables
from mleredux._core.stages.failures import failure_of
from mleredux.errors import BuildFailed
from mleredux.models import Agent, Build, HostUse
from mleredux_containers.egress import Egress

LOOK = """
import glob, json, os, socket, sys, urllib.error, urllib.request

def first(*patterns):
    return next(open(p).read().strip() for pattern in patterns for p in glob.glob(pattern))

def get(url):
    try:
        return urllib.request.urlopen(url, timeout=10).status
    except urllib.error.HTTPError as error:
        return error.status
    except OSError as error:
        return type(error).__name__

def reach(host, port):
    try:
        socket.create_connection((host, port), 2).close()
        return True
    except OSError:
        return False

def processes():
    reading, writing = os.pipe()
    for count in range(5000):
        try:
            if os.fork() == 0:
                os.close(writing)
                os.read(reading, 1)
                os._exit(0)
        except OSError:
            break
    os.close(writing)
    return count

print("SEEN" + json.dumps({
    "memory": int(first("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max")),
    "processes": processes(),
    "cpu": int(first("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "/sys/fs/cgroup/cpu.max").split()[0]),
    "routes": open("/proc/net/route").read().splitlines()[1:],
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "environment": " ".join(os.environ.values()),
    "direct": [reach(h, PORT) for h in ("127.0.0.1", "172.17.0.1", "169.254.169.254")],
    "allowed": get("http://files.test:PORT/"),
    "other": get("http://other.test:PORT/"),
    "host": get("http://172.17.0.1:PORT/"),
    "metadata": get("http://169.254.169.254/"),
}))
"""

FILL = """
import os
wrote = 0
for place in ("/", "/etc/", "/var/tmp/", "/etc/hosts", "/etc/resolv.conf", "/etc/hostname", "/dev/", "/opt/new/"):
    for number in range(8):
        name = place if os.path.isfile(place) else f"{place}big{number}"
        try:
            os.makedirs(os.path.dirname(name), exist_ok=True)
            file = os.open(name, os.O_WRONLY | os.O_CREAT)
            if name == place or number % 2:
                os.unlink(name)
        except OSError:
            pass
        try:
            os.posix_fallocate(file, 0, 300 << 20)  # at once, without a byte written
            wrote += 300
        except OSError:
            pass
if wrote > 500:
    print("WROTE", wrote, "MB")
raise SystemExit(1)
"""


@pytest.fixture
def site() -> Iterator[int]:
    """The port of a server on this machine."""

    class Quiet(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), Quiet) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def request(tmp_path: Path, step: str, uses: list[HostUse], **more: object) -> BuildRequest:
    folder = tmp_path / "context"
    folder.mkdir()
    label = f"LABEL attempt={uuid.uuid4().hex}"
    lines = f"ARG BASE_IMAGE\nFROM ${{BASE_IMAGE}}\n{label}\nCOPY look.py /look.py\nRUN {step}\n"
    (folder / "Dockerfile").write_text(lines)
    (folder / "look.py").write_text(str(more.pop("look", "")))
    build = Build(context=folder, **{name: more.pop(name) for name in ("max_image_mb",) if name in more})
    agent = Agent(id="limited", title="Limited", command=("true",), build=build)
    return BuildRequest(agent, tmp_path / "build.log", record=uses.append, **more)  # type: ignore[arg-type]


@pytest.mark.attack
def test_a_build_has_limits_and_reaches_what_was_granted_alone(sandbox, tmp_path, site, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:pr0xy-pass@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "*")
    uses: list[HostUse] = []
    granted = (f"files.test=127.0.0.1:{site}",)
    look = LOOK.replace("PORT", str(site))
    sandbox.build(request(tmp_path, "python3 /look.py", uses, hosts=granted, look=look))
    log = (tmp_path / "build.log").read_text()
    seen = json.loads(next(line for line in log.splitlines() if line.startswith("SEEN")).removeprefix("SEEN"))
    assert 2**28 <= seen["memory"] <= 2**35 and 1000 <= seen["processes"] < 1024 and seen["cpu"] > 0
    assert (seen["routes"], seen["interfaces"]) == ([], ["lo"])
    assert "pr0xy-pass" not in log and "pr0xy" not in seen["environment"]
    assert seen["direct"] == [False, False, False]
    assert (seen["allowed"], seen["other"], seen["host"], seen["metadata"]) == (200, 403, 403, 403)
    counted = {(use.host, use.allowed) for use in uses if use.connections and use.phase == "build"}
    assert {("files.test", True), ("other.test", False), ("169.254.169.254", False)} <= counted


@pytest.mark.parametrize(
    ("step", "more", "sentence"),
    [
        ("python3 -c 'x = bytearray(2**36)'", {}, "failed at step"),
        ("dd if=/dev/zero of=/big bs=16M", {"max_image_mb": 200}, "MB of disk"),
        ("python3 /look.py", {"max_image_mb": 200}, "failed at step|MB of disk"),
    ],
    ids=["memory", "one file", "all places"],
)
@pytest.mark.attack
def test_a_recipe_that_takes_too_much_is_the_agents_failure(sandbox, tmp_path, step, more, sentence):
    with pytest.raises(BuildFailed, match=sentence) as failed:
        sandbox.build(request(tmp_path, step, [], hosts=(), time_limit=300, look=FILL, **more))
    assert failed.value.by_agent and failure_of(failed.value).cause == "agent_crashed"
    assert "WROTE" not in (tmp_path / "build.log").read_text()


def test_a_registry_that_does_not_answer_is_not_the_agents_failure(sandbox, tmp_path):
    look = "import urllib.request; urllib.request.urlopen('http://files.test:9/')"
    with pytest.raises(BuildFailed) as failed:
        sandbox.build(request(tmp_path, "python3 /look.py", [], hosts=("files.test=127.0.0.1:9",), look=look))
    assert not failed.value.by_agent and failure_of(failed.value).cause == "environment_broke"


@pytest.mark.attack
def test_a_run_reaches_its_allowed_hosts_and_no_others(make_launch, run, site):
    uses: list[HostUse] = []
    with tempfile.TemporaryDirectory(prefix="mleredux-egress-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        egress = Egress(folder / "proxy.sock", [Rule.read(f"files.test=127.0.0.1:{site}")], "run", uses.append)
        egress.start()
        look = LOOK.replace("PORT", str(site))
        ended, log = run(
            make_launch("python", "-c", look, proxy_socket=egress.path, env={**variables(local=True), "A": "B"})
        )
        egress.stop()
    assert ended.code == 0, log
    seen = json.loads(log.partition(b"SEEN")[2])
    assert (seen["allowed"], seen["other"], seen["host"], seen["metadata"]) == (200, 403, 403, 403)
    assert (seen["routes"], seen["interfaces"], seen["direct"]) == ([], ["lo"], [False] * 3)
    assert {(use.host, use.allowed) for use in uses if use.connections} >= {("files.test", True), ("other.test", False)}
