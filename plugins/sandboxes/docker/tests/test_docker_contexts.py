"""Which engine is used, and one sentence for each way in which its selection or the engine itself is broken."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mleredux.errors import SandboxError
from mleredux_sandbox_docker import engine
from mleredux_sandbox_docker.engine import selected
from mleredux_sandbox_docker.sandbox import DockerSandbox

ENDPOINT = {"Host": "unix:///run/lab.sock"}


class Config:
    """A folder of Docker's configuration, in the environment's variables."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder, self.set = folder, patch.setenv
        self.set("DOCKER_CONFIG", str(folder))
        for name in ("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
            patch.delenv(name, raising=False)

    def write(self, path: str, content: Any) -> Path:
        place = self.folder / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content if isinstance(content, str) else json.dumps(content))
        return place

    def context(self, name: str, meta: Any = None, kind: str = "meta/{}/meta.json") -> Path:
        place = hashlib.sha256(name.encode()).hexdigest()
        return self.write(f"contexts/{kind.format(place)}", meta or {"Name": name, "Endpoints": {"docker": ENDPOINT}})

    def current(self, name: str) -> None:
        self.write("config.json", {"currentContext": name})


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    return Config(tmp_path / "docker", monkeypatch)


def _host(config: Config) -> None:
    config.set("DOCKER_HOST", "unix:///run/other.sock")


def _named(config: Config) -> None:
    config.current("other")
    config.set("DOCKER_CONTEXT", "lab")


@pytest.mark.parametrize(
    ("select", "address"),
    [
        (lambda config: None, None),
        (lambda config: config.write("config.json", {"auths": {}}), None),
        (lambda config: config.current("default"), None),
        (lambda config: (config.current("lab"), config.set("DOCKER_CONTEXT", "default")), None),
        (lambda config: config.current("lab"), "unix:///run/lab.sock"),
        (lambda config: config.set("DOCKER_CONTEXT", "lab"), "unix:///run/lab.sock"),
        (_named, "unix:///run/lab.sock"),
        (lambda config: (config.current("lab"), _host(config)), "unix:///run/other.sock"),
        (lambda config: (config.write("config.json", "{"), _host(config)), "unix:///run/other.sock"),
    ],
)
def test_the_engine_is_selected_as_dockers_command_does(
    config: Config, select: Callable[[Config], Any], address: str | None
) -> None:
    config.context("lab")
    select(config)
    assert selected()[0].get("base_url") == address


def test_a_contexts_certificates_are_used(config: Config) -> None:
    config.context("lab", {"Endpoints": {"docker": {"Host": "tcp://lab:2376", "SkipTLSVerify": True}}})
    for name in ("ca", "cert", "key"):
        path = config.context("lab", "x", kind=f"tls/{{}}/docker/{name}.pem")
    config.current("lab")
    arguments, _ = selected()
    assert arguments["base_url"] == "tcp://lab:2376"
    assert arguments["tls"].cert == (str(path.parent / "cert.pem"), str(path.parent / "key.pem"))
    assert (arguments["tls"].ca_cert, arguments["tls"].verify) == (str(path.parent / "ca.pem"), False)


def _damaged(text: str) -> Callable[[Config], object]:
    return lambda config: config.write("config.json", text)


def _context(meta: Any) -> Callable[[Config], object]:
    return lambda config: (config.context("lab", meta), config.set("DOCKER_CONTEXT", "lab"))


def _address(value: str, **more: str) -> Callable[[Config], object]:
    return lambda config: [config.set(name, text) for name, text in {"DOCKER_HOST": value, **more}.items()]


def _denied(config: Config) -> None:
    """Select a socket in a folder that only root may enter."""
    config.context("lab", {"Endpoints": {"docker": {"Host": f"unix://{config.folder}/closed/engine.sock"}}})
    (config.folder / "closed").mkdir(mode=0)
    config.current("lab")


BROKEN: dict[str, tuple[Callable[[Config], object], str, str]] = {
    "context": (
        lambda config: config.set("DOCKER_CONTEXT", "colima"),
        "The Docker context 'colima', selected by DOCKER_CONTEXT, does not exist or names no engine.",
        "unset DOCKER_CONTEXT",
    ),
    "current": (
        lambda config: config.current("desktop-linux"),
        "The Docker context 'desktop-linux', selected by {folder}/config.json, does not exist",
        "docker context use default",
    ),
    "kubernetes": (_context({"Endpoints": {"kubernetes": {}}}), "names no engine", "docker context ls"),
    "shape": (_context({"Endpoints": ["docker"]}), "names no engine", "docker context ls"),
    "meta": (_context("{"), "/meta.json can't be read (it is not JSON", "Correct or delete the file"),
    "config": (
        _damaged('{"auths": {'),
        "Docker's configuration {folder}/config.json can't be read",
        "or set DOCKER_HOST",
    ),
    "list": (_damaged("[]"), "it is damaged: it contains no object", "Correct or delete the file"),
    "binary": (_damaged("\x00\x01"), "it is not JSON", "Correct or delete the file"),
    "folder": (lambda config: (config.folder / "config.json").mkdir(parents=True), "(Is a directory)", "Correct"),
    "socket": (
        lambda config: (config.context("lab"), config.current("lab")),
        "at unix:///run/lab.sock (context 'lab', selected by {folder}/config.json): the socket does not exist.",
        "systemctl start docker",
    ),
    "host": (_address("unix:///no.sock"), "at unix:///no.sock (DOCKER_HOST): the socket does not exist.", "Start"),
    "port": (_address("tcp://127.0.0.1:1"), "at tcp://127.0.0.1:1 (DOCKER_HOST): no engine listens there.", "Start"),
    "range": (_address("tcp://127.0.0.1:99999"), "at tcp://127.0.0.1:99999 (DOCKER_HOST): ", "Correct the address"),
    "scheme": (_address("engine://lab"), "Invalid bind address", "Correct the address: unix:///PATH"),
    "name": (_address("tcp://nowhere.invalid:2375"), "(DOCKER_HOST): the host is unknown.", "Correct the address"),
    "tls": (
        _address("tcp://127.0.0.1:1", DOCKER_TLS_VERIFY="1", DOCKER_CERT_PATH="/nowhere"),
        "its certificates are missing",
        "DOCKER_CERT_PATH",
    ),
    "permission": (_denied, "you have no permission for the socket.", "group `docker`"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_selection_is_one_sentence_with_a_remedy(
    config: Config, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    broken, message, hint = BROKEN[kind]
    broken(config)
    if kind == "permission" and os.geteuid() == 0:  # nothing is forbidden to root
        monkeypatch.setattr(socket.socket, "connect", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    with pytest.raises(SandboxError) as caught:
        engine.connect()
    assert message.format(folder=config.folder) in caught.value.message
    assert hint in str(caught.value.hint)
    assert "Error(" not in caught.value.message and "Traceback" not in caught.value.message
    (finding,) = DockerSandbox().check()
    assert (finding.ok, finding.message, finding.remedy) == (False, caught.value.message, caught.value.hint)


@pytest.mark.parametrize("command", ["run digits --agent dummy --sandbox docker", "doctor --sandbox docker"])
@pytest.mark.parametrize("kind", ["context", "config", "socket", "scheme"])
def test_the_commands_print_the_sentence(config: Config, tmp_path: Path, kind: str, command: str) -> None:
    broken, message, hint = BROKEN[kind]
    broken(config)
    words = [sys.executable, "-m", "mleredux", *command.split()]
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    output = " ".join(f"{ended.stdout} {ended.stderr}".split())
    assert message.format(folder=config.folder) in output and hint in output, output
    assert "Traceback" not in output
    assert command.startswith("doctor") or ended.returncode
