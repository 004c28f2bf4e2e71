"""What `examples/service` shows fits together, and fits the service: its options, its limits, its numbers."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from mleredux_server.cli.serve import command as serve
from mleredux_server.settings import Settings
from mleredux_support.ports import free_port
from mleredux_support.wheels import build_wheels
from mleredux_testing.pytest_plugin import skip_or_fail

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "examples" / "service"
TOKEN = "mlr_" + "0123456789abcdef" * 2
IN_IMAGE = (
    *("mleredux", "mleredux-server", "mleredux-view", "mleredux-artifact-reports"),
    *("mleredux-sandbox-docker", "mleredux-agent-dummy"),
    *("mleredux-agentkit", "mleredux-containers", "mleredux-executor-nodes", "mleredux-programs"),
    *("mleredux-http-api", "mleredux-rollout", "mleredux-tables"),
)
_VARIABLE = re.compile(r"\$\{([A-Z_]+)(:-([^}]*))?\}")


def text(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def asked_of_serve(arguments: list[str]) -> dict[str, Any]:
    """The options of `mleredux serve`, read by the command itself."""
    assert arguments[0] == "serve"
    return serve.make_context("serve", list(arguments[1:])).params


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The file with the defaults of its variables in their places, as compose reads it without a `.env`."""
    loaded: dict[str, Any] = yaml.safe_load(_VARIABLE.sub(lambda found: found[3] or "", text("compose.yaml")))
    return loaded


@pytest.fixture(scope="module")
def unit() -> dict[str, list[str]]:
    lines = [line for line in text("mleredux.service").splitlines() if "=" in line and not line.startswith("#")]
    found: dict[str, list[str]] = {}
    for line in lines:
        name, _, value = line.partition("=")
        found.setdefault(name, []).append(value)
    return found


def environment(unit: dict[str, list[str]]) -> dict[str, str]:
    return dict(item.partition("=")[::2] for item in unit["Environment"])


class TestCompose:
    def test_every_name_that_is_used_is_declared(self, compose: dict[str, Any]) -> None:
        for service in compose["services"].values():
            assert set(service["secrets"]) <= set(compose["secrets"])
            assert set(service["networks"]) <= set(compose["networks"])
            named = {volume["source"] for volume in service["volumes"] if volume["type"] == "volume"}
            assert named <= set(compose["volumes"])
            for other, condition in service.get("depends_on", {}).items():
                assert condition == {"condition": "service_healthy"} and "healthcheck" in compose["services"][other]

    def test_every_secret_is_a_file_that_the_readme_makes_and_git_never_takes(self, compose: dict[str, Any]) -> None:
        for secret in compose["secrets"].values():
            assert f"> {secret['file'].removeprefix('./')}" in text("README.md")
        assert "secrets/" in text(".gitignore").split() and ".env" in text(".gitignore").split()
        for service in compose["services"].values():
            for name, value in service["environment"].items():
                if re.search("TOKEN|PASSWORD", name):
                    assert name.endswith("_FILE") and value.removeprefix("/run/secrets/") in service["secrets"]

    def test_every_variable_has_a_default_and_is_explained(self) -> None:
        explained = dict(
            line.partition("=")[::2] for line in text("env.example").splitlines() if line and line[0] != "#"
        )
        used = {found[1]: found[3] for found in _VARIABLE.finditer(text("compose.yaml"))}
        assert used == explained
        assert not re.search(r"\$[A-Za-z]", _VARIABLE.sub("", text("compose.yaml")))

    def test_the_server_gets_options_that_it_has(self, compose: dict[str, Any]) -> None:
        asked = asked_of_serve(compose["services"]["server"]["command"])
        assert (asked["host"], asked["port"]) == ("0.0.0.0", 8000)
        address = Settings(runs_dir=Path("runs"), database=asked["database"]).database_url
        assert address == "postgresql+psycopg://mleredux@database/mleredux"  # the password comes as PGPASSWORD
        made = compose["services"]["database"]["environment"]
        assert made["POSTGRES_USER"] == made["POSTGRES_DB"] == "mleredux"

    def test_the_engine_finds_what_the_server_names(self, compose: dict[str, Any]) -> None:
        server = compose["services"]["server"]
        home = server["volumes"][0]
        assert home["source"] == home["target"]
        places = [server["environment"][name] for name in ("MLEREDUX_RUNS_DIR", "MLEREDUX_DATA_ROOT", "TMPDIR")]
        assert all(place.startswith(f"{home['target']}/") for place in places)

    def test_nothing_is_open_that_need_not_be(self, compose: dict[str, Any]) -> None:
        services = compose["services"]
        assert all(port.startswith("127.0.0.1:") for port in services["server"]["ports"])
        assert "ports" not in services["database"] and compose["networks"]["inside"]["internal"] is True
        assert services["database"]["networks"] == ["inside"]
        for service in services.values():
            assert "privileged" not in service and "no-new-privileges:true" in service["security_opt"]


class TestImage:
    def test_what_it_copies_is_there_and_nothing_else_is_sent(self) -> None:
        copied = re.findall(r"^COPY (?!--from)(\S+)", text("Dockerfile"), re.MULTILINE)
        assert copied == ["wheels/", "entrypoint.sh"] and all((FOLDER / name).exists() for name in copied)
        assert text(".dockerignore").split() == ["*", "!wheels", "!entrypoint.sh"]
        assert "ARG BASE_IMAGE=python:3.13-slim" in text("Dockerfile") and "BASE_IMAGE" in text("compose.yaml")

    def test_its_command_has_options_that_the_server_has(self) -> None:
        (command,) = re.findall(r"^CMD (\[.+\])$", text("Dockerfile"), re.MULTILINE)
        assert asked_of_serve(json.loads(command))["host"] == "0.0.0.0"

    def test_the_packages_of_the_readme_are_ours(self) -> None:
        listed = re.search(r"for name in mleredux mleredux-\{([a-z,-]+)\}", text("README.md"))
        assert listed is not None
        projects = [
            *ROOT.glob("core/pyproject.toml"),
            *ROOT.glob("kits/*/pyproject.toml"),
            *ROOT.glob("plugins/**/pyproject.toml"),
        ]
        known = {tomllib.loads(path.read_text(encoding="utf-8"))["project"]["name"] for path in projects}
        assert {"mleredux", *(f"mleredux-{name}" for name in listed[1].split(","))} <= known

    def test_secrets_become_variables_and_no_arguments(self, tmp_path: Path) -> None:
        (tmp_path / "token").write_text('it\'s "$HOME" `x`\n')
        variables = {
            "PATH": os.environ["PATH"],
            "TMPDIR": str(tmp_path / "tmp"),
            "PGPASSWORD_FILE": str(tmp_path / "token"),
        }
        script = [str(FOLDER / "entrypoint.sh"), "sh", "-c", 'printf "%s|%s" "$PGPASSWORD" "$*"', "sh", "a b"]
        done = subprocess.run(script, env=variables, capture_output=True, text=True)
        assert done.stdout == 'it\'s "$HOME" `x`|a b' and (tmp_path / "tmp").is_dir()
        missing = subprocess.run(script, env={**variables, "PGPASSWORD_FILE": "/no"}, capture_output=True, text=True)
        assert missing.returncode == 1 and missing.stderr == "PGPASSWORD_FILE names /no, which can't be read.\n"


class TestUnit:
    def test_only_the_server_is_stopped_and_nobody_inherits_its_user(self, unit: dict[str, list[str]]) -> None:
        assert unit["KillMode"] == ["process"] and "DynamicUser" not in unit
        assert unit["User"] == ["mleredux"] and unit["SupplementaryGroups"] == ["docker"]
        for name in ("KillMode=process", "DynamicUser", "--kill-whom=all"):
            assert name in text("README.md")

    def test_every_folder_is_made_and_writable(self, unit: dict[str, list[str]]) -> None:
        made = {f"/var/lib/{name}" for name in unit["StateDirectory"][0].split()}
        folders = {value for value in environment(unit).values() if value.startswith("/")}
        assert folders | set(unit["WorkingDirectory"]) == made

    def test_graders_may_still_give_up_the_network(self, unit: dict[str, list[str]]) -> None:
        assert unit["RestrictNamespaces"] == ["user net"] and unit["SystemCallFilter"] == ["@system-service"]

    def test_the_socket_has_the_address_of_the_service(self, unit: dict[str, list[str]]) -> None:
        words = shlex.split(unit["ExecStart"][0])
        asked = asked_of_serve(words[1:])
        assert f"ListenStream={asked['host']}:{asked['port']}\n" in text("mleredux.socket")

    def test_systemd_takes_it(self, tmp_path: Path) -> None:
        if shutil.which("systemd-analyze") is None:
            pytest.skip("there is no systemd-analyze")
        program = Path(sys.executable).with_name("mleredux")
        copy = tmp_path / "mleredux.service"
        copy.write_text(text("mleredux.service").replace("/opt/mleredux/bin/mleredux", str(program)))
        done = subprocess.run(["systemd-analyze", "verify", str(copy)], capture_output=True, text=True)
        said = [line for line in done.stderr.splitlines() if "mleredux.service" in line]
        assert (done.returncode, said) == (0, [])


class TestProxy:
    def test_live_events_are_passed_on_as_they_come(self) -> None:
        content = text("nginx.conf")
        assert content.count("{") == content.count("}")
        for line in ("proxy_buffering off;", "proxy_request_buffering off;", 'proxy_set_header Connection "";'):
            assert line in content
        waits = re.search(r"proxy_read_timeout (\d+)s;", content)
        assert waits is not None and int(waits[1]) > 4 * 15  # a stream says something every 15 seconds

    def test_it_lets_through_what_the_server_takes(self) -> None:
        largest = re.search(r"client_max_body_size (\d+)g;", text("nginx.conf"))
        assert largest is not None and int(largest[1]) * 1024 >= Settings(runs_dir=Path("runs")).max_upload_mb

    def test_nginx_takes_it(self, tmp_path: Path) -> None:
        nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
        if nginx is None or shutil.which("openssl") is None:
            skip_or_fail("nginx", "there is no nginx (`.ci/nginx` installs it)")
        subject = ["-nodes", "-days", "2", "-subj", "/CN=x", "-keyout", "key.pem", "-out", "chain.pem"]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", *subject], cwd=tmp_path, check=True)
        lines = text("nginx.conf").replace("privkey.pem", "key.pem").replace("fullchain.pem", "chain.pem")
        lines = lines.replace("/etc/letsencrypt/live/mleredux.example.org", str(tmp_path))
        (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{lines}\n}}\n")
        subprocess.run([nginx, "-t", "-c", str(tmp_path / "nginx.conf")], check=True)


def fetch(url: str, token: str | None = None) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def answers(url: str, alive: Callable[[], bool], seconds: float = 120) -> str:
    """What the address answers, once it does."""
    end = time.monotonic() + seconds
    while True:
        try:
            return fetch(url)
        except (urllib.error.URLError, OSError):
            assert alive() and time.monotonic() < end, f"nothing answers at {url}"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`/metrics` of a server that was started as the unit starts it, in folders of the test's own."""
    home = tmp_path_factory.mktemp("service")
    lines = [line for line in text("mleredux.service").splitlines() if line.startswith(("ExecStart=", "Environment="))]
    moved = [line.replace("/var/lib/mleredux", str(home)) for line in lines]
    (command,) = (shlex.split(line.removeprefix("ExecStart=")) for line in moved if line.startswith("ExecStart="))
    given = dict(line.split("=", 2)[1:] for line in moved if line.startswith("Environment="))
    for folder in given.values():
        if folder.startswith(str(home)):
            Path(folder).mkdir(parents=True, exist_ok=True)
    port = str(free_port())
    words = [port if word == "8000" else word for word in command[1:]]
    process = subprocess.Popen(
        [sys.executable, "-m", "mleredux", *words],
        env={**os.environ, **given, "MLEREDUX_SERVE_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        base = f"http://127.0.0.1:{port}"
        assert json.loads(answers(f"{base}/healthz", lambda: process.poll() is None)) == {"status": "ok"}
        assert json.loads(fetch(f"{base}/v1/me", TOKEN))["user"]["name"] == "admin"
        yield fetch(f"{base}/metrics")
    finally:
        process.terminate()
        said, _ = process.communicate(timeout=600)
    assert "Token:" not in said and TOKEN not in said  # a token that was chosen is not told


class TestPrometheus:
    def test_it_asks_where_the_server_listens(self, unit: dict[str, list[str]]) -> None:
        asked = asked_of_serve(shlex.split(unit["ExecStart"][0])[1:])
        (job,) = yaml.safe_load(text("prometheus.yml"))["scrape_configs"]
        assert job["static_configs"] == [{"targets": [f"{asked['host']}:{asked['port']}"]}]
        assert f"server {asked['host']}:{asked['port']};" in text("nginx.conf")

    def test_every_alert_looks_at_numbers_that_there_are(self, numbers: str) -> None:
        there = {re.split(r"[{ ]", line)[0] for line in numbers.splitlines() if not line.startswith("#")}
        (group,) = yaml.safe_load(text("alerts.yml"))["groups"]
        looked_at = {name for rule in group["rules"] for name in re.findall(r"\bmleredux_\w+", rule["expr"])}
        assert len(looked_at) >= 5 and looked_at <= there
        assert all(rule["annotations"]["summary"] for rule in group["rules"])


@pytest.mark.docker
@pytest.mark.slow
def test_the_image_is_built_and_serves(docker_base_image: str, tmp_path: Path) -> None:
    """Built with the classic builder on the base image of the tests; the service with the files of the example."""
    context = tmp_path / "context"
    shutil.copytree(FOLDER, context, ignore=shutil.ignore_patterns("*.whl", "secrets", ".env"))
    build_wheels(tmp_path / "wheels", *IN_IMAGE)
    shutil.copytree(tmp_path / "wheels", context / "wheels", dirs_exist_ok=True)
    name = f"mleredux/test-of-the-service:{os.getpid()}"
    arguments = ["--network", "host", "--build-arg", f"BASE_IMAGE={docker_base_image}", "--tag", name]
    built = subprocess.run(
        ["docker", "build", *arguments, str(context)],
        env={**os.environ, "DOCKER_BUILDKIT": "0"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stdout[-3000:] + built.stderr[-3000:]
    (tmp_path / "token").write_text(TOKEN)
    port = str(free_port())
    mounted = ["--volume", f"{tmp_path / 'token'}:/run/secrets/serve_token:ro"]
    variables = ["--env", "MLEREDUX_SERVE_TOKEN_FILE=/run/secrets/serve_token"]
    kept = ["--init", "--security-opt", "no-new-privileges:true", "--network", "host"]
    words = ["serve", "--host", "127.0.0.1", "--port", port]
    started = subprocess.run(
        ["docker", "run", "--detach", *kept, *mounted, *variables, name, *words], capture_output=True, text=True
    )
    assert started.returncode == 0, started.stderr
    container = started.stdout.strip()
    try:
        base = f"http://127.0.0.1:{port}"

        def alive() -> bool:
            shown = subprocess.run(["docker", "inspect", "-f", "{{.State.Running}}", container], capture_output=True)
            return shown.stdout.strip() == b"true"

        assert json.loads(answers(f"{base}/healthz", alive)) == {"status": "ok"}
        assert json.loads(fetch(f"{base}/readyz"))["status"] == "ok"
        agents = json.loads(fetch(f"{base}/v1/agents", TOKEN))["items"]
        assert "dummy" in {agent["id"] for agent in agents}
        logged = subprocess.run(["docker", "logs", container], capture_output=True, text=True)
        assert TOKEN not in logged.stdout + logged.stderr
        stopped = subprocess.run(["docker", "stop", "--time", "30", container], capture_output=True)
        code = subprocess.run(["docker", "inspect", "-f", "{{.State.ExitCode}}", container], capture_output=True)
        assert stopped.returncode == 0 and code.stdout.strip() in (b"0", b"143")  # it ended by itself, not by SIGKILL
    finally:
        subprocess.run(["docker", "rm", "--force", container], capture_output=True)
        subprocess.run(["docker", "rmi", name], capture_output=True)
