"""Measure the overhead of the gateway to language models per call: `uv run python benchmarks/gateway.py`.

Upstream (the scripted language model, which answers immediately), gateway and client are separate processes on the
loopback interface. The client calls the upstream and the gateway alternately, on persistent connections.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psutil
from _measuring import machine, table

CALLS, AT_ONCE, ROUNDS = 200, 8, 3
SCENARIO = """
rules:
  - when: {stream: true}
    reply: {text: "TEXT", chunk: 4}
  - reply: {text: "Well."}
"""
SERVE = """
import sys, time
from datetime import UTC, datetime
from pathlib import Path
from mleredux.models import Agent, Limits, RunSpec
from mleredux._core.store import Run
from mleredux_gateway.endpoint import open_gateway
home = Path(sys.argv[1])
spec = RunSpec(id="bench", task="t", agent="a", sandbox="process", seed=0, limits=Limits(llm_tokens=10**12),
               network="gateway", data_dir=str(home), created_at=datetime.now(UTC))
agent = Agent(id="a", title="A", command=("true",))
gateway = open_gateway(Run.create(home / "bench", spec), agent, home / "gateway.sock")
print(gateway.url, gateway.secrets[0], flush=True)
time.sleep(3600)
"""


@contextmanager
def started(*command: str, **environment: str) -> Iterator[tuple[str, psutil.Process]]:
    """Start a program; yield its first line of output, and its process."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(
        [sys.executable, *command],
        env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
        text=True,
        **pipes,  # type: ignore[call-overload]
    ) as program:
        try:
            yield program.stdout.readline().strip(), psutil.Process(program.pid)
        finally:
            program.kill()


class Client:
    """One open connection."""

    def __init__(self, url: str, key: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(str(parts.hostname), parts.port)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def ask(self, body: bytes) -> float:
        """Return milliseconds until the complete answer has arrived."""
        began = time.perf_counter()
        self._connection.request("POST", "/v1/chat/completions", body, self._headers)
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200
        return (time.perf_counter() - began) * 1000


def body_of(characters: int, *, stream: bool = False) -> bytes:
    """Return a request with a conversation of a number of characters."""
    turns = [{"role": ("user", "assistant")[i % 2], "content": "x" * 1000} for i in range(characters // 1000)]
    return json.dumps({"model": "scripted", "messages": turns, "stream": stream}).encode()


def main() -> None:
    """Measure and print."""
    kinds = {
        "a short request (2,000 characters)": (body_of(2_000), CALLS),
        "a long conversation (400,000 characters)": (body_of(400_000), CALLS // 4),
        "a stream of 250 pieces": (body_of(2_000, stream=True), CALLS // 4),
    }
    rows = [("call", "direct, ms", "through the gateway, ms", "more, ms", f"direct, calls/s ({AT_ONCE} at once)")]
    rows = [(*rows[0], f"gateway, calls/s ({AT_ONCE} at once)", "CPU of the gateway per call, ms")]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "scenario.yaml").write_text(SCENARIO.replace("TEXT", "word" * 250))
        with started("-m", "mleredux", "scripted-llm", str(home / "scenario.yaml"), "--port", "0") as (upstream, _):
            config = f'[upstreams.scripted]\nprotocol = "openai"\nbase_url = "{upstream}/v1"\n'
            (home / "gateway.toml").write_text(config)
            paths = {"MLEREDUX_GATEWAY_CONFIG": str(home / "gateway.toml"), "XDG_CONFIG_HOME": folder}
            with started("-c", SERVE, folder, **paths) as (said, process):
                url, token = said.split()
                direct, through = Client(upstream, "k"), Client(url, token)
                for name, (body, count) in kinds.items():
                    taken = [(direct.ask(body), through.ask(body)) for _ in range(count)][5:]
                    one, other = (statistics.median(pair[i] for pair in taken) for i in (0, 1))
                    before = process.cpu_times()
                    rates = [(_rate(upstream, "k", body, count), _rate(url, token, body, count)) for _ in range(ROUNDS)]
                    after = process.cpu_times()
                    cpu = (after.user + after.system - before.user - before.system) / (ROUNDS * count) * 1000
                    fast, slow = (statistics.median(pair[i] for pair in rates) for i in (0, 1))
                    figures = (one, other, other - one, fast, slow, cpu)
                    rows.append((name, *(f"{figure:.1f}" for figure in figures)))
    print(machine())
    print(f"Medians of {CALLS} (long ones {CALLS // 4}) calls in turns, and of {ROUNDS} rounds of calls at once.\n")
    print(table(*rows))


def _rate(url: str, key: str, body: bytes, count: int) -> float:
    """Return calls per second with several concurrent clients."""

    def share(_: int) -> None:
        client = Client(url, key)
        for _ in range(count // AT_ONCE):
            client.ask(body)

    began = time.perf_counter()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(share, range(AT_ONCE)))
    return count // AT_ONCE * AT_ONCE / (time.perf_counter() - began)


if __name__ == "__main__":
    main()
