"""No program of ours that sends a request takes it, or its key, to where a redirect leads."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).parents[1]
INSIDE = {
    "core/src/mleredux/_core/stages/briefing.py",
    "tests/_support/mleredux_support/disk_attacks.py",
    "kits/testing/src/mleredux_testing/sandbox_agents.py",
}
"""Programs that run in a sandbox, which has its own network."""
LOOPBACK = {"kits/agentkit/src/mleredux_agentkit/task.py"}
SENDS = re.compile(
    r"\b(?:httpx\.(?:Async)?Client\(|httpx\.(?:get|post|stream)\(|requests\.(?:get|post|Session)\(|urlopen\("
    r"|build_opener\(|HTTPS?Connection\(|aiohttp\.ClientSession\(|OAuth\(\)|MlflowClient\(|S3Store\()"
)
CHILD = """
import sys
from mleredux_competition_mlebench.kaggle import child
child._follow_only_what_is_public()
import requests
try:
    requests.get(sys.argv[1], headers={"Authorization": "Bearer secret"}, timeout=10)
except child.Refusal as refusal:
    assert refusal.kind == "redirected", refusal.kind
"""


def ask_judge(url: str) -> None:
    from mleredux_rollout.judge import Judge

    Judge("m", {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "secret"}).ask("order", "material")


def complete(url: str) -> None:
    from mleredux_agentkit import llm

    with pytest.MonkeyPatch.context() as patch:
        for family in ("OPENAI", "ANTHROPIC"):
            patch.setenv(f"{family}_BASE_URL", url)
            patch.setenv(f"{family}_API_KEY", "secret")
        for model in ("m", "anthropic/m"):
            with pytest.raises(llm.NoMoreCalls):
                llm.complete(model, [{"role": "user", "content": "x"}], retries=0)


def send_webhook(url: str) -> None:
    from mleredux_server.operations.deliverer import send

    send(url, "127.0.0.1", {"X-Signature": "secret"}, "{}")


def ask_server(url: str) -> None:
    from mleredux_client import Client

    list(Client(url, token="secret", retries=0).tasks())


def ask_upstream(url: str) -> None:
    from mleredux_gateway.config import GatewayConfig, Upstream, UpstreamConfig
    from mleredux_gateway.secrets import Mask
    from mleredux_gateway.upstream import Sender, read_whole

    async def ask() -> None:
        upstream = Upstream("one", UpstreamConfig(base_url=url, protocol="openai"), "secret")
        sender = Sender("run", GatewayConfig((upstream,), {}, None), Mask(()))
        opened = sender.open(None)  # type: ignore[arg-type]
        await anext(opened)
        await sender.models("openai")
        async with sender.post({}, upstream, "/x", b"{}") as answer:
            await read_whole(answer)
        await opened.aclose()  # type: ignore[attr-defined]

    asyncio.run(ask())


def sign_in(url: str) -> None:
    from mleredux_server.settings import Settings
    from mleredux_server.web.oidc import Provider

    settings = {"runs_dir": ".", "oidc_issuer": url, "oidc_client": "c", "oidc_secret": "secret", "oidc_allow": ("*",)}
    client = Provider(Settings.model_validate(settings), "")._client
    asyncio.run(client.load_server_metadata())


def track(url: str) -> None:
    from mleredux_tracker_mlflow.connection import connect

    connect(url).get_experiment("1")


def read_bucket(url: str) -> None:
    from mleredux.errors import StoreError
    from mleredux_store_s3.bucket import Bucket

    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setenv(name, "secret")
        patch.setenv("AWS_ENDPOINT_URL", url)
        bucket = Bucket("s3://bucket/runs")
        for request in (lambda: bucket.read("a"), lambda: list(bucket.keys("a")), lambda: bucket.write("a", b"")):
            with pytest.raises(StoreError, match="does not respond"):
                request()


def download(url: str) -> None:
    subprocess.run([sys.executable, "-c", CHILD, url], check=True, timeout=60)


FETCHERS: dict[str, tuple[str, Callable[[str], None]]] = {
    "judge": ("kits/rollout/src/mleredux_rollout/judge.py", ask_judge),
    "agents": ("kits/agentkit/src/mleredux_agentkit/llm.py", complete),
    "webhook": ("plugins/services/server/src/mleredux_server/operations/deliverer.py", send_webhook),
    "client": ("plugins/services/client/src/mleredux_client/_async/http.py", ask_server),
    "gateway": ("plugins/services/gateway/src/mleredux_gateway/upstream.py", ask_upstream),
    "sign-in": ("plugins/services/server/src/mleredux_server/web/oidc.py", sign_in),
    "MLflow": ("plugins/trackers/mlflow/src/mleredux_tracker_mlflow/connection.py", track),
    "bucket": ("plugins/stores/s3/src/mleredux_store_s3/bucket.py", read_bucket),
    "Kaggle": ("plugins/competitions/mlebench/src/mleredux_competition_mlebench/kaggle/child.py", download),
}
ALIKE = {
    "plugins/competitions/mlebench/src/mleredux_competition_mlebench/kaggle/transfer.py",  # only in Kaggle's process
    "plugins/audit/conduct/src/mleredux_audit_conduct/rules.py",  # patterns
}
"""git: see `test_repo_redirects.py`."""


@contextmanager
def server(host: str, answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    httpd = ThreadingHTTPServer((host, 0), Handler)
    Thread(target=httpd.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield httpd.server_address[1]
    finally:
        httpd.shutdown()
        httpd.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("fetcher", FETCHERS)
@pytest.mark.attack
def test_a_redirect_takes_nothing_elsewhere(fetcher: str, status: int) -> None:
    reached: list[str] = []
    asked: list[str] = []

    def hidden(request: BaseHTTPRequestHandler) -> None:
        reached.append(request.path)
        request.send_response(200)
        request.send_header("Content-Length", "2")
        request.end_headers()
        request.wfile.write(b"{}")

    with server("127.0.0.2", hidden) as port:

        def away(request: BaseHTTPRequestHandler) -> None:
            asked.append(request.path)
            request.send_response(status)
            request.send_header("Location", f"http://127.0.0.2:{port}/")
            request.send_header("Content-Length", "0")
            request.end_headers()

        with server("127.0.0.1", away) as first:
            try:
                FETCHERS[fetcher][1](f"http://127.0.0.1:{first}")
            except (subprocess.CalledProcessError, pytest.fail.Exception):
                raise
            except Exception as error:
                assert "secret" not in str(error)
    assert asked and not reached


def test_every_program_that_sends_requests_is_among_these() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "core/src", "kits", "plugins"], cwd=ROOT, capture_output=True, text=True
    )
    sources = [name for name in listed.stdout.split() if name.endswith(".py") and "/src/" in name]
    senders = {name for name in sources if SENDS.search((ROOT / name).read_text(encoding="utf-8"))}
    assert senders - INSIDE - LOOPBACK - ALIKE == {source for source, _ in FETCHERS.values()}
