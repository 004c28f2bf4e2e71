"""Runs inside a container with network `gateway` and probes everything; writes its observations as JSON.

Its input comes as options: `targets` (host:port that must not respond), `other_token` (of another run), `calls`.
"""

from __future__ import annotations

import csv
import json
import os
import socket
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ORDERS = json.loads(os.environ["MLEREDUX_OPTIONS"])
OUTPUT = Path(os.environ["MLEREDUX_OUTPUT_DIR"])
BASE = os.environ["OPENAI_BASE_URL"]
KEY = os.environ["OPENAI_API_KEY"]


def ask(text: str, key: str = KEY, **more: Any) -> tuple[int, str]:
    """Return status and body of a chat completion."""
    body = json.dumps({"model": "priced", "messages": [{"role": "user", "content": text}], **more}).encode()
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{BASE}/chat/completions", body, headers)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def stream() -> list[float]:
    """Return the times in seconds at which the pieces of a stream arrived."""
    body = json.dumps({"model": "priced", "stream": True, "messages": [{"role": "user", "content": "dripping"}]})
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{BASE}/chat/completions", body.encode(), headers)
    began = time.monotonic()
    with urllib.request.urlopen(request) as answer:
        return [time.monotonic() - began for line in answer if line.startswith(b"data:")]


def claude() -> str:
    """Return a response in Anthropic's protocol."""
    body = {"model": "priced", "max_tokens": 9, "messages": [{"role": "user", "content": "hello"}]}
    headers = {"X-Api-Key": os.environ["ANTHROPIC_API_KEY"], "Content-Type": "application/json"}
    url = os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages"
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as answer:
        return str(json.load(answer)["content"][0]["text"])


def reached(target: str) -> str:
    """Return the result of connecting to host:port."""
    host, _, port = target.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


def datagram(host: str) -> str:
    """Return the result of sending a UDP packet (as a DNS query would)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as packet:
        try:
            packet.sendto(b"?", (host, 53))
        except OSError as error:
            return type(error).__name__
    return "sent"


def validated(name: str) -> str:
    """Return the verdict's bytes for one of the guesses."""
    request = urllib.request.Request(os.environ["MLEREDUX_VALIDATE_URL"], (OUTPUT / name).read_bytes(), method="POST")
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def guesses() -> None:
    """Return a perfect submission, its opposite, and a constant one."""
    with (Path(os.environ["MLEREDUX_DATA_DIR"]) / "test.csv").open() as file:
        rows = list(csv.DictReader(file))
    right = [int(float(row["width"]) + float(row["height"]) > 1) for row in rows]
    for name, labels in {"right": right, "wrong": [1 - one for one in right], "same": [0] * len(rows)}.items():
        lines = ["id,large", *(f"{row['id']},{label}" for row, label in zip(rows, labels, strict=True))]
        (OUTPUT / name).write_text("\n".join(lines) + "\n")


def main() -> None:
    seen: dict[str, Any] = {"environment": dict(os.environ), "interfaces": os.listdir("/sys/class/net")}
    seen["routes"] = Path("/proc/net/route").read_text().splitlines()[1:]
    seen["sockets"] = [line.split()[-1] for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    seen["wrong_keys"] = [ask("hello", key)[0] for key in ("", "sk-guess", ORDERS["other_token"])]
    seen["targets"] = {target: reached(target) for target in ORDERS["targets"]}
    seen["datagrams"] = [datagram(host) for host in ("169.254.169.254", "172.17.0.1", "192.0.2.1")]
    try:
        seen["name"] = socket.getaddrinfo("example.org", 443)
    except OSError as error:
        seen["name"] = type(error).__name__
    seen["hello"] = ask("hello")
    seen["claude"] = claude()
    seen["echo"] = ask("echo")
    seen["leak"] = ask("leak")
    seen["stream"] = stream()
    guesses()
    (OUTPUT / "ready").touch()
    while not (OUTPUT / "answers-are-away").exists():
        time.sleep(0.05)
    seen["verdicts"] = [validated(name) for name in ("right", "wrong", "same", "right", "wrong")]
    (OUTPUT / "validated").touch()
    while not (OUTPUT / "answers-are-back").exists():
        time.sleep(0.05)
    with ThreadPoolExecutor(8) as pool:
        seen["to_the_end"] = [status for status, _ in pool.map(lambda _: ask("hello"), range(ORDERS["calls"]))]
    seen["after_the_end"] = ask("hello")
    (OUTPUT / "submission.csv").write_text((OUTPUT / "right").read_text())
    print("my key is", KEY)
    (OUTPUT / "seen.json").write_text(json.dumps(seen))


main()
