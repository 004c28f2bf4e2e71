"""What an agent sees from inside: no privileges, no network, nothing of the host, nothing held out."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Iterator

import pytest
from mleredux_testing.pytest_plugin import skip_or_fail

pytestmark = pytest.mark.engines("docker", "podman", "apptainer")

LOOK_AROUND = r"""
import json, os, pathlib, resource

def denied(action):
    try:
        action()
    except OSError as error:
        return error.strerror
    return None

lines = pathlib.Path("/proc/self/status").read_text().splitlines()
status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
held_out = [
    os.path.join(folder, name)
    for folder, _, names in os.walk("/")
    if not folder.startswith(("/proc", "/sys"))
    for name in names
    if "nobody-may-see" in name
]
print(json.dumps({
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getgroups()],
    "status": status,
    "root": denied(lambda: pathlib.Path("/usr/file").write_text("x")),
    "etc": denied(lambda: pathlib.Path("/etc/passwd").write_text("x")),
    "task": denied(lambda: pathlib.Path("/task/file").write_text("x")),
    "data": denied(lambda: pathlib.Path("/task/data/train.csv").write_text("x")),
    "home_data": denied(lambda: pathlib.Path("/home/data/train.csv").write_text("x")),
    "inside": denied(lambda: pathlib.Path("/mleredux/inside/forwarder.py").write_text("x")),
    "output": denied(lambda: pathlib.Path("/output/file").write_text("x")),
    "scratch": denied(lambda: pathlib.Path("/tmp/file").write_text("x")),
    "chown": denied(lambda: os.chown("/output/file", 0, 0)),
    "mknod": denied(lambda: os.mknod("/tmp/device", 0o020666, os.makedev(1, 3))),
    "sockets": [str(path) for path in pathlib.Path("/run").rglob("*.sock")],
    "interfaces": sorted(os.listdir("/sys/class/net")),
    "environment": dict(os.environ),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
    "devices": sorted(os.listdir("/dev")),
    "held_out": held_out,
    "directory": os.getcwd(),
    "first_process": pathlib.Path("/proc/1/comm").read_text().strip(),
}))
"""


@pytest.fixture
def seen(make_launch, run, monkeypatch):
    monkeypatch.setenv("A_SECRET_OF_THE_HOST", "hunter2")
    ended, log = run(make_launch("python", "-c", LOOK_AROUND, env={"MLEREDUX_TASK": "digits", "DECLARED": "yes"}))
    assert ended.code == 0, log
    return json.loads(log)


@pytest.mark.attack
def test_an_agent_has_no_privileges_and_touches_only_its_output_and_scratch(seen):
    own, group = (os.getuid(), os.getgid()) if os.getuid() else (65532, 65532)
    assert seen["ids"] in ([own, own, group, [group]], [own, own, group, []])
    for capabilities in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(seen["status"][capabilities], 16) == 0
    assert seen["status"]["NoNewPrivs"] == "1"
    assert seen["status"]["Seccomp"] == "2", "the engine's system call filter is on"
    for read_only in ("root", "etc", "task", "data", "home_data", "inside"):
        assert seen[read_only] is not None, f"{read_only} could be written"
    assert seen["output"] is None
    assert seen["scratch"] is None
    assert seen["chown"] is not None
    assert seen["mknod"] is not None
    assert seen["core"] == [0, 0]
    assert seen["directory"] == "/output"
    assert seen["first_process"] in ("docker-init", "podman-init", "catatonit", "sh")


@pytest.mark.attack
def test_nothing_of_the_host_and_nothing_held_out_is_there(seen):
    assert seen["sockets"] == []
    assert seen["interfaces"] == ["lo"]
    assert seen["held_out"] == []
    assert not {"mem", "kmem", "sda", "vda", "kvm", "fuse"} & set(seen["devices"])
    assert "hunter2" not in json.dumps(seen)


@pytest.mark.attack
def test_the_environment_holds_the_declared_variables_the_contracts_and_the_images_own(seen, engine):
    images = {"PATH", "LANG", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
    images |= {"SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE", "GPG_KEY", "PYTHON_VERSION"}
    images |= {"PYTHON_SHA256", "LC_CTYPE"}
    images |= {"TERM"} if engine == "apptainer" else set()
    contract = {"HOME", "USER", "LOGNAME", "HOSTNAME", "PWD"}
    contract |= {"COMPETITION_ID", "SUBMISSION_DIR", "LOGS_DIR", "CODE_DIR", "AGENT_DIR"}
    environment = seen["environment"]
    assert environment["DECLARED"] == "yes"
    assert environment["COMPETITION_ID"] == "digits"
    assert set(environment) - images - contract == {"DECLARED", "MLEREDUX_TASK"}


def test_an_image_may_be_written_where_its_agent_needs_it_and_nothing_of_that_is_kept(make_launch, run, change_build):
    launch = make_launch("sh", "-c", "echo x > /var/tmp/file && cat /var/tmp/file")
    assert run(launch)[0].code != 0
    launch.log.unlink()
    assert run(change_build(launch, writable_root=True))[1] == b"x\n"


@pytest.mark.attack
def test_a_link_left_in_place_of_an_output_folder_is_not_followed(make_launch, run, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    launch = make_launch("sh", "-c", "echo mine > /home/code/program.py")
    (launch.output_dir / "code").symlink_to(elsewhere)
    assert run(launch)[0].code == 0
    assert list(elsewhere.iterdir()) == []
    assert (launch.output_dir / "code" / "program.py").read_text() == "mine\n"


def test_data_that_the_agents_user_could_not_read_are_named_before_it_starts(make_launch, sandbox):
    if os.getuid() != 0:
        skip_or_fail("root", "only root can own files that the agent's user can't read")
    from mleredux.errors import SandboxError

    launch = make_launch("true")
    (launch.data_dir / "train.csv").chmod(0o600)
    with pytest.raises(SandboxError, match=r"train\.csv can't be read by the agent's user .*chmod -R o\+rX"):
        sandbox.start(launch)


CONNECT = r"""
import json, socket, sys
results = {}
for target in sys.argv[1:]:
    host, port = target.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
        results[target] = "connected"
    except OSError as error:
        results[target] = type(error).__name__
print(json.dumps(results))
"""


@pytest.fixture
def host_port() -> Iterator[int]:
    """A server that listens on every address of this machine."""
    with socket.create_server(("0.0.0.0", 0)) as server:
        ended = threading.Event()

        def accept() -> None:
            while not ended.is_set():
                with contextlib.suppress(OSError):
                    server.accept()[0].close()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        ended.set()
        server.settimeout(0)
    thread.join(1)


def host_addresses() -> list[str]:
    """The addresses of this machine, the engine's bridges among them."""
    import psutil

    found = [a.address for addresses in psutil.net_if_addrs().values() for a in addresses if a.family == socket.AF_INET]
    return [address for address in found if not address.startswith("127.")]


@pytest.mark.parametrize("network", ["none", "gateway", "open"])
@pytest.mark.attack
def test_nothing_answers_an_agent_but_through_its_sockets(network, make_launch, run, host_port):
    addresses = host_addresses()
    assert addresses, "this machine has an address that could answer"
    targets = [f"{address}:{host_port}" for address in addresses]
    # The first addresses of the engine's networks are the host's own on their bridges.
    targets += [f"172.{net}.0.1:{host_port}" for net in range(17, 23)] + [f"localhost:{host_port}", "example.org:80"]
    ended, log = run(make_launch("python", "-c", CONNECT, *targets, network=network), 120)
    assert ended.code == 0, log
    assert "connected" not in json.loads(log).values()
