"""Requests generated from the OpenAPI document: none ends in a 500, and all responses conform to the document.

`MLEREDUX_SCHEMATHESIS=full` tries many times as many, including boundary values of each field.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from mleredux_support.server import ServerProcess

FULL = os.environ.get("MLEREDUX_SCHEMATHESIS") == "full"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_schema_conformance",
    "response_headers_conformance",
)
DELETES_WHO_ASKS = "^/v1/(tokens|users)/"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a finished run, whose ids and names are taken from its responses and reused."""
    folder = Path(tmp_path_factory.mktemp("schemathesis"))
    options = ("--requests-per-minute", "1000000", "--workers", "1", "--log-level", "warning")
    env = {"MLEREDUX_PLUGINS": "mleredux_testing.toys"}
    with ServerProcess(folder / "runs", *options, env=env) as started:
        with httpx.Client(base_url=started.url, headers=bearer(started.token), timeout=30) as http:
            made = http.post("/v1/runs", json={"task": "toy", "agent": "toy-nearest", "sandbox": "process"})
            assert made.status_code == 201, made.text
            until = time.monotonic() + 90
            while http.get(made.headers["Location"]).json()["status"] not in ("done", "failed"):
                assert time.monotonic() < until
                time.sleep(0.2)
            http.post("/v1/experiments", json={"tasks": ["toy"], "agents": ["toy-nearest"], "sandbox": "process"})
        yield started


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def made_up(server: ServerProcess, folder: Path, token: str, examples: int, *which: str) -> None:
    """Run schemathesis, and fail with its findings."""
    program = Path(sys.executable).with_name("schemathesis")
    command = [str(program), "run", f"{server.url}/openapi.json", "-H", f"Authorization: Bearer {token}"]
    command += ["--phases", "coverage,fuzzing" if FULL else "fuzzing", "-c", ",".join(CHECKS)]
    command += ["-n", str(examples * 10 if FULL else examples), "--generation-deterministic", "--no-shrink"]
    command += ["--suppress-health-check", "all", "--request-timeout", "30", "--continue-on-failure", "--no-color"]
    told = subprocess.run([*command, *which], capture_output=True, text=True, cwd=folder, timeout=500)
    assert told.returncode == 0, told.stdout[-12_000:] + told.stderr[-2000:]
    assert server.process.poll() is None


def test_requests_of_an_admin(server: ServerProcess, tmp_path: Path) -> None:
    made_up(server, tmp_path, server.token, 6, "--exclude-path-regex", DELETES_WHO_ASKS)
    assert httpx.get(f"{server.url}/v1/me", headers=bearer(server.token), timeout=60).status_code == 200


def test_requests_of_a_user(server: ServerProcess, tmp_path: Path) -> None:
    with httpx.Client(base_url=server.url, headers=bearer(server.token), timeout=30) as http:
        user = http.post("/v1/users", json={"name": "somebody"})
        assert user.status_code == 201, user.text
        asked = {"name": "t", "scopes": ["read", "run", "grade", "tokens"], "user": "somebody"}
        token = http.post("/v1/tokens", json=asked).json()["token"]
    made_up(server, tmp_path, token, 2, "--exclude-path-regex", DELETES_WHO_ASKS)
    assert httpx.get(f"{server.url}/v1/me", headers=bearer(token), timeout=60).status_code == 200


def test_requests_that_revoke_tokens(server: ServerProcess, tmp_path: Path) -> None:
    asked = {"name": "throwaway", "scopes": ["admin"]}
    made = httpx.post(f"{server.url}/v1/tokens", headers=bearer(server.token), json=asked, timeout=60)
    assert made.status_code == 201, made.text
    made_up(server, tmp_path, made.json()["token"], 6, "--include-path-regex", DELETES_WHO_ASKS)
